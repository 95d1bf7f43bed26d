# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn::post_conv_prep, the operator between a convolution and the rule."""

import torch
from torch import Tensor

from .arguments import decays
from .fakes import register_fake


@torch.library.custom_op("gdn::post_conv_prep", mutates_args=())
def post_conv_prep(
    mixed: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    key_heads: int,
    key_dim: int,
    l2norm: bool,
    exponents: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """q, k and v out of mixed [T, 2 * H * K + HV * V], each contiguous, q and k of unit length with
    `l2norm`; the logarithms of decays, or decays with `exponents`, and strengths [T, HV] of raw
    gates, in f32."""
    sizes = _sizes(mixed, a, key_heads, key_dim)
    parts = mixed.split([key_heads * key_dim] * 2 + [sizes[2][1] * sizes[2][2]], dim=1)
    q, k, v = (part.reshape(size) for part, size in zip(parts, sizes, strict=True))
    if l2norm:
        q, k = (_unit_length(x) for x in (q, k))
    log_decay = decays(a[None], A_log, dt_bias)[0]
    decay = log_decay.exp() if exponents else log_decay
    beta = b.float().sigmoid()
    # No views of the input.
    q, k, v = (x.clone(memory_format=torch.contiguous_format) for x in (q, k, v))
    return q, k, v, decay, beta


def _results(mixed, a, b, A_log, dt_bias, key_heads, key_dim, l2norm, exponents):
    heads = [mixed.new_empty(size) for size in _sizes(mixed, a, key_heads, key_dim)]
    gates = [a.new_empty(a.shape, dtype=torch.float32) for _ in range(2)]
    return (*heads, *gates)


register_fake(post_conv_prep, _results)


def _sizes(mixed: Tensor, a: Tensor, key_heads: int, key_dim: int) -> list[tuple[int, int, int]]:
    tokens, values = mixed.shape[0], mixed.shape[1] - 2 * key_heads * key_dim
    keys = (tokens, key_heads, key_dim)
    return [keys, keys, (tokens, a.shape[1], values // a.shape[1])]


def _unit_length(x: Tensor) -> Tensor:
    rows = x.float()
    return (rows * torch.rsqrt(rows.square().sum(-1, keepdim=True) + 1e-6)).to(x.dtype)
