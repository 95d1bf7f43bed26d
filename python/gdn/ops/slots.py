# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes to slots of a pool, of which some are none."""

import torch
from torch import Tensor


def put_in_range(pool: Tensor, new: Tensor, slots: Tensor, writes: Tensor) -> None:
    """pool[slots[n]] = new[n] where writes[n] and the slot is one of the pool."""
    is_slot = (slots >= 0) & (slots < pool.shape[0])
    put(pool, new, slots.long().clamp(0, pool.shape[0] - 1), writes & is_slot)


def put(pool: Tensor, new: Tensor, slots: Tensor, writes: Tensor) -> None:
    """pool[slots[n]] = new[n] where writes[n]; slots are of i64, and in range."""
    if slots.shape[0] == 0 or pool.shape[0] == 0:
        return
    # The others write what the first that writes does, or what is there if none does.
    leader = writes.int().argmax()
    source = torch.where(writes, torch.arange(slots.shape[0], device=slots.device), leader)
    slots = slots[source]
    values = torch.where(writes.any(), new[source], pool[slots])
    pool.index_copy_(0, slots, values)
