# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where FlashInfer's prefill reads states and leaves them, and those inside sequences."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..arguments import check
from ..slots import put, put_in_range

# Tokens between checkpoints are a multiple of it.
_CHUNK = 64
_TYPES = (torch.float32, torch.bfloat16, torch.float16)


class States(NamedTuple):
    """Of a batch, in place."""

    pool: Tensor
    slots: Tensor
    has_initial: Tensor | None  # all, if None


def states_of(
    shape: tuple[int, ...],
    cu_seqlens: Tensor,
    initial: Tensor | None,
    final: Tensor | None,
    indices: Tensor | None,
    is_kept: bool,
) -> States:
    """States that the prefill of N sequences reads and writes. `shape` is of those of a batch,
    `initial` and `final` are as `indices` say; `final` gets the last ones if `is_kept`."""
    device = cu_seqlens.device
    index = torch.arange(shape[0], dtype=torch.int32, device=device)
    if not is_kept or final is None:
        # A pool of this call's own; a slot out of range stays one.
        if initial is None:
            pool, has = torch.zeros(shape, device=device), torch.zeros_like(index, dtype=torch.bool)
            return States(pool, index, has)
        if indices is None:
            return States(initial.to(torch.float32, copy=True), index, None)
        live = (indices >= 0) & (indices < initial.shape[0])
        pool = initial[indices.long().clamp(0, initial.shape[0] - 1)].float()
        return States(pool, torch.where(live, index, -1), None)
    slots = index if indices is None else indices
    if initial is None:
        return States(final, slots, torch.zeros_like(index, dtype=torch.bool))
    if initial is not final:
        live = (slots >= 0) & (slots < min(initial.shape[0], final.shape[0]))
        at = torch.where(live, slots, 0).long()
        put(final, initial[at].to(final.dtype), at, live & (cu_seqlens.diff() > 0))
    return States(final, slots, None)


def check_states(function: str, name: str, states: Tensor | None, shape: tuple) -> None:
    check(function, name, states, shape)
    if states is not None and states.dtype not in _TYPES:
        raise ValueError(
            f"{function}: {name} must have dtype float32, bfloat16 or float16, got {states.dtype}"
        )


class Checkpoints(NamedTuple):
    """States [C, HV, V, K] after each `every` tokens of sequences; sequence n has those from
    starts[n] to starts[n + 1]."""

    states: Tensor
    starts: Tensor
    every: int

    def beside(self, kept: States) -> tuple[States, tuple[Tensor, Tensor, Tensor]]:
        """The states of a batch and the checkpoints in one pool, and what a prefill takes: starts,
        tokens and slots of the checkpoints."""
        count, device = kept.slots.shape[0], self.starts.device
        live = (kept.slots >= 0) & (kept.slots < kept.pool.shape[0])
        taken = kept.pool[torch.where(live, kept.slots, 0).long()]
        pool = torch.cat([taken, self.states.to(taken.dtype)])
        index = torch.arange(count, device=device)
        places = torch.arange(self.states.shape[0], device=device)
        starts = self.starts.long()
        sequence = torch.searchsorted(starts, places, right=True) - 1
        tokens = (places - starts[sequence.clamp(0, count)] + 1) * self.every
        states = States(pool, torch.where(live, index, -1), kept.has_initial)
        return states, (self.starts, tokens, count + places)

    def store(self, states: States, kept: States) -> None:
        """What a prefill left in that pool, where it belongs."""
        count = kept.slots.shape[0]
        self.states.copy_(states.pool[count:])
        put_in_range(kept.pool, states.pool[:count], kept.slots, states.slots >= 0)


def checkpoints_of(
    function: str, every: int, states: Tensor | None, starts: Tensor | None
) -> Checkpoints | None:
    """None where no states inside sequences are kept."""
    if every < 0:
        raise ValueError(
            f"{function}: checkpoint_every_n_tokens: expected a non-negative number, got {every}"
        )
    if every % _CHUNK:
        raise ValueError(
            f"{function}: checkpoint_every_n_tokens: expected a multiple of the chunk size,"
            f" {_CHUNK}, got {every}"
        )
    if every == 0:
        if states is not None or starts is not None:
            raise ValueError(
                f"{function}: state_checkpoints, checkpoint_cu_starts: must be None without"
                " checkpoint_every_n_tokens, got tensors"
            )
        return None
    if states is None or starts is None:
        raise ValueError(
            f"{function}: state_checkpoints, checkpoint_cu_starts: must both be provided with"
            " checkpoint_every_n_tokens, got None"
        )
    return Checkpoints(states, starts, every)


def check_checkpoints(
    function: str, checkpoints: Checkpoints | None, count: int, shape: tuple
) -> None:
    if checkpoints is None:
        return
    check_states(function, "state_checkpoints", checkpoints.states, shape)
    if checkpoints.starts.shape != (count + 1,):
        raise ValueError(
            f"{function}: checkpoint_cu_starts: expected {count + 1} elements, got"
            f" {list(checkpoints.starts.shape)}"
        )
