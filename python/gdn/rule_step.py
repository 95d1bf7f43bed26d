# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A token of each sequence through the gated delta rule, on states that stay where they are.

    gated_delta_step(q, k, v, a, b, A_log, dt_bias, states, slots, out=out)

Kernels come from where those of gdn.rule do.
"""

from __future__ import annotations

from .call_options import integer
from .entry_plan import KnownCall
from .rule_entry import Options, RuleEntry, options_of
from .runtime import Runtime

_GATES = ("a", "b", "A_log", "dt_bias")
_STATES = ("states", "slots", "write_slots", "out")
_OF_GATES = ("q", "k", "v", *_GATES, *_STATES)
_OF_READY = ("q", "k", "v", "log_decay", "beta", *_STATES)


def gated_delta_step(
    q,
    k,
    v,
    a,
    b,
    A_log,
    dt_bias,
    states,
    slots,
    *,
    write_slots=None,
    out=None,
    scale: float | None = None,
    l2norm: bool = False,
    null_slot: int = -1,
    zero_skipped: bool = True,
    decay_bound: float | None = None,
    runtime: Runtime | None = None,
):
    """For each sequence n, with `S = states[slots[n]]`, `g = -exp(A_log) softplus(a + dt_bias)` and
    `beta = sigmoid(b)`: `S <- exp(g) S`, `S <- S + beta (v - S k) k^T`, `out = scale S q`; S goes
    to states[write_slots[n]], by default to where it was.

    q and k [N, Hk, dk] and v [N, Hv, dv] are of one type (f32, bf16 or f16), a and b [N, Hv], A_log
    and dt_bias [Hv] of any. states [P, Hv, dv, dk] of f32, bf16 or f16, or what
    StatePool.layer_states gives, are changed in place; slots and write_slots [N] are integers, and
    a pool that defers writes takes no write_slots. A sequence whose slot is `null_slot`, negative
    or not below P is skipped: its output is zeros. `scale` is dk ^ -0.5 if None. `l2norm` scales q
    and k to unit length.
    Without `zero_skipped` what `out` holds for skipped sequences stays.

    With a [N, Hv, dk] and dt_bias [Hv, dk] each channel of the keys has its own decay, dv is dk,
    and nothing is deferred. Then `decay_bound`, below 0, makes it
    `g = decay_bound sigmoid(exp(A_log) (a + dt_bias))`, in the kernel from -5 on.

    Returns out [N, Hv, dv], a new array if None is given. Raises as gdn.rule.gated_delta_rule does.
    """
    tensors = (q, k, v, a, b, A_log, dt_bias, states, slots, write_slots, out)
    given = (scale, l2norm, False, integer("null_slot", null_slot), zero_skipped)
    known = KnownCall(_OF_GATES, tensors, (*given, decay_bound), runtime, states)
    if known.plan is not None:
        return known.run()
    entry = RuleEntry("decode", q, k, v, states, runtime)
    entry.take_gates(a, b, A_log, dt_bias, bound=decay_bound)
    return _step(entry, slots, write_slots, out, options_of(*given), known)


def delta_step(
    q,
    k,
    v,
    log_decay,
    beta,
    states,
    slots=None,
    *,
    write_slots=None,
    out=None,
    scale: float | None = None,
    l2norm: bool = False,
    allow_neg_eigval: bool = False,
    null_slot: int = -1,
    zero_skipped: bool = True,
    runtime: Runtime | None = None,
):
    """As gated_delta_step, of decays and strengths that are ready: log_decay and beta [N, Hv], of
    any type; log_decay [N, Hv, dk] decays each channel. Without `slots` sequence n has slot n.
    `allow_neg_eigval` allows strengths up to 2."""
    tensors = (q, k, v, log_decay, beta, states, slots, write_slots, out)
    given = (scale, l2norm, allow_neg_eigval, integer("null_slot", null_slot), zero_skipped)
    known = KnownCall(_OF_READY, tensors, given, runtime, states)
    if known.plan is not None:
        return known.run()
    entry = RuleEntry("decode", q, k, v, states, runtime)
    entry.take_ready_gates(log_decay, beta)
    if slots is None:
        count, found = entry.heads[0], int(entry.states.shape[0])
        if found != count:
            raise ValueError(f"states: expected one for each of {count} sequences, got {found}")
        slots = entry.arrays.numbers(range(count), "int32")
    return _step(entry, slots, write_slots, out, options_of(*given), known)


def _step(entry: RuleEntry, slots, write_slots, out, options: Options, known: KnownCall):
    entry.check_inputs()
    count = entry.heads[:1]
    entry.take_slots(slots, write_slots, count)
    out = entry.output(out)
    return out if count == [0] else entry.run(out, options, known=known)
