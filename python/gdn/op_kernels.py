# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the convolution and of the gated norm alone: each is a layer of one op of the gdn
dialect, which is compiled where it is called first."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from . import compiler, targets
from .kernel_calls import SHORT_TYPES
from .runtime import Device

# Channels of a tile: the most that divide them all.
_TILES = (64, 32, 16, 8)
# The widest convolution, and the largest head of a norm.
MOST_WIDTH, MOST_NORM = 8, 512


def tile_of(channels: int) -> int | None:
    """Channels of a tile, or None if no kernel has so many."""
    return next((size for size in _TILES if channels > 0 and channels % size == 0), None)


def has_norm(size: int) -> bool:
    """Whether kernels have a norm of so many elements."""
    return 0 < size <= MOST_NORM and size % _TILES[-1] == 0


def _compile(layer: str, device: Device) -> Path:
    return compiler.compile(compiler.Layer(layer), targets.run_by(device)[0])


def _array(name: str, type: str, dims: list[object], declared: bool = True) -> str:
    """A parameter or, if not `declared`, a result of an entry."""
    sizes = ", ".join(f'"{dim}"' for dim in dims)
    return f'{f"%{name}: " * declared}{type} {{gdn.dims = [{sizes}], gdn.name = "{name}"}}'


def _entry(name: str, parameters: list[str], result: str, op: str, type: str) -> str:
    signature = ", ".join(['%H: index {gdn.name = "H"}', *parameters])
    return (
        f"func.func @{name}({signature}) -> ({result}) attributes {{gdn.entry}} {{\n"
        f"  %y = {op} -> {type}\n"
        f"  return %y : {type}\n}}\n"
    )


class ConvKind(NamedTuple):
    """A causal convolution of `width` inputs of each channel; a tile of a kernel has `channels` of
    them. The bias is of f32."""

    width: int
    channels: int
    activation: str
    has_bias: bool
    io: str
    state: str
    weight: str

    @property
    def types(self) -> tuple[str, ...]:
        return self.io, self.state, self.weight

    def image_path(self, device: Device) -> Path:
        return _compile(self.layer(), device)

    def layer(self) -> str:
        """Entries `prefill`, of ragged batches, and `decode`, of a token for each slot."""
        return self._layer_entry("prefill", "T") + self._layer_entry("decode", "N")

    def _layer_entry(self, name: str, tokens: str) -> str:
        io, state, weight = (SHORT_TYPES[x] for x in (self.io, self.state, self.weight))
        all_channels, window = f"{self.channels}*H", self.width - 1
        ids, dims = "tensor<?xi32>", [tokens, "H", self.channels]
        rows = f"tensor<?x?x{self.channels}x{io}>"
        weights, pool = f"tensor<?x{self.width}x{weight}>", f"!gdn.pool<?x?x{window}x{state}>"
        parameters = [
            _array("x", rows, dims),
            _array("weight", weights, [all_channels, self.width]),
            _array("slots", ids, ["N"]),
            _array("write_slots", ids, ["N"]),
            _array("conv_pool", pool, ["P", all_channels, window]),
        ]
        uses, bias, sequences = ["pool(%conv_pool) slots(%slots -> %write_slots)"], "", ""
        if self.has_bias:
            parameters.append(_array("bias", "tensor<?xf32>", [all_channels]))
            bias = " bias tensor<?xf32>"
        if name == "prefill":
            parameters.append(_array("cu_seqlens", ids, ["N + 1"]))
            parameters.append(_array("has_initial", "tensor<?xi1>", ["N"]))
            uses.append("sequences(%cu_seqlens) initial(%has_initial)")
            sequences = f", {ids} initial tensor<?xi1>"
        op = (
            f"gdn.conv1d %x weight(%weight){' bias(%bias)' * self.has_bias} {self.activation}"
            f" {' '.join(uses)} : ({rows}), {weights}{bias}, {pool}, {ids} into {ids}{sequences}"
        )
        return _entry(name, parameters, _array("y", rows, dims, declared=False), op, rows)


class NormKind(NamedTuple):
    """A gated RMS norm of heads of `size` elements. Epsilon and the gate's activation are
    arguments, the weight is of f32."""

    size: int
    norm_after_gate: bool
    io: str

    @property
    def types(self) -> tuple[str, ...]:
        return (self.io,)

    def image_path(self, device: Device) -> Path:
        return _compile(self.layer(), device)

    def layer(self) -> str:
        """An entry `norm`."""
        rows, weights = (
            f"tensor<?x?x{self.size}x{SHORT_TYPES[self.io]}>",
            f"tensor<{self.size}xf32>",
        )
        dims = ["T", "H", self.size]
        parameters = [
            _array("x", rows, dims),
            _array("gate", rows, dims),
            _array("weight", weights, [self.size]),
            _array("constants", "tensor<2xf32>", [2]),
        ]
        op = (
            "gdn.gated_rms_norm %x, %gate, %weight constants(%constants : tensor<2xf32>)"
            f"{' {norm_after_gate}' * self.norm_after_gate} : {rows}, {rows}, {weights}"
        )
        return _entry("norm", parameters, _array("y", rows, dims, declared=False), op, rows)
