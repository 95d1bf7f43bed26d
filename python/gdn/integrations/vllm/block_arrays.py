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
from ..pool_options import PLANES

#: Where an array may begin, in bytes: variants of kernels for aligned arrays take nothing else.
_ALIGNMENT = 16


class HeadSizes(NamedTuple):
    """Of one rank's part of a layer."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int


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
        self, sizes: HeadSizes, state: str, deferred_writes: int = 0, pending: str = "float32"
    ):
        self.arrays: list[BlockArray] = []
        self._end = 0
        per_head = (sizes.value_heads, sizes.value_dim)
        in_planes = state in PLANES
        self._add("state_pool", (*per_head, sizes.key_dim), "uint8" if in_planes else state)
        if in_planes:
            self._add("state_scales", per_head, "float32")
        if PLANES.get(state) == 2:
            self._add("state_low", (*per_head, sizes.key_dim), "uint8")
        if deferred_writes:
            rows = (sizes.value_heads, deferred_writes)
            keys = (sizes.key_heads, deferred_writes, sizes.key_dim)
            self._add("pending_keys", keys, pending)
            self._add("pending_deltas", (*rows, sizes.value_dim), pending)
            self._add("pending_decays", rows, "float32")
            if pending == "float16":
                self._add("pending_scales", rows, "float32")
            self._add("pending_counts", (sizes.key_heads,), "int32")

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
