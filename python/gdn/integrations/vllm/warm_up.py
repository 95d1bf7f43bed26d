# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of padding alone, of all sizes: with them kernels take the memory that they work in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .steps import Run


def warm_up_runs(
    tokens: int, most: int, columns: int, array: Callable[[list], object]
) -> Iterator[list[Run]]:
    """Launches of one, two, four, .. and `most` sequences, or as many as there are tokens. Between
    these numbers other variants of kernels are chosen. Sequences with drafts have `columns` tokens
    (0: there are none), prompts all that there are. `array` makes one of the device from a list of
    integers or flags."""
    count, most = 1, min(tokens, most)
    while count:
        nothing = array([0] * count)
        slots = {"slots": nothing, "write_slots": nothing}
        ends = array([tokens * n // count for n in range(count + 1)])
        initial = array([False] * count)
        prefill = {"cu_seqlens": ends, "has_initial": initial} | slots
        runs = [Run("decode", slice(0, count), slots), Run("prefill", slice(0, tokens), prefill)]
        if 0 < columns * count <= tokens:
            verify = {
                "cu_seqlens": array([columns * n for n in range(count + 1)]),
                "token_slots": array([[0] * columns] * count),
                "num_accepted": array([1] * count),
            }
            runs.append(Run("verify", slice(0, columns * count), verify))
        yield runs
        count = min(2 * count, most) if count < most else 0
