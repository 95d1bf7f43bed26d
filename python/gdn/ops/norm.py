# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn::gated_rms_norm, the operator of a norm of rows that is gated."""

import torch
from torch import Tensor


@torch.library.custom_op("gdn::gated_rms_norm", mutates_args=())
def gated_rms_norm(
    x: Tensor, gate: Tensor, weight: Tensor | None, eps: float, sigmoid: bool
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight * act(gate) over the last dimension, in f32, to the type
    of x; act is silu, or the sigmoid."""
    rows = x.float()
    y = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + eps)
    if weight is not None:
        y = y * weight.float()
    raw = gate.float()
    y = y * (raw.sigmoid() if sigmoid else torch.nn.functional.silu(raw))
    return y.to(x.dtype).contiguous()


@gated_rms_norm.register_fake
def _(x, gate, weight, eps, sigmoid):
    return x.new_empty(x.shape)
