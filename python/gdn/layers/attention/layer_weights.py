# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of a layer as checkpoints name them, merged or apart, into one rank's arrays.

A weight is a row of sections, such as q, k, v and z of in_proj_qkvz. Checkpoints and layers group
them in different ways; each section of a tensor is copied to wherever the layer has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ...array_library import library_of
from .layer_shape import LayerHeads, check_weight

# Sections of tensors by the names of checkpoints, of all layers and of those of one order.
_COMMON = {
    "conv1d": ("conv_q", "conv_k", "conv_v"),
    "q_conv1d": ("conv_q",),
    "k_conv1d": ("conv_k",),
    "v_conv1d": ("conv_v",),
    "A_log": ("A_log",),
    "dt_bias": ("dt_bias",),
    "norm": ("norm",),
    "o_norm": ("norm",),
    "out_proj": ("out",),
    "o_proj": ("out",),
}
_FLAT = {
    "in_proj_qkvz": ("q", "k", "v", "z"),
    "in_proj_qkv": ("q", "k", "v"),
    "in_proj_z": ("z",),
    "in_proj_ba": ("b", "a"),
    "in_proj_b": ("b",),
    "in_proj_a": ("a",),
    "q_proj": ("q",),
    "k_proj": ("k",),
    "v_proj": ("v",),
    "g_proj": ("z",),
    "b_proj": ("b",),
    "a_proj": ("a",),
}
_INTERLEAVED = {"in_proj_qkvz": ("qkvz",), "in_proj_ba": ("ba",)}


class LayerWeights:
    """What tensors a layer takes, and where they go on one rank.

    `names` are the layer's own arrays, of the names above without ".weight"; `order` is that of
    in_proj_qkvz and in_proj_ba, "interleaved" or "flat". `apart` says that messages shall name the
    tensors of OLMo-Hybrid's checkpoints."""

    def __init__(
        self,
        heads: LayerHeads,
        names: Iterable[str],
        *,
        hidden_size: int,
        conv_width: int,
        order: str,
        apart: bool = False,
        tp_size: int = 1,
        tp_rank: int = 0,
    ):
        for count in (heads.num_key_heads, heads.num_value_heads):
            if count % tp_size:
                raise ValueError(f"heads: expected multiples of {tp_size} ranks, got {count}")
        keys = heads.num_key_heads * heads.key_dim
        values = heads.num_value_heads * heads.value_dim
        gates = heads.num_value_heads
        self._sizes = {"q": keys, "k": keys, "v": values, "z": values, "b": gates, "a": gates}
        self._sizes |= {"conv_q": keys, "conv_k": keys, "conv_v": values, "out": values}
        self._sizes |= {"A_log": gates, "dt_bias": gates, "norm": heads.value_dim}
        self._sizes |= {"qkvz": 2 * (keys + values), "ba": 2 * gates}
        self._known = _COMMON | (_INTERLEAVED if order == "interleaved" else _FLAT)
        self._hidden, self._width, self._apart = hidden_size, conv_width, apart
        self._ranks, self._rank = tp_size, tp_rank
        self.names = tuple(names)
        if unknown := [name for name in self.names if name not in self._known]:
            raise ValueError(
                f"names: expected {', '.join(self._known)} with the order {order},"
                f" got {', '.join(unknown)}"
            )

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
            check_weight(full, tensor.shape, whole)
            for section in wanted:
                if section in filled:
                    raise ValueError(
                        f"{full}: expected {section} once, got it also as {filled[section]}"
                    )
                filled[section] = full
            self._copy(places, sections, _detached(full, tensor, arrays))
            taken.add(full)
        return taken

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
        return self._sizes[section] // (1 if section == "norm" else self._ranks)

    def _shape(self, name: str, size: int) -> tuple[int, ...]:
        if name.endswith("conv1d"):
            return (size, 1, self._width)
        if self._known[name] == ("out",):
            return (self._hidden, size)
        return (size,) if name in ("A_log", "dt_bias", "norm", "o_norm") else (size, self._hidden)

    def _places(self, arrays: Mapping[str, object]) -> dict[str, object]:
        """Views of the arrays, by section."""
        places = {}
        for name, array in arrays.items():
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
    wanted = type(next(iter(arrays.values())))
    if isinstance(tensor, np.ndarray) != issubclass(wanted, np.ndarray):
        raise ValueError(
            f"{name}: expected a {'NumPy array' if issubclass(wanted, np.ndarray) else 'tensor'},"
            f" as the layer has, got {type(tensor).__name__}"
        )
    return tensor.detach() if hasattr(tensor, "detach") else tensor
