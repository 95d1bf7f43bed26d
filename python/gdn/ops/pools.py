# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of heads and states as kernels take them: sizes of heads are multiples of 8 or 16, and the
last dimension is contiguous, of states one of the last two."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..rule_kernels import unit_of


def on_pools(
    entry: str,
    run: Callable[..., object],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    pools: list[Tensor],
    out: Tensor,
    scale: float | None,
) -> None:
    """run(q, k, v, pools, out, scale), which changes the first of pools [P, HV, V, K] and out
    [T, HV, V] in place. Arrays that no kernel of the entry takes are copied, whole pools too, and
    back."""
    key_dim, value_dim = q.shape[-1], v.shape[-1]
    unit = unit_of(entry, (q.device.type, q.device.index or 0))
    fits = not (key_dim % unit or value_dim % unit)
    in_order = any(all(pool.stride(dim) == 1 for pool in pools) for dim in (-1, -2))
    if fits and in_order and out.stride(-1) == 1:
        run(q, k, v, pools, out, scale)
        return
    more_keys, more_values = -key_dim % unit, -value_dim % unit
    pad = torch.nn.functional.pad
    copies = [pad(pool, (0, more_keys, 0, more_values)).contiguous() for pool in pools]
    wide = pad(out, (0, more_values)).contiguous()
    scale = key_dim**-0.5 if scale is None else scale
    q, k, v = pad(q, (0, more_keys)), pad(k, (0, more_keys)), pad(v, (0, more_values))
    run(q, k, v, copies, wide, scale)
    pools[0].copy_(copies[0][..., :value_dim, :key_dim])
    out.copy_(wide[..., :value_dim])


def with_channels(q: Tensor, a: Tensor, dt_bias: Tensor) -> tuple[Tensor, Tensor]:
    """Raw gates and their biases with as many channels as the keys that `run` gets, where each
    channel has its own: keys of others are zeros."""
    if a.dim() != q.dim() or a.shape[-1] >= q.shape[-1]:
        return a, dt_bias
    more = 0, q.shape[-1] - a.shape[-1]
    return torch.nn.functional.pad(a, more), torch.nn.functional.pad(dt_bias, more)
