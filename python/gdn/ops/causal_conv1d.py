# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of the package causal-conv1d. A window is the last W inputs of a channel, the
oldest first, and W is at least K - 1."""

import torch
from torch import Tensor

from .arguments import check, check_ids, check_starts, refuse_gradients
from .convolution import (
    causal_conv1d,
    check_weight,
    is_silu,
    starts_of,
    uniform,
)
from .rings import Rings
from .windows import advance, batch_of


def causal_conv1d_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    seq_idx: Tensor | None = None,
    initial_states: Tensor | None = None,
    return_final_states: bool = False,
    final_states_out: Tensor | None = None,
    activation: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """x [B, D, L] in any layout to y [B, D, L] in the same, by weight [D, K] and bias [D]; with
    `return_final_states` the windows [B, D, K - 1] behind the last tokens too, in
    `final_states_out` if it is given. `initial_states` [B, D, K - 1] are zeros if None, and stay as
    they are. `seq_idx` [B, L] numbers the sequences of a row; what it numbers -1 gives zeros."""
    name = "causal_conv1d_fn"
    refuse_gradients(name, x=x, weight=weight)
    if x.dim() != 3:
        raise ValueError(f"{name}: x: expected the shape [B, D, L], got {list(x.shape)}")
    batch, channels, length = x.shape
    check_weight(name, weight, channels)
    width = weight.shape[1]
    windows = (batch, channels, width - 1)
    check(name, "bias", bias, (channels,))
    check_ids(name, "seq_idx", seq_idx, (batch, length))
    check(name, "initial_states", initial_states, windows)
    check(name, "final_states_out", final_states_out, windows)
    if seq_idx is not None and return_final_states:
        raise ValueError(f"{name}: return_final_states: expected False with seq_idx, got True")
    pool = None
    if initial_states is not None:
        pool = initial_states.clone()
    elif return_final_states:
        pool = x.new_zeros(windows)
    y = causal_conv1d(
        x.transpose(1, 2).reshape(batch * length, channels),
        weight,
        bias,
        pool,
        torch.arange(batch, dtype=torch.int32, device=x.device),
        uniform(batch, length, x.device),
        None,
        None,
        None if seq_idx is None else seq_idx.reshape(-1),
        is_silu(name, activation),
        -1,
    )
    y = y.view(batch, length, channels).transpose(1, 2)
    if x.stride(2) == 1 and x.stride(1) != 1:
        y = y.contiguous()
    if not return_final_states:
        return y
    if final_states_out is None:
        return y, pool
    return y, final_states_out.copy_(pool)


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    cache_seqlens: Tensor | None = None,
    conv_state_indices: Tensor | None = None,
) -> Tensor:
    """x [B, D], or [B, D, L], to y of the same shape. The windows `conv_state` [B, D, W], or those
    of `conv_state_indices` [B] in a pool [P, D, W], are changed in place. A sequence of index -1 is
    skipped: its results are zeros. With `cache_seqlens` [B] windows are rings, in which token t of
    sequence n goes to column (cache_seqlens[n] + t) % W."""
    name = "causal_conv1d_update"
    refuse_gradients(name, x=x, conv_state=conv_state)
    if x.dim() not in (2, 3):
        raise ValueError(f"{name}: x: expected the shape [B, D] or [B, D, L], got {list(x.shape)}")
    inputs = x if x.dim() == 3 else x[..., None]
    batch, channels, length = inputs.shape
    check_weight(name, weight, channels)
    slots, width = conv_state_indices, weight.shape[1]
    check(name, "bias", bias, (channels,))
    check_ids(name, "cache_seqlens", cache_seqlens, (batch,))
    check_ids(name, "conv_state_indices", slots, (batch,))
    check(name, "conv_state", conv_state, (batch if slots is None else None, channels, None))
    if conv_state.shape[2] < width - 1:
        raise ValueError(
            f"{name}: conv_state: expected windows of at least {width - 1} inputs, got"
            f" {conv_state.shape[2]}"
        )
    if slots is None:
        slots = torch.arange(batch, dtype=torch.int32, device=x.device)
    rings = None if cache_seqlens is None else Rings(conv_state, slots, cache_seqlens)
    y = causal_conv1d(
        inputs.transpose(1, 2).reshape(batch * length, channels),
        weight,
        bias,
        conv_state if rings is None else rings.windows,
        slots if rings is None else rings.slots,
        starts_of(batch, length, x.device),
        None,
        None,
        None,
        is_silu(name, activation),
        -1,
    )
    if rings is not None:
        rings.store(length)
    y = y.view(batch, length, channels).transpose(1, 2)
    return y if x.dim() == 3 else y[..., 0]


def causal_conv1d_varlen_states(x: Tensor, cu_seqlens: Tensor, state_len: int) -> Tensor:
    """The windows [N, D, state_len] behind the sequences of x [T, D], with zeros where a sequence
    is shorter."""
    name = "causal_conv1d_varlen_states"
    check(name, "x", x, (None, None))
    count = check_starts(name, "cu_seqlens", cu_seqlens)
    windows = x.new_zeros((count, state_len, x.shape[1])).transpose(1, 2)
    if x.shape[0] > 0 and count > 0 and state_len > 0:
        slots = torch.arange(count, device=x.device)
        batch = batch_of(x.shape[0], cu_seqlens, slots, count, -1)
        advance(x, batch, windows, windows.clone(), None, state_len + 1)
    return windows
