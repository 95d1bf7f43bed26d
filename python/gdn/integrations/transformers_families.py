# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What layers of transformers call their parts: by family, how projections are handed to kernels
and where the norm and the last projection are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Family(NamedTuple):
    """Layers with the same parts. `project` makes what gdn.layer_kernels.PROJECTIONS names, of
    hidden states [B * T, hidden]."""

    layout: str
    project: Callable[[nn.Module, Tensor], tuple[Tensor, ...]]
    norm: str
    out_proj: str
    per_channel: bool = False


class Sizes(NamedTuple):
    """Of a layer's heads and convolution."""

    value_heads: int
    key_dim: int
    value_dim: int
    conv_width: int


def _interleaved(layer, x):
    return layer.in_proj_qkvz(x), layer.in_proj_ba(x)


def _split(layer, x):
    return layer.in_proj_qkv(x), layer.in_proj_z(x), layer.in_proj_b(x), layer.in_proj_a(x)


def _separate(layer, x):
    keys, values = (-1, layer.head_k_dim), (-1, layer.head_v_dim)
    return (
        layer.q_proj(x).unflatten(-1, keys),
        layer.k_proj(x).unflatten(-1, keys),
        layer.v_proj(x).unflatten(-1, values),
        layer.g_proj(x).unflatten(-1, values),
        layer.b_proj(x),
        layer.a_proj(x),
    )


def _kimi(layer, x):
    heads, gate = (-1, layer.head_dim), layer.forget_gate
    return (
        layer.q_proj(x).unflatten(-1, heads),
        layer.k_proj(x).unflatten(-1, heads),
        layer.v_proj(x).unflatten(-1, heads),
        layer.g_b_proj(layer.g_a_proj(x)).unflatten(-1, heads),
        layer.b_proj(x),
        gate.f_b_proj(gate.f_a_proj(x)).unflatten(-1, heads),
    )


QWEN3_NEXT = Family("interleaved", _interleaved, "norm", "out_proj")
QWEN3_5 = Family("split", _split, "norm", "out_proj")
OLMO_HYBRID = Family("separate", _separate, "o_norm", "o_proj")
# GLM-5.3-Flash has the same parts; whether decays have a bound is a number of the forget gate.
KIMI_LINEAR = Family("separate", _kimi, "o_norm", "o_proj", per_channel=True)

# By the names of classes: layers with the same parts may compute something else.
_FAMILIES = {
    "Qwen3NextGatedDeltaNet": QWEN3_NEXT,
    "Qwen3_5GatedDeltaNet": QWEN3_5,
    "Qwen3_5MoeGatedDeltaNet": QWEN3_5,
    "OlmoHybridGatedDeltaNet": OLMO_HYBRID,
    "KimiLinearDeltaAttention": KIMI_LINEAR,
    "Glm5NextTextLinearAttention": KIMI_LINEAR,
}


def family_of(layer: nn.Module) -> Family | None:
    """The family of a layer, or None if it is of none."""
    return _FAMILIES.get(type(layer).__name__)


def sizes_of(family: Family, layer: nn.Module) -> Sizes:
    if family is KIMI_LINEAR:
        return Sizes(layer.num_heads, layer.head_dim, layer.head_dim, layer.conv_kernel_size)
    return Sizes(layer.num_v_heads, layer.head_k_dim, layer.head_v_dim, layer.conv_kernel_size)


def bound_of(family: Family, layer: nn.Module) -> float | None:
    """The least logarithm of a decay, if it has one."""
    if family is not KIMI_LINEAR:
        return None
    return getattr(layer.forget_gate, "safe_gate_lower_bound", None)


def parameters_of(family: Family, layer: nn.Module) -> tuple[Tensor, ...]:
    """Weights of the convolution, A_log, dt_bias and the norm, as the layer has them."""
    gates = layer.forget_gate if family is KIMI_LINEAR else layer
    return layer.conv1d.weight, gates.A_log, gates.dt_bias, getattr(layer, family.norm).weight


def as_kernels_take(family: Family, sizes: Sizes, parameters: tuple[Tensor, ...]):
    """The same in the shapes and types of gdn.layer_run.LayerWeights. What has them already is
    not copied."""
    conv, a_log, dt_bias, norm = (x.detach() for x in parameters)
    bias = (sizes.value_heads, sizes.key_dim) if family.per_channel else (sizes.value_heads,)
    return (
        conv.squeeze(1),
        a_log.to(torch.float32).reshape(-1),
        dt_bias.to(torch.float32).reshape(bias),
        norm,
    )
