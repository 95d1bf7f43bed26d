# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's norms of rows that are gated. All are the gated RMS norm: a layer norm is that of rows
without their mean."""

from __future__ import annotations

import torch
from torch import Tensor

from ..arguments import refuse_gradients
from ..norm import check_eps, gated_rms_norm

_ACTIVATIONS = ("swish", "silu", "sigmoid")


def rms_norm_gated(
    x: Tensor,
    g: Tensor,
    weight: Tensor | None,
    bias: Tensor | None = None,
    activation: str = "swish",
    residual: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    eps: float = 1e-6,
) -> Tensor | tuple[Tensor, Tensor]:
    """FLA's: x and g [.., D] to the norm of each row by weight [D], plus bias [D], gated by
    `activation` (swish, silu or sigmoid) of g. `residual` is added to x ahead of the norm. With
    `prenorm` the sum is returned too, in the type of the residual, in f32 with `residual_in_fp32`
    where there is none."""
    name = "rms_norm_gated"
    y, total = _norm(name, x, g, weight, bias, activation, residual, residual_in_fp32, eps, False)
    return (y, total) if prenorm else y


def layer_norm_gated(
    x: Tensor,
    g: Tensor,
    weight: Tensor | None,
    bias: Tensor | None = None,
    activation: str = "swish",
    residual: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    eps: float = 1e-6,
) -> Tensor | tuple[Tensor, Tensor]:
    """As rms_norm_gated, of each row less its mean."""
    name = "layer_norm_gated"
    y, total = _norm(name, x, g, weight, bias, activation, residual, residual_in_fp32, eps, True)
    return (y, total) if prenorm else y


def rms_norm_swish_gate_linear(
    x: Tensor,
    g: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    linear_weight: Tensor,
    linear_bias: Tensor | None,
    residual: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    eps: float = 1e-6,
) -> Tensor | tuple[Tensor, Tensor]:
    """rms_norm_gated, and a projection by linear_weight [O, D] and linear_bias [O], of PyTorch, in
    the type of x."""
    norm = (norm_weight, norm_bias, "swish", residual, residual_in_fp32, eps, False)
    y, total = _norm("rms_norm_swish_gate_linear", x, g, *norm)
    out = _projected(y, linear_weight, linear_bias)
    return (out, total) if prenorm else out


def layer_norm_swish_gate_linear(
    x: Tensor,
    g: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    linear_weight: Tensor,
    linear_bias: Tensor | None,
    residual: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    eps: float = 1e-6,
) -> Tensor | tuple[Tensor, Tensor]:
    """As rms_norm_swish_gate_linear, with layer_norm_gated."""
    norm = (norm_weight, norm_bias, "swish", residual, residual_in_fp32, eps, True)
    y, total = _norm("layer_norm_swish_gate_linear", x, g, *norm)
    out = _projected(y, linear_weight, linear_bias)
    return (out, total) if prenorm else out


def _norm(
    name: str,
    x: Tensor,
    g: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    activation: str,
    residual: Tensor | None,
    residual_in_fp32: bool,
    eps: float,
    is_centred: bool,
) -> tuple[Tensor, Tensor]:
    """The gated norm in the type of x, and the sum that was normed in the type that callers keep
    it in."""
    refuse_gradients(name, x=x, g=g)
    if activation not in _ACTIVATIONS:
        raise ValueError(f"{name}: activation: expected swish, silu or sigmoid, got {activation!r}")
    eps = check_eps(f"{name}: eps", eps)
    for which, array, shape in (
        ("g", g, x.shape),
        ("weight", weight, x.shape[-1:]),
        ("bias", bias, x.shape[-1:]),
        ("residual", residual, x.shape),
    ):
        if array is not None and array.shape != shape:
            raise ValueError(
                f"{name}: {which}: expected the shape {list(shape)}, got {list(array.shape)}"
            )
    total = x if residual is None else x.float() + residual.float()
    rows = total
    if is_centred:
        rows = total.float()
        rows = rows - rows.mean(-1, keepdim=True)
    # A kernel has one type for rows and gates; a sum stays in f32 until it is normed.
    gate = g if rows.dtype == x.dtype else g.to(rows.dtype)
    is_sigmoid = activation == "sigmoid"
    if bias is not None:
        rows, gate = rows.float(), gate.float()
    y = gated_rms_norm(rows, gate, weight, eps, is_sigmoid)
    if bias is not None:
        y = y + bias.float() * (gate.sigmoid() if is_sigmoid else torch.nn.functional.silu(gate))
    kept = x.dtype if residual is None else residual.dtype
    if residual is None and residual_in_fp32:
        kept = torch.float32
    return y.to(x.dtype), total.to(kept)


def _projected(y: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    bias = None if bias is None else bias.to(y.dtype)
    return torch.nn.functional.linear(y, weight.to(y.dtype), bias)
