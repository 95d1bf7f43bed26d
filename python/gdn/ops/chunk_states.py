# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States inside sequences of a rule whose kernels keep only the last ones: the rule runs once for
each chunk, on the chunks at that place of all sequences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from ..array_library import check_starts, library_of


def by_chunks(
    run: Callable[..., tuple[Tensor, Tensor]],
    inputs: tuple[Tensor, ...],
    states: Tensor | None,
    cu_seqlens: Tensor | None,
    size: int,
    state_v_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """`run(q, k, v, g, beta, states, cu_seqlens, True)` gives outputs and last states of FLA's
    layout. `inputs` are those tensors [B, T, ..], and `cu_seqlens` is read by the host.

    Returns outputs, the last states, and the states ahead of each `size` tokens
    [B, chunks, HV, K, V] in the type of q, of all sequences in a row with `cu_seqlens`."""
    q, v = inputs[0], inputs[2]
    batch, tokens = q.shape[:2]
    if cu_seqlens is None:
        ends = [n * tokens for n in range(batch + 1)]
    else:
        check_starts(library_of(cu_seqlens, name="cu_seqlens"), cu_seqlens, batch * tokens)
        ends = [int(end) for end in cu_seqlens.tolist()]
    counts = [-(-(end - first) // size) for first, end in pairwise(ends)]
    if states is None:
        sizes = (v.shape[3], q.shape[3]) if state_v_first else (q.shape[3], v.shape[3])
        states = v.new_zeros((len(counts), v.shape[2], *sizes), dtype=torch.float32)
    last = states.float().clone()
    flat = [x.flatten(0, 1) for x in inputs]
    out = torch.zeros_like(flat[2], memory_format=torch.contiguous_format)
    inside = last.new_empty((sum(counts), *last.shape[1:]), dtype=q.dtype)
    places = [sum(counts[:n]) for n in range(len(counts))]
    for chunk in range(max(counts, default=0)):
        live = [n for n, count in enumerate(counts) if chunk < count]
        firsts = [ends[n] + chunk * size for n in live]
        lengths = [min(size, ends[n + 1] - first) for n, first in zip(live, firsts, strict=True)]
        rows = torch.cat(
            [torch.arange(a, a + b, device=q.device) for a, b in zip(firsts, lengths, strict=True)]
        )
        starts = [sum(lengths[:n]) for n in range(len(lengths) + 1)]
        inside[[places[n] + chunk for n in live]] = last[live].to(q.dtype)
        part = [x[rows][None] for x in flat]
        given = (last[live], torch.tensor(starts, device=q.device))
        found, after = run(*part, *given, True)
        out[rows], last[live] = found[0], after
    rows = (1, -1) if cu_seqlens is not None else (batch, sum(counts) // max(batch, 1))
    return out.view(v.shape), last, inside.view(*rows, *last.shape[1:])
