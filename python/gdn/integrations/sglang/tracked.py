# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States inside of sequences that SGLang's prefix cache keeps."""

from __future__ import annotations

import torch

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
