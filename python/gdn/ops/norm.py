# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn::gated_rms_norm, the operator of a norm of rows that is gated: gdn's kernel where there is
one, else operations of PyTorch."""

import torch
from torch import Tensor

from ..array_library import library_of
from ..call_options import finite
from ..gated_norm import gated_rms_norm as norm_of_heads
from ..kernel_calls import find_refusal
from ..op_kernels import NormKind, has_norm
from .fakes import register_fake


@torch.library.custom_op("gdn::gated_rms_norm", mutates_args=())
def gated_rms_norm(
    x: Tensor, gate: Tensor, weight: Tensor | None, eps: float, sigmoid: bool
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight * act(gate) over the last dimension, in f32, to the type
    of x; act is silu, or the sigmoid."""
    # Kernels have an epsilon above zero.
    if weight is not None and x.numel() > 0 and eps > 0 and _has_kernel(x, gate):
        heads = (-1, 1, x.shape[-1])
        activation = "sigmoid" if sigmoid else "silu"
        y = norm_of_heads(
            x.reshape(heads), gate.reshape(heads), weight, eps=eps, activation=activation
        )
        return y.view(x.shape)
    rows = x.float()
    y = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + eps)
    if weight is not None:
        y = y * weight.float()
    raw = gate.float()
    y = y * (raw.sigmoid() if sigmoid else torch.nn.functional.silu(raw))
    return y.to(x.dtype).contiguous()


def check_eps(name: str, eps: object) -> float:
    """A number that is added to squares."""
    number = finite(name, eps)
    if number is None or number < 0:
        raise ValueError(f"{name}: expected a number of 0 or more, got {eps}")
    return number


def _has_kernel(x: Tensor, gate: Tensor) -> bool:
    if x.dtype != gate.dtype or not has_norm(x.shape[-1]):
        return False
    arrays = library_of(x)
    kind = NormKind(x.shape[-1], False, arrays.dtype_of(x))
    return find_refusal(kind, arrays.device) is None


def _results(x, gate, weight, eps, sigmoid):
    return x.new_empty(x.shape)


register_fake(gated_rms_norm, _results)
