# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What slots of SGLang's MambaPool keep beside its array of states: pending tokens of deferred
writes, and planes."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch

from ...rule_pool import commit_pending
from ..slot_arrays import SlotArrays, SlotForm

#: Of an upper plane.
plane_type = torch.uint8
_layers: weakref.WeakValueDictionary[int, SlotLayer] = weakref.WeakValueDictionary()


class SlotLayer:
    """A layer of such a pool."""

    def __init__(self, owner: SlotStates, index: int):
        self.states = owner.held.layers[index]
        self.in_planes = owner.held.form.in_planes
        arrays = owner.held.arrays
        self._counts = arrays["pending_counts"][:, index] if "pending_counts" in arrays else None
        #: The type of q, k and v of the last step, and its layout: the commit comes with its
        #: kernel.
        self.io, self.layout = "bfloat16", "gated"

    @property
    def defers(self) -> bool:
        return self._counts is not None

    def commit(self, slots: torch.Tensor) -> None:
        """Puts what is pending in these slots into their states. Slots below 0 are padding."""
        if self.defers:
            commit_pending(self.states, slots, io=self.io, layout=self.layout, l2norm=True)

    def forget(self, slots: torch.Tensor) -> None:
        """Nothing is pending in slots whose states somebody else writes."""
        if self.defers:
            self._counts.index_fill_(0, slots.long(), 0)


def find_layer(states: torch.Tensor) -> SlotLayer | None:
    """The layer that an array of states [P, HV, V, K] belongs to, or None where a slot has nothing
    else."""
    found = _layers.get(states.data_ptr())
    return found if found is not None and len(states) == len(found.states.array) else None


class SlotStates:
    """What MambaPool calls with each of its slots: SlotIndexedState of SGLang."""

    def __init__(self, form: SlotForm, states: torch.Tensor, key_heads: int, first: int):
        self._first_layer = first
        self.held = SlotArrays(
            form,
            states,
            key_heads,
            lambda shape, dtype: torch.zeros(
                shape, dtype=getattr(torch, dtype), device=states.device
            ),
        )
        self.layers = [SlotLayer(self, index) for index in range(len(states))]
        _layers.update((states[i].data_ptr(), layer) for i, layer in enumerate(self.layers))

    def reset_slots(self, indices: torch.Tensor) -> None:
        self.held.zero(indices.long())

    def copy_slots(self, src_index: torch.Tensor, dst_index: torch.Tensor) -> None:
        self.held.copy(src_index.long(), dst_index.long())

    def get_cpu_slots(self, indices: torch.Tensor) -> list[torch.Tensor]:
        places = indices.long()
        arrays = self.held.arrays.values()
        return [array[places].to("cpu", non_blocking=True) for array in arrays]

    def load_cpu_slots(self, data: list[torch.Tensor] | None, indices: torch.Tensor) -> None:
        places = indices.long()
        for array, saved in zip(self.held.arrays.values(), data or (), strict=data is not None):
            array[places] = saved.to(array.device, non_blocking=True)

    def iter_transfer_state_entries(self) -> Iterator[tuple[str, torch.Tensor, int, int]]:
        """Arrays [P, layers, heads, ..], which go ahead of the first layer's; ranks share them by
        heads."""
        for name, array in self.held.arrays.items():
            yield f"gdn_{name}", array, 1, self._first_layer
