# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens that may be rejected, through the gated delta rule: the state after each token is kept,
in a buffer or in slots of the pool.

    gated_delta_verify(q, k, v, a, b, A_log, dt_bias, states, slots, cu_seqlens, buffer, places)

Kernels come from where those of gdn.rule do.
"""

from __future__ import annotations

from .call_options import integer
from .entry_plan import KnownCall
from .rule_entry import MOST_TOKENS, Options, RuleEntry, options_of
from .runtime import Runtime

_INPUTS = ("q", "k", "v", "a", "b", "A_log", "dt_bias", "states")
_OF_BUFFER = (*_INPUTS, "slots", "cu_seqlens", "token_states", "token_slots", "out")
_OF_SLOTS = (*_INPUTS, "token_slots", "num_accepted", "cu_seqlens", "out")


def gated_delta_verify(
    q,
    k,
    v,
    a,
    b,
    A_log,
    dt_bias,
    states,
    slots,
    cu_seqlens,
    token_states,
    token_slots,
    *,
    out=None,
    scale: float | None = None,
    l2norm: bool = False,
    null_slot: int = -1,
    zero_skipped: bool = True,
    decay_bound: float | None = None,
    runtime: Runtime | None = None,
):
    """For each token of a sequence n, with S at first `states[slots[n]]`,
    `g = -exp(A_log) softplus(a + dt_bias)` and `beta = sigmoid(b)`: `S <- exp(g) S`,
    `S <- S + beta (v - S k) k^T`, `out = scale S q`. S after token t of the sequence goes to
    `token_states[token_slots[n, t]]`; `states` are only read.

    Sequence n has the tokens from cu_seqlens[n] to cu_seqlens[n + 1]; cu_seqlens [N + 1] starts at
    0 or more, does not decrease, and ends at T or less, as in gdn.rule.gated_delta_rule. q and k
    [T, Hk, dk] and v [T, Hv, dv] are of one type (f32, bf16 or f16), a and b [T, Hv], A_log and
    dt_bias [Hv] of any. states [P, Hv, dv, dk] and token_states [B, Hv, dv, dk] are of one type
    (f32, bf16 or f16), and do not overlap. slots [N] and token_slots [N, S] are integers; no state
    is kept after tokens from S on.

    A sequence whose slot is `null_slot`, negative or not below P is skipped: its outputs are zeros,
    as those of tokens of no sequence. A place in token_slots of this kind keeps nothing. `scale` is
    dk ^ -0.5 if None. `l2norm` scales q and k to unit length.
    Without `zero_skipped` what `out` holds for tokens of skipped sequences and of none stays.
    With a [T, Hv, dk] and dt_bias [Hv, dk] each channel has its own decay, which `decay_bound`
    makes as in gdn.rule_step.gated_delta_step.

    Returns out [T, Hv, dv], a new array if None is given. Raises as gdn.rule.gated_delta_rule does.
    """
    tensors = (q, k, v, a, b, A_log, dt_bias, states, slots, cu_seqlens, token_states, token_slots)
    given = (scale, l2norm, False, integer("null_slot", null_slot), zero_skipped)
    known = KnownCall(_OF_BUFFER, (*tensors, out), (*given, decay_bound), runtime, states)
    if known.plan is not None:
        return known.run()
    entry = RuleEntry("verify", q, k, v, states, runtime)
    entry.reads_states = True
    entry.take_gates(a, b, A_log, dt_bias, bound=decay_bound)
    entry.check_inputs()
    entry.check_pool("token_states", token_states, (entry.arrays.dtype_of(entry.states),))
    count = entry.take_starts(cu_seqlens)
    entry.take_integers("slots", slots, [count])
    entry.take_integers("token_slots", token_slots, _table(entry, token_slots, count))
    entry.take("token_state_pool", token_states)
    return _verify(entry, count, out, options_of(*given), "buffer", known)


def gated_delta_verify_in_slots(
    q,
    k,
    v,
    a,
    b,
    A_log,
    dt_bias,
    states,
    token_slots,
    num_accepted,
    cu_seqlens,
    *,
    out=None,
    scale: float | None = None,
    l2norm: bool = False,
    null_slot: int = -1,
    zero_skipped: bool = True,
    decay_bound: float | None = None,
    runtime: Runtime | None = None,
):
    """As gated_delta_verify, with the states after tokens in slots of the same pool: S after token
    t goes to `states[token_slots[n, t]]`, and the first S is `states[token_slots[n, m - 1]]`, where
    `m = num_accepted[n]` tokens of the sequence's previous step were accepted. It is read before
    any is written.

    token_slots [N, S] has at most 8 columns. A sequence with another count than 1 to S, or with
    more than 8 tokens, is skipped."""
    tensors = (q, k, v, a, b, A_log, dt_bias, states, token_slots, num_accepted, cu_seqlens, out)
    given = (scale, l2norm, False, integer("null_slot", null_slot), zero_skipped)
    known = KnownCall(_OF_SLOTS, tensors, (*given, decay_bound), runtime, states)
    if known.plan is not None:
        return known.run()
    entry = RuleEntry("verify", q, k, v, states, runtime)
    entry.take_gates(a, b, A_log, dt_bias, bound=decay_bound)
    entry.check_inputs()
    count = entry.take_starts(cu_seqlens)
    shape = _table(entry, token_slots, count)
    if shape[1] > MOST_TOKENS:
        raise ValueError(
            f"token_slots: expected at most {MOST_TOKENS} tokens of a sequence, got {shape[1]}"
        )
    entry.take_integers("token_slots", token_slots, shape)
    entry.take_integers("num_accepted", num_accepted, [count])
    return _verify(entry, count, out, options_of(*given), "slots", known)


def _table(entry: RuleEntry, token_slots, count: int) -> list[int]:
    entry.arrays.check("token_slots", token_slots)
    if len(token_slots.shape) != 2:
        raise ValueError(f"token_slots: expected the shape [N, S], got {list(token_slots.shape)}")
    return [count, int(token_slots.shape[1])]


def _verify(entry: RuleEntry, count: int, out, options: Options, kind: str, known: KnownCall):
    out = entry.output(out)
    if count > 0 and entry.heads[0] > 0:
        return entry.run(out, options, kind, known)
    if options.zero_skipped:
        entry.arrays.fill(out, 0)
    return out
