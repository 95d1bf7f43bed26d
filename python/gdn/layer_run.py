# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer behind its projections, over arrays of NumPy or tensors of PyTorch: convolution, gates,
rule and gated norm in one call.

    run_layer(kind, (qkv, z, b, a), weights, windows, states, out, has_initial=True)

Kernels come from where those of gdn.rule do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .array_library import library_of
from .kernel_calls import call_of
from .layer_kernels import PROJECTIONS, LayerKind
from .runtime import Runtime


class LayerWeights(NamedTuple):
    """conv [C, K] and norm [dv] of the type of the projections, A_log [Hv] and dt_bias [Hv], or
    [Hv, dk] with a decay of each channel, of f32."""

    conv: object
    A_log: object
    dt_bias: object
    norm: object


def run_layer(
    kind: LayerKind,
    projections: Sequence,
    weights: LayerWeights,
    windows,
    states,
    out,
    *,
    has_initial: bool,
    runtime: Runtime | None = None,
) -> None:
    """Runs B sequences of T tokens each, one behind the other, into out [B * T, Hv, dv].

    `projections` are those of PROJECTIONS[kind.layout], in that order, each [B * T, ..]. windows
    [B, C, K - 1], the oldest input first, and states [B, Hv, dv, dk] are changed in place. Without
    `has_initial` they are not read: the sequences begin here.

    Raises ValueError for arrays that do not go together, ImageNotFoundError where no image is
    there, GdnError for shapes and types that the kernels do not take."""
    names = PROJECTIONS[kind.layout]
    if len(projections) != len(names):
        raise ValueError(
            f"projections: expected {', '.join(names)} for the layout {kind.layout}, got"
            f" {len(projections)} arrays"
        )
    arrays = library_of(states, runtime)
    batch, tokens = states.shape[0], out.shape[0]
    if batch == 0 or tokens == 0 or tokens % batch:
        raise ValueError(f"out: expected tokens of {batch} sequences of one length, got {tokens}")
    entry = "decode" if has_initial and tokens == batch else "prefill"
    call = call_of(kind, entry, arrays.device, arrays.stream, runtime, capturing=arrays.capturing)
    taken = call.names
    slots = arrays.numbers(range(batch), "int32")
    given = {
        "conv_weight": weights.conv,
        "A_log": weights.A_log,
        "dt_bias": weights.dt_bias,
        "norm_weight": weights.norm,
        "slots": slots,
        "write_slots": slots,
        "conv_pool": windows,
        "state_pool": states,
        "out": out,
    }
    for name, array in zip(names, projections, strict=True):
        given[name] = arrays.rows_apart(array)
    if entry == "prefill":
        ends = range(0, tokens + 1, tokens // batch)
        given["cu_seqlens"] = arrays.numbers(ends, "int32")
    if "has_initial" in taken:
        given["has_initial"] = arrays.flags(batch, has_initial)
    call(*[given[name] for name in taken])
