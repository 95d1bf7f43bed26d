# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a slot has beside its window where states are in planes, or written every few tokens:
several arrays of several types, side by side in one piece of memory. Engines take that for one
array of numbers of 32 bits, and whoever copies it copies all of the slot: planes, scales, pending
tokens and their counts. Arrays are NumPy's, or tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from ...arrays import itemsize
from ..slot_arrays import SlotForm, SlotSizes, slot_shapes

#: Where an array may begin, in bytes: variants of kernels for aligned arrays take nothing else.
_ALIGNMENT = 16


class BlockArray(NamedTuple):
    """One of a slot's, by the name of the kernels' parameter."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    offset: int
    """In bytes"""

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * itemsize(self.dtype)


class BlockArrays:
    """The arrays of a slot. `state` is one of pool_options.FORMATS; `pending` is the type of keys
    and deltas of pending tokens, of which there are `deferred_writes` at most."""

    def __init__(
        self, sizes: SlotSizes, state: str, deferred_writes: int = 0, pending: str = "float32"
    ):
        self.arrays: list[BlockArray] = []
        self._end = 0
        form = SlotForm(state.removesuffix("_upper"), deferred_writes)
        shape = sizes.value_heads, sizes.value_dim, sizes.key_dim
        self._add("state_pool", shape, "uint8" if form.in_planes else state)
        for name, (shape, dtype) in slot_shapes(form, sizes, pending).items():
            self._add(name, shape, dtype)

    def _add(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        array = BlockArray(name, shape, dtype, self._end)
        self.arrays.append(array)
        self._end = -(-(self._end + array.nbytes) // _ALIGNMENT) * _ALIGNMENT

    @property
    def words(self) -> int:
        """What all of them take, in numbers of 32 bits."""
        return self._end // 4

    def split(self, slots, type_of: Callable[[str], object]) -> dict[str, object]:
        """Views of the arrays of all slots, [P, ...], by name. `slots` are [P, words] of 32 bits,
        with any distance between slots that is a multiple of 4 bytes; `type_of` gives the array
        library's type of a name of NumPy's."""
        found = {}
        for array in self.arrays:
            first = array.offset // 4
            words = slots[:, first : first + -(-array.nbytes // 4)]
            elements = words.view(type_of(array.dtype))[:, : prod(array.shape)]
            found[array.name] = elements.reshape((slots.shape[0], *array.shape))
        return found
