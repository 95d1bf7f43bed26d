# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States inside of sequences that SGLang's prefix cache keeps."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ...array_library import check_starts, library_of

#: Tokens between the states that SGLang's own prefill returns.
CHUNK = 64


def fill_tracked(
    track_state: torch.Tensor,
    track_chunk_idx: torch.Tensor,
    states: torch.Tensor,
    query_start_loc: torch.Tensor,
) -> None:
    """Writes the state of sequence n before its chunk track_chunk_idx[n] to track_state[n]; where
    the index is negative, whatever is there is not looked at. `states` [1, chunks, HV, V, K] has
    those before each chunk, sequence by sequence. Nothing waits for the device."""
    lengths = query_start_loc.diff()
    chunks = (lengths + CHUNK - 1) // CHUNK
    rows = chunks.cumsum(0) - chunks + track_chunk_idx[: lengths.shape[0]].clamp(min=0)
    rows = rows.clamp(max=states.shape[1] - 1)
    track_state[: rows.shape[0]].copy_(states[0].index_select(0, rows))


def prefill_tracked(
    prefill: Callable,
    values: torch.Tensor,
    states: torch.Tensor,
    slots: torch.Tensor,
    query_start_loc: torch.Tensor,
    out: torch.Tensor | None,
    track_state: torch.Tensor,
    track_chunk_idx: torch.Tensor,
) -> torch.Tensor:
    """prefill(slots, query_start_loc, out) of tokens whose values are [T, HV, V], and the state of
    sequence n before its chunk track_chunk_idx[n] in track_state[n]; where the index is negative,
    whatever is there is not looked at.

    Each sequence is cut there: a launch takes what is in front, which leaves the wanted states in
    the slots, another one what is behind. What a launch skips is zeros, so outputs are added."""
    count = slots.shape[0]
    out = torch.empty_like(values, memory_format=torch.contiguous_format) if out is None else out
    if count == 0:
        return prefill(slots, query_start_loc, out)
    # Ahead of both launches, so that no state has changed where one of these fails.
    check_starts(library_of(values), query_start_loc, values.shape[0])
    behind = torch.empty_like(out)
    wanted = track_state[:count]
    kept = torch.empty_like(wanted, dtype=states.dtype) if wanted.dtype != states.dtype else wanted
    bounds, places = cut_at_chunks(slots, query_start_loc, track_chunk_idx)
    rows = slots.clamp(min=0)
    prefill(places, bounds[:-1], out)
    torch.index_select(states, 0, rows, out=kept)
    if kept is not wanted:
        wanted.copy_(kept)
    prefill(places, bounds[1:], behind)
    return out.add_(behind)


def cut_at_chunks(
    slots: torch.Tensor, query_start_loc: torch.Tensor, track_chunk_idx: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Starts of the parts of sequences, and -1 between slots. With these, starts from the first one
    on are those of parts in front of chunks, with skipped ones between them, and starts from the
    second one on are those of parts behind."""
    count = slots.shape[0]
    first, last = query_start_loc[:-1], query_start_loc[1:]
    bounds = query_start_loc.new_empty(2 * count + 1)
    bounds[::2] = query_start_loc
    bounds[1::2] = (first + CHUNK * track_chunk_idx[:count].clamp(min=0)).minimum(last)
    places = slots.new_full((2 * count - 1,), -1)
    places[::2] = slots
    return bounds, places
