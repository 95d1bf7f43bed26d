# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ragged batches of tokens through the gated delta rule, on a pool of states that stay where they
are.

    delta_prefill(q, k, v, log_decay, beta, states, slots, cu_seqlens, has_initial=has_initial)

Kernels come from where those of gdn.rule do.
"""

from __future__ import annotations

import math

import numpy as np

from .array_library import check_array
from .call_options import flag, integer
from .entry_plan import KnownCall
from .kernel_calls import call_of, last_of
from .pool_states import LayerStates
from .rule_entry import (
    Options,
    RuleEntry,
    check_pending,
    in_order,
    options_of,
    state_order_of,
)
from .rule_kernels import kind_of
from .runtime import Runtime
from .skipped_rows import live_sequences

_STATES = ("states", "slots", "cu_seqlens", "has_initial", "write_slots", "out")
_OF_READY = ("q", "k", "v", "log_decay", "beta", *_STATES)
_OF_GATES = ("q", "k", "v", "a", "b", "A_log", "dt_bias", *_STATES)
_OF_COMMIT = ("slots", "states")


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
    checkpoints: tuple | None = None,
    out=None,
    scale: float | None = None,
    l2norm: bool = False,
    allow_neg_eigval: bool = False,
    null_slot: int = -1,
    zero_skipped: bool = True,
    runtime: Runtime | None = None,
):
    """For each token of a sequence n, with S at first `states[slots[n]]`: `S <- exp(log_decay) S`,
    `S <- S + beta (v - S k) k^T`, `out = scale S q`; the last S goes to states[write_slots[n]], by
    default to where the first was.

    Sequence n has the tokens from cu_seqlens[n] to cu_seqlens[n + 1]; cu_seqlens [N + 1] starts at
    0 or more, does not decrease, and ends at T or less, as in gdn.rule.gated_delta_rule. q and k
    [T, Hk, dk] and v [T, Hv, dv] are of one type (f32, bf16 or f16), Hv is a multiple of Hk, and
    log_decay and beta [T, Hv] are of any type; log_decay [T, Hv, dk] decays each channel of the
    keys, where dv is dk and nothing is deferred. states [P, Hv, dv, dk] of f32, bf16 or f16, or
    what StatePool.layer_states gives, are changed in place; slots and write_slots [N] are integers.
    Where has_initial [N], booleans, is false, the first S is zero and nothing is read; by default
    all have one.

    A sequence without tokens leaves its state. One whose slot is `null_slot`, negative or not below
    P is skipped: its outputs are zeros, as those of tokens of no sequence. Nothing is written to a
    write slot of this kind. `scale` is dk ^ -0.5 if None. `l2norm` scales q and k to unit length.
    `allow_neg_eigval` allows strengths up to 2 instead of 1.
    Without `zero_skipped` what `out` holds for skipped sequences and tokens of none stays.

    `checkpoints` are cu_checkpoints [N + 1], tokens [C] and slots [C], integers: sequence n has
    those from cu_checkpoints[n] to cu_checkpoints[n + 1], and states[slots[c]] gets S after
    tokens[c] of its tokens, a multiple of 64 that is more than those before. Nothing is written
    for other counts (docs/spec/slots.md).

    With a pool that defers writes, what is pending in the slots of sequences with tokens is first
    put into their states, by a launch of its own, and there are neither write_slots nor
    checkpoints.

    Returns out [T, Hv, dv], a new array if None is given. Raises as gdn.rule.gated_delta_rule does.
    """
    given = scale, l2norm, allow_neg_eigval, integer("null_slot", null_slot), zero_skipped
    known = None
    if checkpoints is None:
        tensors = (q, k, v, log_decay, beta, states, slots, cu_seqlens, has_initial, write_slots)
        known = KnownCall(_OF_READY, (*tensors, out), given, runtime, states)
        if known.plan is not None:
            return known.run()
    entry = RuleEntry("prefill", q, k, v, states, runtime)
    entry.take_ready_gates(log_decay, beta)
    if checkpoints is not None:
        entry.take_checkpoints(checkpoints, entry.take_starts(cu_seqlens) + 1)
    rest = (slots, write_slots, cu_seqlens, has_initial, out)
    return _prefill(entry, *rest, options_of(*given), known)


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
    zero_skipped: bool = True,
    decay_bound: float | None = None,
    runtime: Runtime | None = None,
):
    """As delta_prefill, of raw gates a and b [T, Hv] and constants A_log and dt_bias [Hv], of any
    type: the decay is -exp(A_log) softplus(a + dt_bias), and the strength sigmoid(b). They are made
    ahead of the kernel.

    With a [T, Hv, dk] and dt_bias [Hv, dk] each channel has its own decay, which `decay_bound`
    makes as in gdn.rule_step.gated_delta_step; the kernel makes these where a and b are of the type
    of v."""
    tensors = (q, k, v, a, b, A_log, dt_bias, states, slots, cu_seqlens, has_initial, write_slots)
    given = scale, l2norm, False, integer("null_slot", null_slot), zero_skipped
    known = KnownCall(_OF_GATES, (*tensors, out), (*given, decay_bound), runtime, states)
    if known.plan is not None:
        return known.run()
    entry = RuleEntry("prefill", q, k, v, states, runtime)
    entry.take_gates(a, b, A_log, dt_bias, ready=True, bound=decay_bound)
    rest = (slots, write_slots, cu_seqlens, has_initial, out)
    return _prefill(entry, *rest, options_of(*given), known)


def commit_pending(
    states: LayerStates,
    slots,
    *,
    io: str,
    layout: str = "ready",
    l2norm: bool = False,
    null_slot: int = -1,
    runtime: Runtime | None = None,
) -> None:
    """Puts what is pending in slots [N], integers, into their states, in one launch; afterwards
    nothing is pending there, and kernels in place can go on. A slot that is `null_slot`, negative
    or not below P is skipped. Another one that occurs twice is a ValueError where the slots are on
    a CPU; on a GPU it is the caller's promise that none does. `states` are those of a pool that
    defers writes. The kernel comes with the step's: `io` is the type of its q, k and v, and its
    `layout` is "ready", or "gated" where the step reads raw gates as they are."""
    if not isinstance(states, LayerStates) or not states.deferred_writes:
        found = states if isinstance(states, LayerStates) else type(states).__name__
        raise ValueError(f"states: expected those of a pool that defers writes, got {found}")
    null_slot = integer("null_slot", null_slot)
    options = io, layout, l2norm, null_slot
    known = KnownCall(_OF_COMMIT, (slots, states), options, runtime, states)
    arrays = known.arrays
    if known.plan is not None:
        ids = arrays.rows_apart(arrays.ids(slots))
        if arrays.device[0] == "cpu":
            _check_once("slots", ids, null_slot, len(states.arrays(arrays)["state_pool"]))
        return known.commit(ids)
    check_array(arrays, "slots", slots, [math.prod(slots.shape)])
    if "int" not in (found := arrays.dtype_of(slots)):
        raise ValueError(f"slots: expected integers, got {found}")
    if not slots.shape[0]:
        return
    given = states.arrays(arrays) | {"slots": arrays.rows_apart(arrays.ids(slots))}
    num_slots, _, value_dim, key_dim = map(int, given["state_pool"].shape)
    if arrays.device[0] == "cpu":
        _check_once("slots", given["slots"], null_slot, num_slots)
    check_pending(states.pending_dtype, flag("l2norm", l2norm))
    kind = kind_of(
        key_dim,
        value_dim,
        io=io,
        state=states.format,
        l2norm=flag("l2norm", l2norm),
        layout=layout,
        state_order=state_order_of(arrays, "states", given["state_pool"]),
        deferred_writes=states.deferred_writes,
        pending=states.pending_dtype,
    )
    kind, pools = in_order(arrays, kind, runtime, {"state_pool": given["state_pool"]})
    where = arrays.device, arrays.stream, runtime, null_slot
    call = call_of(kind, "commit", *where, capturing=arrays.capturing)
    call(**{name: (given | pools)[name] for name in call.names})
    if pools["state_pool"] is not given["state_pool"]:
        arrays.fill(given["state_pool"], pools["state_pool"])
    else:
        known.keep_commit(call, last_of(kind, "commit", arrays.device, runtime, null_slot))


def _check_once(name: str, slots, null_slot: int, num_slots: int) -> None:
    """ValueError for a slot of the pool that occurs twice, in an array of the host."""
    ids = np.asarray(slots)
    live = ids[live_sequences(ids, null_slot, num_slots)].tolist()
    if len(set(live)) < len(live):
        twice = min(slot for slot in live if live.count(slot) > 1)
        raise ValueError(f"{name}: expected each slot once, got {twice} twice")


def _prefill(
    entry: RuleEntry,
    slots,
    write_slots,
    cu_seqlens,
    has_initial,
    out,
    options: Options,
    known: KnownCall | None = None,
):
    entry.check_inputs()
    count = entry.take_starts(cu_seqlens)
    entry.take_slots(slots, write_slots, [count])
    entry.take_flags("has_initial", has_initial, count)
    out = entry.output(out)
    if count > 0 and entry.heads[0] > 0:
        return entry.run(out, options, known=known)
    if options.zero_skipped:
        entry.arrays.fill(out, 0)
    return out
