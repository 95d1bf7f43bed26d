# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn::causal_conv1d, the operator that the convolutions of this package call: gdn's kernels where
there are some, else operations of PyTorch."""

import torch
from torch import Tensor

from ..array_library import check_starts, library_of
from ..conv1d import causal_conv1d as convolve_in_place
from ..kernel_calls import find_refusal
from ..op_kernels import MOST_WIDTH, ConvKind, tile_of
from .arguments import check
from .fakes import register_fake
from .windows import advance, batch_of, convolve, first_columns, windows_of


@torch.library.custom_op("gdn::causal_conv1d", mutates_args=("windows",))
def causal_conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    windows: Tensor | None,
    slots: Tensor,
    cu_seqlens: Tensor | None,
    has_initial: Tensor | None,
    num_accepted: Tensor | None,
    segments: Tensor | None,
    silu: bool,
    null_slot: int,
) -> Tensor:
    """x [T, D] to y [T, D] in the type of x, by weight [D, K] and bias [D]; sums are of f32.
    Sequence n has the tokens from cu_seqlens[n] to cu_seqlens[n + 1], or token n, and the window
    windows[slots[n]] [D, W] with W >= K - 1, which is changed in place; it begins with zeros if
    has_initial[n] is false. Without `windows` all begin with zeros. A sequence without tokens
    changes nothing. One whose slot is `null_slot`, negative or not below the number of windows is
    skipped: its results are zeros. `num_accepted` [N] is of drafts (windows.py), and `segments` [T]
    parts a sequence; tokens of a negative segment are zeros."""
    tokens, width = x.shape[0], weight.shape[1]
    if tokens == 0 or slots.shape[0] == 0 or (windows is not None and windows.shape[0] == 0):
        return x.new_zeros(x.shape)
    if num_accepted is None and segments is None:
        pool, initial = windows, None if has_initial is None else has_initial.bool()
        if windows is None:
            pool = x.new_empty((slots.shape[0], x.shape[1], width - 1))
            initial = torch.zeros(slots.shape[0], dtype=torch.bool, device=x.device)
        if _has_kernel(x, weight, bias, pool, silu):
            return convolve_in_place(
                x,
                weight,
                pool,
                slots,
                bias=bias,
                cu_seqlens=cu_seqlens,
                has_initial=initial,
                activation="silu" if silu else "identity",
                null_slot=null_slot,
            )
    if cu_seqlens is None:
        cu_seqlens = uniform(slots.shape[0], 1, x.device)
    else:
        check_starts(library_of(x), cu_seqlens, tokens)
    count = slots.shape[0] if windows is None else windows.shape[0]
    batch = batch_of(tokens, cu_seqlens, slots, count, null_slot)
    taken = first = None
    if windows is not None:
        taken = windows_of(batch, windows, has_initial)
        first = first_columns(windows, width, num_accepted)
    y = convolve(x, weight, bias, silu, batch, taken, first, segments)
    if windows is not None:
        advance(x, batch, windows, taken, None if num_accepted is None else first, width)
    return y.to(x.dtype)


def _has_kernel(
    x: Tensor, weight: Tensor, bias: Tensor | None, windows: Tensor, silu: bool
) -> bool:
    """Kernels have windows of K - 1 inputs."""
    channels, width = weight.shape
    tile = tile_of(channels)
    if tile is None or not 2 <= width <= MOST_WIDTH or windows.shape[2] != width - 1:
        return False
    arrays = library_of(x)
    types = (arrays.dtype_of(array) for array in (x, windows, weight))
    activation = "silu" if silu else "identity"
    kind = ConvKind(width, tile, activation, bias is not None, *types)
    return find_refusal(kind, arrays.device) is None


def _results(
    x, weight, bias, windows, slots, cu_seqlens, has_initial, num_accepted, segments, silu, null
):
    return x.new_empty(x.shape)


register_fake(causal_conv1d, _results)


def check_weight(function: str, weight: Tensor, channels: int) -> None:
    """[D, K] of a convolution, with one column at least."""
    check(function, "weight", weight, (channels, None))
    if weight.shape[1] < 1:
        raise ValueError(f"{function}: weight: expected the shape [D, K] with K from 1, got K = 0")


def is_silu(function: str, activation: bool | str | None) -> bool:
    if activation in (None, False):
        return False
    if activation in (True, "silu", "swish"):
        return True
    raise ValueError(f"{function}: activation: expected None, silu or swish, got {activation!r}")


def starts_of(count: int, tokens: int, device: torch.device) -> Tensor | None:
    """cu_seqlens of `count` sequences of `tokens` each, for the operator."""
    return None if tokens == 1 else uniform(count, tokens, device)


def uniform(count: int, tokens: int, device: torch.device) -> Tensor:
    """cu_seqlens of `count` sequences of `tokens` each."""
    return torch.arange(count + 1, dtype=torch.int64, device=device) * tokens
