# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The causal convolution of a layer as a function of arrays: NumPy's, or tensors of PyTorch. States
stay where they are.

    y = causal_conv1d(x, weight, states, slots, cu_seqlens=cu_seqlens)

docs/spec/conv1d.md has the mathematics.
"""

from __future__ import annotations

from .array_library import check_array, check_form, check_starts, check_written, library_of
from .call_options import flag, integer
from .entry_plan import KnownCall
from .kernel_calls import call_of, last_of
from .op_kernels import MOST_WIDTH, ConvKind, tile_of
from .runtime import Runtime
from .skipped_rows import keep_skipped_rows, live_sequences, live_tokens

_FLOATS = ("float32", "bfloat16", "float16")
_ARRAYS = (
    "x",
    "weight",
    "states",
    "slots",
    "bias",
    "cu_seqlens",
    "has_initial",
    "write_slots",
    "out",
)


def causal_conv1d(
    x,
    weight,
    states,
    slots,
    *,
    bias=None,
    cu_seqlens=None,
    has_initial=None,
    write_slots=None,
    activation: str = "silu",
    out=None,
    null_slot: int = -1,
    zero_skipped: bool = True,
    runtime: Runtime | None = None,
):
    """For each token t and channel c of a sequence: `y[t, c] = act(bias[c] + sum_j weight[c, j]
    x[t - K + 1 + j, c])`. What precedes the sequence is `states[slots[n], c]`, and the last K - 1
    inputs go to `states[write_slots[n], c]`, by default to where they came from.

    x [T, D], states [P, D, K - 1], oldest input first, with any strides, and weight [D, K], K from
    2 to 8, are of f32, bf16 or f16; D is a multiple of 8. slots and write_slots [N] are integers.
    Sequence n has the tokens cu_seqlens[n] to cu_seqlens[n + 1] (integers [N + 1], as in
    gdn.rule.gated_delta_rule); without `cu_seqlens` there are as many tokens as slots.
    `has_initial` [N], of bool, says which sequences have a state, by default all; it goes with
    cu_seqlens. bias [D] is of any type. `activation` is "silu" or "identity". A sequence whose slot
    is `null_slot`, negative or not below P is skipped: its results are zeros, or without
    `zero_skipped` what `out` holds.

    Returns y [T, D] in the type of x, `out` if it is given. Raises ValueError for arrays that do
    not go together, CompileError where no kernel is there and none can be compiled.
    """
    tensors = (x, weight, states, slots, bias, cu_seqlens, has_initial, write_slots, out)
    null_slot = integer("null_slot", null_slot)
    options = (activation, null_slot, zero_skipped)
    known = KnownCall(_ARRAYS, tensors, options, runtime)
    if known.plan is not None:
        return known.run()
    arrays = library_of(x, runtime, "x")
    zero_skipped = flag("zero_skipped", zero_skipped)
    kind = conv_kind(arrays, x, weight, states, bias, activation)
    tokens, channels = map(int, x.shape)
    arrays.check("slots", slots)
    if cu_seqlens is not None:
        count = check_starts(arrays, cu_seqlens, tokens)
    elif len(slots.shape) != 1:
        raise ValueError(f"slots: expected the shape [N], got {list(slots.shape)}")
    else:
        count = int(slots.shape[0])
    if cu_seqlens is None and has_initial is not None:
        raise ValueError("has_initial: expected None without cu_seqlens, got an array")
    io = kind.io
    check_form(arrays, "x", x, [count if cu_seqlens is None else tokens, channels], _FLOATS)
    check_form(arrays, "slots", slots, [count])
    for name, array, shape, types in (
        ("write_slots", write_slots, [count], ()),
        ("has_initial", has_initial, [count], ("bool",)),
        ("out", out, [tokens, channels], (io,)),
    ):
        if array is not None:
            check_array(arrays, name, array, shape, types)
    for name, array in (("slots", slots), ("write_slots", write_slots)):
        if array is not None and "int" not in (found := arrays.dtype_of(array)):
            raise ValueError(f"{name}: expected integers, got {found}")
    is_new = out is None
    if is_new:
        out = arrays.empty((tokens, channels), io)
    if tokens == 0 or count == 0:
        if is_new or zero_skipped:
            out[...] = 0  # a kernel, in a capture too
        return out
    if not arrays.has_unit_stride(out):
        raise ValueError("out: expected a contiguous last dimension, got another stride")
    for name, array in (("out", out), ("states", states)):
        check_written(arrays, name, array)
    entry = "decode" if cu_seqlens is None else "prefill"
    call = call_of(
        kind,
        entry,
        arrays.device,
        arrays.stream,
        runtime,
        null_slot,
        capturing=arrays.capturing,
    )
    ids = arrays.rows_apart(arrays.ids(slots))
    tile = (channels // kind.channels, kind.channels)
    given = {
        "x": arrays.rows_apart(x).reshape(tokens, *tile),
        "weight": arrays.rows_apart(weight),
        "slots": ids,
        "write_slots": ids if write_slots is None else arrays.rows_apart(arrays.ids(write_slots)),
        "conv_pool": states,
        "y": out.reshape(tokens, *tile),
    }
    if bias is not None:
        given["bias"] = arrays.rows_apart(arrays.cast(bias, "float32"))
    if cu_seqlens is not None:
        given["cu_seqlens"] = arrays.rows_apart(arrays.ids(cu_seqlens))
        flags = arrays.flags(count, True) if has_initial is None else has_initial
        given["has_initial"] = arrays.rows_apart(flags)
    if zero_skipped:
        call(**given)
        last = last_of(kind, entry, arrays.device, runtime, null_slot)
        known.keep(call, last, given, out, reshaped=("x", "y"))
        return out
    live = live_sequences(ids, null_slot, int(states.shape[0]))
    if cu_seqlens is not None:
        live = live_tokens(arrays, live, given["cu_seqlens"], tokens)
    keep_skipped_rows(arrays, out, live, lambda: call(**given))
    return out


def conv_kind(arrays, x, weight, states, bias, activation: str) -> ConvKind:
    """The kernel of a call with these arrays. Raises ValueError where they do not go together."""
    for name, array, rank in (("x", x, 2), ("weight", weight, 2), ("states", states, 3)):
        arrays.check(name, array)
        if len(array.shape) != rank:
            raise ValueError(f"{name}: expected {rank} dimensions, got {list(array.shape)}")
    channels = int(x.shape[1])
    width = int(weight.shape[1])
    if not 2 <= width <= MOST_WIDTH:
        raise ValueError(
            f"weight: expected the shape [D, K] with K from 2 to {MOST_WIDTH}, got K = {width}"
        )
    check_form(arrays, "weight", weight, [channels, width], _FLOATS)
    check_form(arrays, "states", states, [*states.shape[:1], channels, width - 1], _FLOATS)
    if bias is not None:
        check_array(arrays, "bias", bias, [channels])
    tile = tile_of(channels)
    if tile is None:
        raise ValueError(f"x: expected a multiple of 8 channels, got {channels}")
    if activation not in ("silu", "identity"):
        raise ValueError(f"activation: expected silu or identity, got {activation}")
    types = (arrays.dtype_of(array) for array in (x, states, weight))
    return ConvKind(width, tile, activation, bias is not None, *types)
