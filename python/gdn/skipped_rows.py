# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of an output that belong to no live sequence. Kernels make them zeros; a caller may want
them as they were."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def keep_skipped_rows(arrays, out, live, launch: Callable[[], None]) -> None:
    """Calls `launch`, which writes all of `out` [rows, ..], and puts back the rows that are not
    `live` [rows], booleans."""
    before = arrays.copy(out)
    launch()
    rows = live.reshape(-1, *(1 for _ in out.shape[1:]))
    arrays.fill(out, arrays.xp.where(rows, out, before))


def live_sequences(slots, null_slot: int, num_slots: int):
    """Which sequences have a slot [N] that is not skipped."""
    return (slots >= 0) & (slots < num_slots) & (slots != null_slot)


def slots_with_tokens(arrays, slots, cu_seqlens, no_slot=-1):
    """The slots [N], i32, of sequences that have tokens, and `no_slot`, -1, for the others. On a
    CPU they are `slots` where all have some."""
    if arrays.device[0] == "cpu":
        starts = np.asarray(cu_seqlens)
        if (starts[1:] > starts[:-1]).all():
            return slots
    return arrays.xp.where(cu_seqlens[1:] > cu_seqlens[:-1], slots, no_slot)


def live_tokens(arrays, live, cu_seqlens, count: int):
    """Which of `count` tokens belong to a sequence that is `live` [N]."""
    if live.shape[0] == 0:
        return arrays.flags(count, False)
    tokens = arrays.numbers(range(count), "int32")
    starts = arrays.rows_apart(cu_seqlens)
    sequence = arrays.xp.searchsorted(starts, tokens, side="right") - 1
    inside = (sequence >= 0) & (sequence < live.shape[0])
    return inside & live[sequence.clip(0, live.shape[0] - 1)]
