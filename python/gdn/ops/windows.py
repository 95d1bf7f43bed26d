# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The convolution of a ragged batch with windows of its last inputs, with operations of PyTorch: no
value is read by the host, so a CUDA graph takes all of it.

A window [W] of a channel has its last W inputs, the oldest first, and a convolution of width K
reads the last K - 1 of them. With `num_accepted` it is as vLLM verifies drafts: the sequence goes
on behind the first num_accepted[n] of the tokens before, whose inputs are behind K - 2 older ones.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .slots import put


class Batch(NamedTuple):
    """Which tokens and windows belong together; index tensors are of i64."""

    starts: Tensor  # [N]
    lengths: Tensor  # [N]
    slots: Tensor  # [N], in range
    live: Tensor  # [N]
    sequence: Tensor  # [T], in range
    position: Tensor  # [T], in the sequence
    in_use: Tensor  # [T]


def batch_of(tokens: int, cu_seqlens: Tensor, slots: Tensor, count: int, null_slot: int) -> Batch:
    """`count` is the number of windows. A sequence is skipped if its slot is `null_slot`, negative
    or not below it; so are tokens of no sequence."""
    ends = cu_seqlens.long()
    starts, lengths = ends[:-1], ends.diff()
    live = (slots >= 0) & (slots < count) & (slots != null_slot)
    index = torch.arange(tokens, device=ends.device)
    found = torch.searchsorted(ends, index, right=True) - 1
    sequence = found.clamp(0, starts.shape[0] - 1)
    in_use = (found == sequence) & live[sequence]
    position = index - starts[sequence]
    return Batch(
        starts, lengths, slots.long().clamp(0, count - 1), live, sequence, position, in_use
    )


def windows_of(batch: Batch, windows: Tensor, has_initial: Tensor | None) -> Tensor:
    """[N, D, W]: zeros where there is no initial one."""
    taken = windows[batch.slots]
    if has_initial is None:
        return taken
    return torch.where(has_initial.bool()[:, None, None], taken, torch.zeros_like(taken))


def first_columns(windows: Tensor, width: int, num_accepted: Tensor | None) -> Tensor:
    """Where the K - 1 inputs before the first token are in a window, [N] or [1]."""
    last = windows.shape[2] - (width - 1)
    if num_accepted is None:
        return torch.full((1,), last, dtype=torch.int64, device=windows.device)
    return (num_accepted.long() - 1).clamp(0, last)


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    silu: bool,
    batch: Batch,
    taken: Tensor | None,
    first: Tensor | None,
    segments: Tensor | None,
) -> Tensor:
    """x [T, D] to y [T, D] in f32; `taken` and `first` are of the functions above. With `segments`
    [T] a token reads only tokens of the same number, and windows are of the first of a sequence."""
    channels, width = weight.shape
    taps, inputs = weight.float(), x.float()
    y = inputs * taps[:, width - 1]
    if bias is not None:
        y += bias.float()
    for back in range(1, min(width, x.shape[0])):
        reads = batch.position[back:] >= back
        if segments is not None:
            reads &= segments[back:] == segments[:-back]
        product = inputs[:-back] * taps[:, width - 1 - back]
        y[back:] += product.masked_fill_(~reads[:, None], 0)
    if taken is not None and width > 1:
        columns = first[:, None] + torch.arange(width - 1, device=x.device)
        columns = columns[:, None].expand(taken.shape[0], channels, width - 1)
        before = torch.nn.functional.pad(taken.gather(2, columns).float(), (0, width - 2))
        # [N, D, K - 1]: what the first K - 1 tokens of a sequence get of its window.
        shares = (before.unfold(2, width - 1, 1) * taps[:, None, : width - 1]).sum(3)
        reads = batch.position < width - 1
        if segments is not None:
            reads &= segments == segments[batch.starts.clamp(0, x.shape[0] - 1)][batch.sequence]
        share = shares[batch.sequence, :, batch.position.clamp(0, width - 2)]
        y += share.masked_fill_(~reads[:, None], 0)
    if silu:
        y = torch.nn.functional.silu(y)
    in_use = batch.in_use if segments is None else batch.in_use & (segments >= 0)
    return y.masked_fill_(~in_use[:, None], 0)


def advance(
    x: Tensor, batch: Batch, windows: Tensor, taken: Tensor, first: Tensor | None, width: int
) -> None:
    """Writes the windows behind the tokens of live sequences that have some; others keep their
    bits. `first` is given for drafts."""
    columns = torch.arange(windows.shape[2], device=x.device)
    lengths = batch.lengths[:, None]
    if first is None:
        lead, source = windows.shape[2] - lengths, lengths + columns
    else:
        lead, source = width - 2, first[:, None] + 1 + columns
    token = (columns - lead).expand(lengths.shape[0], -1)
    is_input = (token >= 0) & (token < lengths)
    source = torch.where(token < 0, source, columns).clamp(0, windows.shape[2] - 1)
    old = taken.gather(2, source[:, None].expand(taken.shape))
    rows = (batch.starts[:, None] + token).clamp(0, x.shape[0] - 1)
    new = x[rows].transpose(1, 2).to(windows.dtype)
    put(
        windows,
        torch.where(is_input[:, None], new, old),
        batch.slots,
        batch.live & (batch.lengths > 0),
    )
