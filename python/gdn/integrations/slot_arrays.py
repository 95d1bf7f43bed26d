# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays beside an engine's pool of states, with the same slots: what deferred writes keep pending,
and what states in planes have beside the upper plane. Who copies, zeroes or moves a slot of the
pool does the same here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..pool_states import EngineStates
from ..rule_kernels import PLANES

_BYTES = {"float32": 4, "float16": 2, "int32": 4, "uint8": 1}


class SlotForm(NamedTuple):
    """How an engine's slots keep states."""

    state: str  # a type of elements, or the format of states in planes
    deferred_writes: int = 0  # tokens that stay pending, or 0

    @property
    def in_planes(self) -> bool:
        return self.state in PLANES

    @property
    def pending(self) -> str:
        """The type of keys and deltas of pending tokens: the one that most images have."""
        return "float16" if self.in_planes else "float32"


class SlotSizes(NamedTuple):
    """Heads of a layer, on one rank."""

    key_heads: int
    value_heads: int
    value_dim: int
    key_dim: int


def slot_shapes(
    form: SlotForm, sizes: SlotSizes, pending: str | None = None
) -> dict[str, tuple[tuple[int, ...], str]]:
    """What a slot of a layer has beside its array of states: shapes and types, by the names that
    kernels have. `pending` is the type of pending keys and deltas if it is not the form's."""
    key_heads, value_heads, value_dim, key_dim = sizes
    pending = pending or form.pending
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    if form.in_planes:
        found["state_scales"] = (value_heads, value_dim), "float32"
    if form.state == "i8x2":
        found["state_low"] = (value_heads, value_dim, key_dim), "uint8"
    if count := form.deferred_writes:
        found["pending_keys"] = (key_heads, count, key_dim), pending
        found["pending_deltas"] = (value_heads, count, value_dim), pending
        found["pending_decays"] = (value_heads, count), "float32"
        found["pending_counts"] = (key_heads,), "int32"
        if pending == "float16":
            found["pending_scales"] = (value_heads, count), "float32"
    return found


def slot_bytes(form: SlotForm, sizes: SlotSizes) -> int:
    """Bytes of these, in one layer."""
    shapes = slot_shapes(form, sizes).values()
    return sum(math.prod(shape) * _BYTES[dtype] for shape, dtype in shapes)


class SlotArrays:
    """These arrays for all layers, [P, L, ...], beside `states` [L, P, Hv, dv, dk]: what a slot has
    is in few pieces. `zeros` makes an array of a shape and a type that NumPy has; indices are
    arrays of the same library."""

    def __init__(
        self,
        form: SlotForm,
        states,
        key_heads: int,
        zeros: Callable[[tuple[int, ...], str], object],
    ):
        layers, slots, value_heads, value_dim, key_dim = map(int, states.shape)
        sizes = SlotSizes(key_heads, value_heads, value_dim, key_dim)
        shapes = slot_shapes(form, sizes)
        self.form = form
        self.num_bytes = layers * slots * slot_bytes(form, sizes)
        self.arrays = {
            name: zeros((slots, layers, *shape), dtype) for name, (shape, dtype) in shapes.items()
        }
        facts = {"format": form.state, "deferred_writes": form.deferred_writes}
        #: Of each layer what functions of gdn take as its states.
        self.layers = [
            EngineStates(
                states[layer],
                {name: array[:, layer] for name, array in self.arrays.items()},
                **facts,
                pending_dtype=form.pending,
            )
            for layer in range(layers)
        ]

    def zero(self, slots) -> None:
        """Nothing is pending in these slots, and in planes their states are zero."""
        for name in ("pending_counts", "state_scales"):
            if name in self.arrays:
                self.arrays[name][slots] = 0

    def copy(self, source, target) -> None:
        """Slots to slots, in all layers."""
        for array in self.arrays.values():
            array[target] = array[source]
