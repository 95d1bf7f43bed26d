# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The yardstick of decode with deferred writes: the bytes that a step moves and nothing else. Of
each row and value head it reads the state in its slot, pending tokens as far as there are some,
windows and projections; it writes a token, windows and outputs, and of 1 in W rows the state."""

import torch
import triton
import triton.language as tl

from ..problems import PENDING_SCALES
from .inputs import Step
from .timing import time_calls

# Words of 32 bits that a block has at once, and its warps.
POLICIES = {
    "deferred 1024": (1024, 4),
    "deferred 2048": (2048, 4),
    "deferred 4096": (4096, 8),
    "deferred 4096 of 4 warps": (4096, 4),
}


@triton.jit
def _move(base, first, words: tl.constexpr, block: tl.constexpr, writes):
    """Reads `words` words from `first` on, and writes them as they are if asked to, or where they
    are a number that there is none of: who reads has to have a use for what comes."""
    for begin in tl.static_range(0, words, block):
        at = begin + tl.arange(0, block)
        value = tl.load(base + first + at, mask=at < words)
        tl.store(base + first + at, value, mask=(at < words) & (writes | (value == 0x7FC12345)))


@triton.jit
def _read(base, first, words, most: tl.constexpr):
    """The first `words` words of up to `most`, from `first` on."""
    at = tl.arange(0, most)
    value = tl.load(base + first + at, mask=at < words, other=0)
    tl.store(base + first + at, value, mask=(at < words) & (value == 0x7FC12345))


@triton.jit
def _step(
    state,
    low,
    scales,
    deltas,
    keys,
    conv,
    projections,
    output,
    slots,
    counts,
    heads,
    key_heads,
    state_words: tl.constexpr,
    low_words: tl.constexpr,
    reads_low: tl.constexpr,
    scale_words: tl.constexpr,
    token_words: tl.constexpr,
    room: tl.constexpr,
    conv_words: tl.constexpr,
    conv_most: tl.constexpr,
    projection_words: tl.constexpr,
    projection_most: tl.constexpr,
    output_words: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0) // heads
    head = tl.program_id(0) % heads
    ratio = heads // key_heads
    slot = tl.load(slots + row).to(tl.int64)
    pending = tl.load(counts + slot * key_heads + head // ratio)
    folds = pending == room
    own = slot * heads + head
    _move(state, own * state_words, state_words, block, folds)
    if reads_low:
        _move(low, own * low_words, low_words, block, folds)
    elif low_words > 0:  # noqa: SIM102
        if folds:
            _move(low, own * low_words, low_words, block, folds)
    if scale_words > 0:
        _move(scales, own * scale_words, scale_words, scale_words, folds)
    # A key head's keys are read by the first of its value heads.
    words = pending * token_words
    is_first = head % ratio == 0
    key = (slot * key_heads + head // ratio) * room * token_words
    _read(deltas, own * room * token_words, words, room * token_words)
    _read(keys, key, tl.where(is_first, words, 0), room * token_words)
    _move(conv, own * conv_words, conv_words, conv_most, row >= 0)
    share = (row * heads + head) * projection_words
    _read(projections, share, projection_words, projection_most)
    # The token of this step, and what the entry gives.
    at = tl.arange(0, token_words)
    place = (pending % room) * token_words + at
    value = tl.full([token_words], 0x3C003C00, tl.int32)
    tl.store(deltas + own * room * token_words + place, value)
    tl.store(keys + key + place, value, mask=(at < token_words) & is_first)
    out = tl.program_id(0) * output_words + tl.arange(0, output_words)
    tl.store(output + out, tl.full([output_words], 0, tl.int32))


def _words(array: torch.Tensor) -> torch.Tensor:
    """The memory of an array as words of 32 bits; of a window in the order of its memory."""
    if not array.is_contiguous():
        array = array.transpose(1, 2)
    return array.view(-1).view(torch.int32)


def _next_power(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def calls(step: Step, reads_low: bool, block: int, warps: int) -> list:
    """A launch for each set of slots of `step`, whose pools have pending tokens."""
    pools, sizes = step.pools, step.sizes
    heads, key_heads = sizes.value_heads, sizes.key_heads
    count, room = len(pools["state_pool"]), pools["pending_keys"].shape[2]
    state = _words(pools["state_pool"])
    low = _words(pools["state_low"]) if "state_low" in pools else state
    scales = _words(pools["state_scales"]) if "state_scales" in pools else state
    deltas, keys = _words(pools["pending_deltas"]), _words(pools["pending_keys"])
    conv, projections = _words(pools["conv_pool"]), _words(step.shared["qkvz"])
    output = _words(torch.empty_like(step.shared["out"]))
    conv_words = conv.numel() // count // heads
    projection_words = projections.numel() // sizes.rows // heads
    fixed = {
        "state_words": state.numel() // count // heads,
        "low_words": low.numel() // count // heads if "state_low" in pools else 0,
        "reads_low": reads_low and "state_low" in pools,
        "scale_words": scales.numel() // count // heads if "state_scales" in pools else 0,
        "token_words": deltas.numel() // count // heads // room,
        "room": room,
        "conv_words": conv_words,
        "conv_most": _next_power(conv_words),
        "projection_words": projection_words,
        "projection_most": _next_power(projection_words),
        "output_words": output.numel() // sizes.rows // heads,
        "block": block,
        "num_warps": warps,
    }
    counts = pools["pending_counts"]
    memory = (state, low, scales, deltas, keys, conv, projections, output)
    grid = (sizes.rows * heads,)
    return [
        lambda slots=slots: _step[grid](*memory, slots, counts, heads, key_heads, **fixed)
        for slots in step.slots
    ]


def moves(step: Step) -> bool:
    """Whether a step moves what the stream does: that of a whole layer, packed."""
    return "qkvz" in step.shared and "conv_pool" in step.pools


def fastest(step: Step, reads_low: bool, repeats: int) -> tuple[str, dict[str, float]]:
    """The fastest policy and its times. Pending tokens are numbers of bits afterwards."""
    if PENDING_SCALES in step.pools:
        step.pools[PENDING_SCALES].fill_(1)
    found = {
        name: time_calls(calls(step, reads_low, *policy), repeats)
        for name, policy in POLICIES.items()
    }
    name = min(found, key=lambda name: found[name]["us"])
    return name, found[name]
