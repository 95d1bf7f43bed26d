# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States inside of sequences that SGLang's prefix cache keeps."""

from __future__ import annotations

import torch

from ...rule_pool import delta_prefill

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
    inputs: tuple[torch.Tensor, ...],
    states: torch.Tensor,
    slots: torch.Tensor,
    query_start_loc: torch.Tensor,
    out: torch.Tensor | None,
    track_state: torch.Tensor,
    track_chunk_idx: torch.Tensor,
) -> torch.Tensor:
    """delta_prefill of `inputs`, and the same in track_state. Kernels write such states to the pool
    that they read from: here a pool of the batch, with the states of its sequences in front."""
    count = slots.shape[0]
    rows = torch.arange(2 * count + 1, dtype=torch.int32, device=slots.device)
    own, kept = rows[:count], rows[count : 2 * count]
    live = slots >= 0
    # Both halves: before the first chunk it is the state that the sequence begins with.
    first = states.index_select(0, slots.clamp(min=0))
    pool = torch.cat([first, first])
    out = delta_prefill(
        *inputs,
        pool,
        torch.where(live, own, -1),
        query_start_loc,
        checkpoints=(rows[: count + 1], track_chunk_idx[:count] * CHUNK, kept),
        out=out,
        l2norm=True,
    )
    track_state[:count].copy_(pool[count:])
    # Rows of padding write once more what another row writes, or what there is.
    source = torch.where(live, own, live.int().argmax())
    target = slots.index_select(0, source).clamp(min=0)
    states.index_copy_(0, target.long(), pool.index_select(0, source))
    return out
