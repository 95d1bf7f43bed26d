# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A token of each sequence through the gated delta rule, on states that stay where they are.

    gated_delta_step(q, k, v, a, b, A_log, dt_bias, states, slots, out=out)

Kernels come from where those of gdn.rule do.
"""

from __future__ import annotations

from typing import NamedTuple

from .array_library import library_of
from .kernel_calls import call_of
from .rule_kernels import UNIT, kind_of
from .runtime import Runtime

_FLOATS = ("float32", "bfloat16", "float16")


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
    runtime: Runtime | None = None,
):
    """For each sequence n, with `S = states[slots[n]]`, `g = -exp(A_log) softplus(a + dt_bias)` and
    `beta = sigmoid(b)`: `S <- exp(g) S`, `S <- S + beta (v - S k) k^T`, `out = scale S q`; S goes
    to states[write_slots[n]], by default to where it was.

    q and k [N, Hk, dk] and v [N, Hv, dv] are of one type (f32, bf16 or f16), a and b [N, Hv], A_log
    and dt_bias [Hv] of any. states [P, Hv, dv, dk] of f32, bf16 or f16 are changed in place; slots
    and write_slots [N] are integers. A sequence whose slot is `null_slot`, negative or not below P
    is skipped: its output is zeros. `scale` is dk ^ -0.5 if None. `l2norm` scales q and k to unit
    length.

    Returns out [N, Hv, dv], a new array if None is given. Raises as gdn.rule.gated_delta_rule does.
    """
    arrays, heads = library_of(q), _heads_of(q, k, v)
    gates = {"a": (a, heads), "b": (b, heads)}
    constants = {"A_log": (A_log, heads[1:]), "dt_bias": (dt_bias, heads[1:])}
    for name, (array, shape) in (gates | constants).items():
        _check(arrays, name, array, shape, None)
    io = arrays.dtype_of(v)
    place = _Place(states, slots, write_slots, out, null_slot)
    if io != "float32" and any(arrays.dtype_of(array) != io for array in (a, b)):
        # The kernel reads them in the type of v, which has fewer digits or less range.
        made = arrays.ready_gates(a, b, A_log, dt_bias)
        given = dict(zip(("log_decay", "beta"), made, strict=True))
        return _run(arrays, "ready", (q, k, v), given, place, scale, l2norm, False, runtime)
    given = {name: arrays.cast(array, io) for name, (array, _) in gates.items()}
    given |= {name: arrays.cast(array, "float32") for name, (array, _) in constants.items()}
    given = {name: arrays.rows_apart(array) for name, array in given.items()}
    return _run(arrays, "gated", (q, k, v), given, place, scale, l2norm, False, runtime)


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
    runtime: Runtime | None = None,
):
    """As gated_delta_step, of decays and strengths that are ready: log_decay and beta [N, Hv], of
    any type. Without `slots` sequence n has slot n. `allow_neg_eigval` allows strengths up to
    2."""
    arrays, heads = library_of(q), _heads_of(q, k, v)
    given = {}
    for name, array in (("log_decay", log_decay), ("beta", beta)):
        _check(arrays, name, array, heads, None)
        given[name] = arrays.rows_apart(arrays.cast(array, "float32"))
    if slots is None:
        if states.shape[0] != heads[0]:
            raise ValueError(
                f"states: expected one for each of {heads[0]} sequences, got {states.shape[0]}"
            )
        slots = arrays.numbers(range(heads[0]), "int32")
    place = _Place(states, slots, write_slots, out, null_slot)
    return _run(arrays, "ready", (q, k, v), given, place, scale, l2norm, allow_neg_eigval, runtime)


def _heads_of(q, k, v) -> list[int]:
    """Sequences and value heads. Checks ranks."""
    for name, array in (("q", q), ("k", k), ("v", v)):
        if len(array.shape) != 3:
            raise ValueError(f"{name}: expected the shape [N, H, d], got {list(array.shape)}")
    return [int(size) for size in v.shape[:2]]


class _Place(NamedTuple):
    """Where states are, and where results go."""

    states: object
    slots: object
    write_slots: object
    out: object
    null_slot: int


def _run(arrays, layout, inputs, gates, place, scale, l2norm, allow_neg_eigval, runtime):
    q, k, v = inputs
    states, slots, write_slots, out, null_slot = place
    count, key_heads, key_dim = map(int, q.shape)
    value_heads, value_dim = map(int, v.shape[1:])
    io, state = arrays.dtype_of(v), arrays.dtype_of(states)
    heads = [count, value_heads]
    for name, array, shape, types in (
        ("v", v, [*heads, value_dim], _FLOATS),
        ("q", q, [count, key_heads, key_dim], (io,)),
        ("k", k, [count, key_heads, key_dim], (io,)),
        ("states", states, [*states.shape[:1], value_heads, value_dim, key_dim], _FLOATS),
        ("slots", slots, [count], None),
        ("write_slots", write_slots, [count], None),
        ("out", out, [*heads, value_dim], (io,)),
    ):
        _check(arrays, name, array, shape, types)
    if key_heads == 0 or value_heads % key_heads != 0:
        raise ValueError(f"v: expected a multiple of the {key_heads} heads of q, got {value_heads}")
    if key_dim % UNIT or value_dim % UNIT:
        raise ValueError(
            f"states: expected heads of multiples of {UNIT}, got {value_dim} x {key_dim}"
        )
    if out is None:
        out = arrays.empty((*heads, value_dim), io)
    if count == 0:
        return out
    kind = kind_of(
        key_dim,
        value_dim,
        io=io,
        state=state,
        doubled_beta=bool(allow_neg_eigval),
        l2norm=bool(l2norm),
        layout=layout,
    )
    call = call_of(
        kind,
        "decode",
        arrays.device,
        arrays.stream,
        runtime,
        null_slot,
        capturing=arrays.capturing,
    )
    for name, array in (("slots", slots), ("write_slots", write_slots)):
        if array is not None and "int" not in (found := arrays.dtype_of(array)):
            raise ValueError(f"{name}: expected integers, got {found}")
    for name, array in (("out", out), ("states", states)):
        if not arrays.has_unit_stride(array):
            raise ValueError(f"{name}: expected a contiguous last dimension, got another stride")
    factor = 1.0 if scale is None else scale * key_dim**0.5
    is_other = abs(factor - 1) > 1e-9
    ids = arrays.rows_apart(arrays.ids(slots))
    targets = ids
    if write_slots is not None:
        targets = arrays.rows_apart(arrays.ids(write_slots))
    given = gates | {
        # Ahead of the kernel, so that what it gives is in range; lengths are lost there.
        "q": arrays.cast(q * factor, io) if is_other and not l2norm else arrays.rows_apart(q),
        "k": arrays.rows_apart(k),
        "v": arrays.rows_apart(v),
        "slots": ids,
        "write_slots": targets,
        "state_pool": states,
        "core": out,
    }
    call(**{name: value for name, value in given.items() if name in call.names})
    if is_other and l2norm:
        out *= factor
    return out


def _check(arrays, name: str, array, shape: list[int], types: tuple[str, ...] | None) -> None:
    if array is None:
        return
    if list(array.shape) != shape:
        raise ValueError(f"{name}: expected the shape {shape}, got {list(array.shape)}")
    if types is not None and (found := arrays.dtype_of(array)) not in types:
        raise ValueError(f"{name}: expected {' or '.join(types)}, got {found}")
