# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's norm of rows that is gated."""

import torch
from torch import Tensor

from ..arguments import check_others, refuse_gradients
from ..norm import gated_rms_norm


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
    """FLA's: x and g [.., D] to the norm of each row by weight [D], gated by `activation` (swish,
    silu or sigmoid) of g. `residual` is added to x ahead of the norm. With `prenorm` the sum is
    returned too, in the type of the residual, in f32 with `residual_in_fp32` where there is none.
    ValueError for a bias."""
    name = "rms_norm_gated"
    refuse_gradients(name, x=x, g=g)
    check_others(name, {"bias": bias})
    if activation not in ("swish", "silu", "sigmoid"):
        raise ValueError(f"{name}: activation: expected swish, silu or sigmoid, got {activation!r}")
    if g.shape != x.shape:
        raise ValueError(f"{name}: g: expected the shape {list(x.shape)}, got {list(g.shape)}")
    if weight is not None and weight.shape != x.shape[-1:]:
        raise ValueError(
            f"{name}: weight: expected the shape {list(x.shape[-1:])}, got {list(weight.shape)}"
        )
    total = x
    if residual is not None:
        if residual.shape != x.shape:
            raise ValueError(
                f"{name}: residual: expected the shape {list(x.shape)}, got {list(residual.shape)}"
            )
        total = x.float() + residual.float()
    y = gated_rms_norm(total, g, weight, float(eps), activation == "sigmoid").to(x.dtype)
    if not prenorm:
        return y
    kept = x.dtype if residual is None else residual.dtype
    return y, total.to(torch.float32 if residual is None and residual_in_fp32 else kept)
