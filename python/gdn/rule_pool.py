# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ragged batches of tokens through the gated delta rule, on a pool of states that stay where they
are.

    delta_prefill(q, k, v, log_decay, beta, states, slots, cu_seqlens, has_initial=has_initial)

Kernels come from where those of gdn.rule do.
"""

from __future__ import annotations

from .rule_entry import Options, RuleEntry
from .runtime import Runtime


def delta_prefill(
    q,
    k,
    v,
    log_decay,
    beta,
    states,
    slots,
    cu_seqlens,
    *,
    has_initial=None,
    write_slots=None,
    checkpoint_tokens=None,
    checkpoint_slots=None,
    out=None,
    scale: float | None = None,
    l2norm: bool = False,
    allow_neg_eigval: bool = False,
    null_slot: int = -1,
    runtime: Runtime | None = None,
):
    """For each token of a sequence n, with S at first `states[slots[n]]`: `S <- exp(log_decay) S`,
    `S <- S + beta (v - S k) k^T`, `out = scale S q`; the last S goes to states[write_slots[n]], by
    default to where the first was.

    Sequence n has the tokens from cu_seqlens[n] to cu_seqlens[n + 1]; cu_seqlens [N + 1] starts at
    0 or more, does not decrease, and ends at T or less. q and k [T, Hk, dk] and v [T, Hv, dv] are
    of one type (f32, bf16 or f16), Hv is a multiple of Hk, and log_decay and beta [T, Hv] are of
    any type. states [P, Hv, dv, dk] of f32, bf16 or f16 are changed in place; slots and write_slots
    [N] are integers. Where has_initial [N], booleans, is false, the first S is zero and nothing is
    read; by default all have one.

    With checkpoint_tokens and checkpoint_slots [N], integers, S after checkpoint_tokens[n] tokens
    of the sequence goes to states[checkpoint_slots[n]] too, if that number is a positive multiple
    of 64 and at most the sequence's length.

    A sequence without tokens leaves its state. One whose slot is `null_slot`, negative or not below
    P is skipped: its outputs are zeros, as those of tokens of no sequence. Nothing is written to
    other slots of this kind. `scale` is dk ^ -0.5 if None. `l2norm` scales q and k to unit length.
    `allow_neg_eigval` allows strengths up to 2 instead of 1.

    Returns out [T, Hv, dv], a new array if None is given. Raises as gdn.rule.gated_delta_rule does.
    """
    entry = RuleEntry(q, k, v, states)
    entry.take_ready_gates(log_decay, beta)
    options = Options(scale, l2norm, allow_neg_eigval, null_slot, runtime)
    inside = (checkpoint_tokens, checkpoint_slots)
    return _prefill(entry, slots, write_slots, cu_seqlens, has_initial, inside, out, options)


def gated_delta_prefill(
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
    *,
    has_initial=None,
    write_slots=None,
    out=None,
    scale: float | None = None,
    l2norm: bool = False,
    null_slot: int = -1,
    runtime: Runtime | None = None,
):
    """As delta_prefill, of raw gates a and b [T, Hv] and constants A_log and dt_bias [Hv], of any
    type: the decay is -exp(A_log) softplus(a + dt_bias), and the strength sigmoid(b). They are made
    ahead of the kernel."""
    entry = RuleEntry(q, k, v, states)
    entry.take_gates(a, b, A_log, dt_bias, ready=True)
    options = Options(scale, l2norm, False, null_slot, runtime)
    inside = (None, None)
    return _prefill(entry, slots, write_slots, cu_seqlens, has_initial, inside, out, options)


def _prefill(entry: RuleEntry, slots, write_slots, cu_seqlens, has_initial, inside, out, options):
    entry.check_inputs()
    count = entry.take_starts(cu_seqlens)
    entry.take_slots(slots, write_slots, [count])
    entry.take_flags("has_initial", has_initial, count)
    has_checkpoints = any(array is not None for array in inside)
    if has_checkpoints:
        for name, array in zip(("checkpoint_tokens", "checkpoint_slots"), inside, strict=True):
            if array is None:
                raise ValueError(f"{name}: expected an array beside the other, got None")
            entry.take_integers(name, array, [count])
        entry.take("cu_checkpoints", entry.arrays.numbers(range(count + 1), "int32"))
    out = entry.output(out)
    if count > 0 and entry.heads[0] > 0:
        return entry.run("prefill", out, options, checkpoints=has_checkpoints)
    entry.arrays.fill(out, 0)
    return out
