# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's convolutions, on windows of its cache. A window is the first K - 1 columns of a row of the
cache, or more with drafts. Slot 0 is vLLM's null slot."""

import torch
from torch import Tensor

from ..arguments import check, check_ids, check_starts, refuse_gradients
from ..convolution import (
    causal_conv1d,
    check_weight,
    is_silu,
    starts_of,
)


def causal_conv1d_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    conv_states: Tensor,
    query_start_loc: Tensor,
    cache_indices: Tensor | None = None,
    has_initial_state: Tensor | None = None,
    activation: bool | str | None = "silu",
    pad_slot_id: int = -1,
    null_block_id: int | None = 0,
    metadata: object = None,
    validate_data: bool = False,
) -> Tensor:
    """x [D, T] of the sequences query_start_loc [N + 1] to y [D, T], with the tokens apart, by
    weight [D, K] and bias [D]. The windows conv_states[cache_indices[n]] [D, >= K - 1] are changed
    in place, and begin with zeros unless has_initial_state[n]. Sequences whose index is
    `null_block_id`, `pad_slot_id` or negative give zeros. There may be more indices than sequences.
    What is not of this function is not looked at: metadata, validate_data."""
    name = "causal_conv1d_fn"
    refuse_gradients(name, x=x, conv_states=conv_states)
    if x.dim() != 2:
        raise ValueError(f"{name}: x: expected the shape [D, T], got {list(x.shape)}")
    channels, count = x.shape[0], check_starts(name, "query_start_loc", query_start_loc)
    cache_indices = _of(name, "cache_indices", cache_indices, count)
    check(name, "has_initial_state", has_initial_state, (count,))
    windows = _windows(name, conv_states, weight, bias, channels, 0)
    slots = _slots(cache_indices, count, pad_slot_id, x.device)
    if has_initial_state is None:
        has_initial_state = torch.zeros(count, dtype=torch.bool, device=x.device)
    y = causal_conv1d(
        x.t(),
        weight,
        bias,
        windows,
        slots,
        query_start_loc,
        has_initial_state,
        None,
        None,
        is_silu(name, activation),
        -1 if null_block_id is None or cache_indices is None else null_block_id,
    )
    return y.t()


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: bool | str | None = None,
    conv_state_indices: Tensor | None = None,
    num_accepted_tokens: Tensor | None = None,
    query_start_loc: Tensor | None = None,
    max_query_len: int = -1,
    null_block_id: int | None = 0,
    validate_data: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """x [N, D] or [N, D, L], or [T, D] of the sequences query_start_loc [N + 1] of up to
    `max_query_len` tokens, to y of that shape, in `out`, or in x if it is None. The windows
    conv_state[conv_state_indices[n]] [D, W] are changed in place.

    Without num_accepted_tokens a window is the first K - 1 columns. With it [N] the columns hold
    K - 2 inputs and those of the tokens of the call before, of which num_accepted_tokens[n] >= 1
    are kept: W is at least K - 2 and the most tokens. Sequences of index `null_block_id` or
    negative give zeros."""
    name = "causal_conv1d_update"
    refuse_gradients(name, x=x, conv_state=conv_state)
    is_ragged = query_start_loc is not None
    if x.dim() != 2 and (is_ragged or x.dim() != 3):
        raise ValueError(
            f"{name}: x: expected the shape [N, D], or [N, D, L] without query_start_loc, got"
            f" {list(x.shape)}"
        )
    if is_ragged:
        if conv_state_indices is None:
            raise ValueError(f"{name}: conv_state_indices: expected slots, got None")
        check_ids(name, "conv_state_indices", conv_state_indices, (None,))
        tokens, starts, count = x, query_start_loc, conv_state_indices.shape[0]
        longest = max_query_len
        check_ids(name, "query_start_loc", query_start_loc, (count + 1,))
    else:
        count, longest = x.shape[0], 1 if x.dim() == 2 else x.shape[2]
        tokens = x if x.dim() == 2 else x.transpose(1, 2).reshape(count * longest, x.shape[1])
        starts = starts_of(count, longest, x.device)
    check_ids(name, "conv_state_indices", conv_state_indices, (count,))
    check_ids(name, "num_accepted_tokens", num_accepted_tokens, (count,))
    drafts = 0 if num_accepted_tokens is None else max(longest, 1)
    windows = _windows(name, conv_state, weight, bias, x.shape[1], drafts)
    y = causal_conv1d(
        tokens,
        weight,
        bias,
        windows,
        _slots(conv_state_indices, count, -1, x.device),
        starts,
        None,
        num_accepted_tokens,
        None,
        is_silu(name, activation),
        -1 if null_block_id is None or conv_state_indices is None else null_block_id,
    )
    if x.dim() == 3:
        y = y.view(count, longest, x.shape[1]).transpose(1, 2)
    if out is None:
        out = x
    check(name, "out", out, tuple(x.shape))
    return out.copy_(y)


def _windows(
    name: str, cache: Tensor, weight: Tensor, bias: Tensor | None, channels: int, drafts: int
) -> Tensor:
    """The columns of the cache that are read and written."""
    check_weight(name, weight, channels)
    check(name, "bias", bias, (channels,))
    check(name, "cache of windows", cache, (None, channels, None))
    width = weight.shape[1]
    least = width - 1 if drafts == 0 else width - 2 + drafts
    if cache.shape[2] < least:
        raise ValueError(
            f"{name}: cache of windows: expected at least {least} columns, got {cache.shape[2]}"
        )
    return cache if drafts else cache[:, :, : width - 1]


def _of(function: str, name: str, array: Tensor | None, count: int) -> Tensor | None:
    """The part that is of `count` sequences."""
    if array is None:
        return None
    check_ids(function, name, array, (None,))
    if array.shape[0] < count:
        raise ValueError(
            f"{function}: {name}: expected at least {count} elements, got {list(array.shape)}"
        )
    return array[:count]


def _slots(indices: Tensor | None, count: int, pad: int, device: torch.device) -> Tensor:
    if indices is None:
        return torch.arange(count, dtype=torch.int32, device=device)
    # Of i64, since bytes have no -1.
    return indices if pad < 0 else torch.where(indices == pad, -1, indices.long())
