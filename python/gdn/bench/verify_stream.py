# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The yardstick of verify with deferred writes: the bytes that a step moves and nothing else. Of
each row and value head it reads the state in its slot, pending tokens as far as there are some,
the window and the tokens' projections; it writes the tokens, the history of inputs, outputs, and
the state of a row whose tokens find no room."""

import torch
import triton
import triton.language as tl

from .deferred_stream import POLICIES, _move, _next_power, _read, _words
from .timing import time_calls

# Columns of a window: the convolutions of all models have four taps.
WINDOW = 3


@triton.jit
def _step(
    state,
    deltas,
    keys,
    history,
    projections,
    output,
    slots,
    counts,
    accepted,
    heads,
    key_heads,
    state_words: tl.constexpr,
    token_words: tl.constexpr,
    tokens: tl.constexpr,
    room: tl.constexpr,
    slot_words: tl.constexpr,
    column_words: tl.constexpr,
    column_most: tl.constexpr,
    window: tl.constexpr,
    projection_words: tl.constexpr,
    projection_most: tl.constexpr,
    output_words: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0) // heads
    head = tl.program_id(0) % heads
    ratio = heads // key_heads
    slot = tl.load(slots + row).to(tl.int64)
    pending = tl.load(counts + slot * key_heads + head // ratio) + tl.load(accepted + row)
    folds = pending + tokens > room
    own = slot * heads + head
    _move(state, own * state_words, state_words, block, folds)
    words = pending * token_words
    is_first = head % ratio == 0
    key = (slot * key_heads + head // ratio) * room * token_words
    _read(deltas, own * room * token_words, words, room * token_words)
    _read(keys, key, tl.where(is_first, words, 0), room * token_words)
    at = tl.arange(0, token_words)
    value = tl.full([token_words], 0x3C003C00, tl.int32)
    column = tl.arange(0, column_most)
    inside = column < column_words
    zero = tl.full([column_most], 0, tl.int32)
    for step in tl.static_range(window):
        _read(
            history,
            slot * slot_words + (step * heads + head) * column_words,
            column_words,
            column_most,
        )
    for step in tl.static_range(window + tokens):
        place = slot * slot_words + (step * heads + head) * column_words
        tl.store(history + place + column, zero, mask=inside)
    begin = tl.where(folds, 0, pending)
    for token in tl.static_range(tokens):
        share = ((row * tokens + token) * heads + head) * projection_words
        _read(projections, share, projection_words, projection_most)
        place = (begin + token) * token_words + at
        tl.store(deltas + own * room * token_words + place, value)
        tl.store(keys + key + place, value, mask=(at < token_words) & is_first)
        out = ((row * tokens + token) * heads + head) * output_words
        tl.store(output + out + tl.arange(0, output_words), tl.full([output_words], 0, tl.int32))


def fastest(sets: list[dict[str, torch.Tensor]], tokens: int, repeats: int) -> tuple[str, dict]:
    """The fastest policy over `sets`, the arguments of a verify each, and its times."""
    first = sets[0]
    count, heads = first["state_pool"].shape[:2]
    key_heads, room = first["pending_keys"].shape[1:3]
    columns = first["conv_pool"].shape[2]
    projection_words = _words(first["qkvz"]).numel() // len(first["qkvz"]) // heads
    column_words = _words(first["conv_pool"]).numel() // count // columns // heads
    output = _words(torch.empty_like(first["out"]))
    fixed = {
        "state_words": _words(first["state_pool"]).numel() // count // heads,
        "token_words": first["pending_deltas"].shape[3],
        "tokens": tokens,
        "room": room,
        "slot_words": column_words * columns * heads,
        "column_words": column_words,
        "column_most": _next_power(column_words),
        "window": WINDOW,
        "projection_words": projection_words,
        "projection_most": _next_power(projection_words),
        "output_words": output.numel() // len(first["out"]) // heads,
    }

    def call(arrays: dict[str, torch.Tensor], block: int, warps: int):
        names = ("state_pool", "pending_deltas", "pending_keys", "conv_pool", "qkvz")
        memory = [_words(arrays[name]) for name in names]
        numbers = [arrays[name] for name in ("slots", "pending_counts", "num_accepted")]
        grid = (len(arrays["slots"]) * heads,)
        return lambda: _step[grid](
            *memory, output, *numbers, heads, key_heads, **fixed, block=block, num_warps=warps
        )

    found = {
        name: time_calls([call(arrays, *policy) for arrays in sets], repeats)
        for name, policy in POLICIES.items()
    }
    name = min(found, key=lambda name: found[name]["us"])
    return name, found[name]
