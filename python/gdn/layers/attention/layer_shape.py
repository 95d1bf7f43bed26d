# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes and dtypes of a layer's states, and the shares that ranks have of its
weights: what vLLM's MambaStateShapeCalculator, MambaStateDtypeCalculator and weight
loaders do."""

import ctypes as c
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ... import _serving_abi as abi
from ...arrays import DTYPES
from ...call_options import refuse_meta
from ...runtime import Runtime

ORDERS = ("interleaved", "flat")


@dataclass(frozen=True)
class LayerHeads:
    """Heads of a layer, all ranks together."""

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int

    def raw(self) -> abi.LayerHeads:
        return abi.LayerHeads(
            self.num_key_heads, self.num_value_heads, self.key_dim, self.value_dim
        )


def gated_delta_net_state_shape(
    runtime: Runtime,
    tp_world_size: int,
    num_k_heads: int,
    num_v_heads: int,
    head_k_dim: int,
    head_v_dim: int,
    conv_kernel_size: int,
    num_spec: int = 0,
    conv_state_layout: str = "SD",
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of a slot: (width - 1 + num_spec, D) with layout SD, transposed with DS; (Hv, dv,
    dk). Heads are global, the shapes those of one rank."""
    if conv_state_layout not in ("SD", "DS"):
        raise ValueError(f"conv_state_layout: expected SD or DS, got {conv_state_layout}")
    conv, ssm = (c.c_int64 * 2)(), (c.c_int64 * 3)()
    heads = LayerHeads(num_k_heads, num_v_heads, head_k_dim, head_v_dim).raw()
    runtime.call(
        "gdnrt_layer_state_shape",
        c.byref(heads),
        tp_world_size,
        conv_kernel_size,
        num_spec,
        int(conv_state_layout == "DS"),
        conv,
        ssm,
    )
    return tuple(conv), tuple(ssm)


def gated_delta_net_state_dtype(
    runtime: Runtime,
    model_dtype: str,
    mamba_cache_dtype: str = "auto",
    mamba_ssm_cache_dtype: str = "auto",
) -> tuple[str, str]:
    """Dtypes of (conv, recurrent) states, by NumPy's names."""
    conv, ssm = c.c_int32(), c.c_int32()

    def code(name: str) -> int:
        if name == "auto":
            return -1
        if name not in DTYPES:
            raise ValueError(f"dtype: expected auto or one of {', '.join(DTYPES)}, got {name}")
        return DTYPES.index(name)

    runtime.call(
        "gdnrt_layer_state_dtype",
        code(model_dtype),
        code(mamba_cache_dtype),
        code(mamba_ssm_cache_dtype),
        c.byref(conv),
        c.byref(ssm),
    )
    return DTYPES[conv.value], DTYPES[ssm.value]


def weight_slices(
    runtime: Runtime,
    heads: LayerHeads,
    weight: str,
    tp_size: int,
    tp_rank: int,
    order: str = "interleaved",
) -> tuple[int, list[slice]]:
    """The dimension, and the slices of it that a rank has, in order. Names are those of the
    checkpoints without prefix and ".weight"."""
    if order not in ORDERS:
        raise ValueError(f"order: expected one of {', '.join(ORDERS)}, got {order}")
    axis, count = c.c_int32(), c.c_size_t()
    slices = (abi.Slice * abi.MAX_SLICES)()
    runtime.call(
        "gdnrt_layer_weight_slices",
        c.byref(heads.raw()),
        weight.encode(),
        ORDERS.index(order),
        tp_size,
        tp_rank,
        c.byref(axis),
        slices,
        c.byref(count),
    )
    return axis.value, [slice(s.begin, s.begin + s.size) for s in slices[: count.value]]


def kda_weight_slices(
    runtime: Runtime, heads: LayerHeads, weight: str, tp_size: int, tp_rank: int
) -> tuple[int, list[slice]]:
    """As weight_slices, of a layer with a decay of each channel."""
    axis, count = c.c_int32(), c.c_size_t()
    slices = (abi.Slice * abi.MAX_SLICES)()
    where = tp_size, tp_rank, c.byref(axis), slices, c.byref(count)
    runtime.call("gdnrt_kda_weight_slices", c.byref(heads.raw()), weight.encode(), *where)
    return axis.value, [slice(s.begin, s.begin + s.size) for s in slices[: count.value]]


def rank_place(runtime: Runtime, tp_size: int, cp_size: int, rank: int) -> tuple[int, int]:
    """(tp_rank, cp_rank) of rank `rank` of tp_size * cp_size. Ranks with one cp_rank sum the
    outputs of the layer, those with one tp_rank make one exchange."""
    tp_rank, cp_rank = c.c_int64(), c.c_int64()
    arguments = tp_size, cp_size, rank, c.byref(tp_rank), c.byref(cp_rank)
    runtime.call("gdnrt_rank_place", *arguments)
    return tp_rank.value, cp_rank.value


def weight_shape(
    runtime: Runtime,
    heads: LayerHeads,
    weight: str,
    *,
    hidden_size: int | None = None,
    conv_width: int | None = None,
) -> tuple[int | None, ...]:
    """The shape of the whole layer's weight; None where any size goes."""
    axis, slices = weight_slices(runtime, heads, weight, 1, 0)
    size = sum(part.stop - part.start for part in slices)
    if weight == "conv1d":
        return (size, 1, conv_width)
    if weight in ("A_log", "dt_bias", "norm"):
        return (size,)
    return (hidden_size, size) if axis == 1 else (size, hidden_size)


def check_weight(name: str, shape: tuple[int, ...], expected: tuple[int | None, ...]) -> None:
    """ValueError unless the shape is as expected. The middle dimension of conv1d may be left
    out."""
    forms = [expected, (expected[0], expected[2])] if len(expected) == 3 else [expected]
    shape = tuple(shape)
    if not any(
        len(shape) == len(form)
        and all(want in (None, got) for want, got in zip(form, shape, strict=True))
        for form in forms
    ):
        sizes = ", ".join("any" if size is None else str(size) for size in expected)
        raise ValueError(f"{name}: expected [{sizes}] by the configuration, got {list(shape)}")


def shard_weights(
    runtime: Runtime,
    heads: LayerHeads,
    weights: Mapping[str, object],
    tp_size: int,
    tp_rank: int,
    order: str = "interleaved",
    *,
    hidden_size: int | None = None,
    conv_width: int | None = None,
) -> dict[str, object]:
    """The share of one rank of weights by their names in checkpoints ("in_proj_qkvz.weight",
    "A_log"). NumPy arrays and tensors of PyTorch; a new array where there are several
    slices, otherwise a view. A weight of another shape than the heads give is an error, as
    are other sizes than `hidden_size` and `conv_width` where those are given."""
    shares = {}
    for name, array in weights.items():
        weight = name.removesuffix(".weight")
        axis, slices = weight_slices(runtime, heads, weight, tp_size, tp_rank, order)
        expected = weight_shape(
            runtime, heads, weight, hidden_size=hidden_size, conv_width=conv_width
        )
        if not hasattr(array, "shape"):
            raise TypeError(f"{name}: expected an array, got {type(array).__name__}")
        refuse_meta(name, array)
        check_weight(name, array.shape, expected)
        parts = [array[(slice(None),) * axis + (part,)] for part in slices]
        shares[name] = parts[0] if len(parts) == 1 else _concatenate(parts, axis)
    return shares


def _concatenate(parts: list, axis: int):
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis)
    import torch

    return torch.cat(parts, axis)
