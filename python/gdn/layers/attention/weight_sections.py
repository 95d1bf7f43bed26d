# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of a layer as checkpoints name them, merged or apart, into one rank's arrays.

A weight is a row of sections, such as q, k, v and z of in_proj_qkvz. Checkpoints and layers group
them in different ways; each section of a tensor is copied to wherever the layer has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ...array_library import library_of
from ...call_options import refuse_meta
from .layer_shape import check_weight

_VECTORS = ("A_log", "dt_bias", "norm", "o_norm")


def check_rank(tp_size: int, tp_rank: int) -> None:
    """ValueError for a rank that there is not among so many."""
    if tp_size < 1:
        raise ValueError(f"tp_size: expected 1 or more, got {tp_size}")
    if not 0 <= tp_rank < tp_size:
        raise ValueError(f"tp_rank: expected 0 to {tp_size - 1}, got {tp_rank}")


class WeightSections:
    """What tensors a layer takes, and where they go on one rank.

    `known` has the sections of tensors by their names without ".weight", and `names` are the
    layer's own arrays among them. `sizes` are those of sections of the whole layer, of which each
    rank has its part, or all if it is among `whole`. Tensors have `hidden_size` columns unless
    `columns` has others. `apart` says that messages shall name tensors of one section."""

    def __init__(
        self,
        names: Iterable[str],
        known: Mapping[str, tuple[str, ...]],
        sizes: Mapping[str, int],
        *,
        hidden_size: int,
        conv_width: int,
        tp_size: int,
        tp_rank: int,
        whole: Collection[str] = ("norm",),
        columns: Mapping[str, int] | None = None,
        apart: bool = False,
    ):
        self._known, self._sizes = dict(known), dict(sizes)
        self._hidden, self._width, self._apart = hidden_size, conv_width, apart
        self._ranks, self._rank = tp_size, tp_rank
        self._whole, self._columns = frozenset(whole), dict(columns or {})
        self.names = tuple(names)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of the layer's own array, on this rank."""
        return self._shape(name, sum(self._share(section) for section in self._known[name]))

    def load(
        self,
        arrays: Mapping[str, object],
        weights: Mapping[str, object] | Iterable[tuple[str, object]],
        prefix: str = "",
        strict: bool = True,
    ) -> set[str]:
        """Copies the whole layer's tensors into `arrays`, this rank's arrays by `names`. Names of
        tensors have the prefix, which others, of other layers, have not. Returns those that were
        taken. Tensors may come in several calls. With `strict` a name that no layer of this order
        has is a ValueError; a wrong shape, or a section that comes twice in a call, always is."""
        places = self._places(arrays)
        pairs = weights.items() if isinstance(weights, Mapping) else weights
        taken: set[str] = set()
        filled: dict[str, str] = {}
        for full, tensor in pairs:
            if not full.startswith(prefix):
                continue
            name = full[len(prefix) :].removesuffix(".weight")
            sections = self._known.get(name, ())
            if not sections and strict:
                known = ", ".join(prefix + n for n in self._known)
                raise ValueError(f"{full}: expected one of {known}, got an unknown tensor")
            wanted = [section for section in sections if section in places]
            if not wanted:
                continue  # unknown, or of a projection that the caller computes
            whole = self._shape(name, sum(self._sizes[section] for section in sections))
            tensor = self.flat(name, _detached(full, tensor, arrays))
            check_weight(full, tensor.shape, whole)
            for section in wanted:
                if section in filled:
                    raise ValueError(
                        f"{full}: expected {section} once, got it also as {filled[section]}"
                    )
                filled[section] = full
            self._copy(places, sections, tensor)
            taken.add(full)
        return taken

    def flat(self, name: str, tensor):
        """The tensor in the shape that it has here, if checkpoints have it in several."""
        return tensor

    def missing(self, arrays: Mapping[str, object], prefix: str = "") -> list[str]:
        """Names of tensors without which there is a part of an array that is nothing but NaN."""
        found = []
        for name in self.names:
            parts = self._places({name: arrays[name]})
            empty = [section for section, place in parts.items() if bool(_isnan(place).all())]
            is_whole = len(empty) == len(parts) and not (self._apart and name != "conv1d")
            found += [name] if is_whole else [self._alone(section) for section in empty]
        return [prefix + (n if n in ("A_log", "dt_bias") else f"{n}.weight") for n in found]

    def _alone(self, section: str) -> str:
        """The tensor that has nothing but this section."""
        names = [name for name, parts in self._known.items() if parts == (section,)]
        return names[-1 if self._apart else 0]

    def _share(self, section: str) -> int:
        return self._sizes[section] // (1 if section in self._whole else self._ranks)

    def _shape(self, name: str, size: int) -> tuple[int, ...]:
        if name.endswith("conv1d"):
            return (size, 1, self._width)
        if self._known[name] == ("out",):
            return (self._hidden, size)
        if name.rpartition(".")[2] in _VECTORS:
            return (size,)
        return (size, self._columns.get(name, self._hidden))

    def _places(self, arrays: Mapping[str, object]) -> dict[str, object]:
        """Views of the arrays, by section."""
        places = {}
        for name, array in arrays.items():
            refuse_meta(f"{name} of the layer", array)
            first = 0
            for section in self._known[name]:
                size = self._share(section)
                places[section] = _part(array, section, first, size)
                first += size
        return places

    def _copy(self, places: Mapping[str, object], sections: tuple[str, ...], tensor) -> None:
        first = 0
        for section in sections:
            size, share = self._sizes[section], self._share(section)
            offset = 0 if share == size else share * self._rank
            if section in places:
                part = _part(tensor, section, first + offset, share)
                place = places[section]
                library_of(place).fill(place, part.reshape(place.shape))
            first += size


def _part(array, section: str, first: int, size: int):
    rows = slice(first, first + size)
    return array[:, rows] if section == "out" else array[rows]


def _isnan(array):
    return np.isnan(array) if isinstance(array, np.ndarray) else array.isnan()


def _detached(name: str, tensor, arrays: Mapping[str, object]):
    """The tensor without what a gradient needs, in the library of the layer's arrays."""
    refuse_meta(name, tensor)
    is_numpy = isinstance(next(iter(arrays.values())), np.ndarray)
    known = isinstance(tensor, np.ndarray) if is_numpy else hasattr(tensor, "detach")
    if not known:
        raise ValueError(
            f"{name}: expected a {'NumPy array' if is_numpy else 'tensor'}, as the layer has, got"
            f" {type(tensor).__name__}"
        )
    is_complex = tensor.dtype.kind == "c" if is_numpy else tensor.is_complex()
    if is_complex:
        raise ValueError(f"{name}: expected real numbers, got {tensor.dtype}")
    return tensor if is_numpy else tensor.detach()
