# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What gdn's forward of a layer of transformers knows of the layer: its kind, and its small weights
in the types of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..layer_kernels import LayerKind
from ..layer_run import LayerWeights
from ..ops.layer import conv_type
from .transformers_cache import StateShape
from .transformers_families import (
    Family,
    Sizes,
    as_kernels_take,
    bound_of,
    family_of,
    sizes_of,
)

_SILU = ("silu", "swish")


class Setup:
    """What does not change from call to call of a layer."""

    def __init__(self, layer: nn.Module):
        #: A forward that the layer had in place of its class's.
        self.original: Callable | None = None
        self.family: Family | None = family_of(layer)
        self.refusal = "it is no layer that gdn knows"
        self._kinds: dict[tuple[torch.dtype, torch.dtype], LayerKind] = {}
        self._made: _Made | None = None
        if self.family is None:
            return
        norm = getattr(layer, self.family.norm)
        gate = getattr(norm, "activation", None)
        epsilon = getattr(norm, "variance_epsilon", None)
        # As text: of a number that two layers have differently torch.compile makes a variable.
        self._epsilon = None if epsilon is None else repr(float(epsilon))
        self._gate = "silu" if gate in _SILU else gate
        self._bound = bound_of(self.family, layer)
        self._doubled = bool(getattr(layer, "allow_neg_eigval", False))
        self.sizes: Sizes = sizes_of(self.family, layer)
        self.channels = layer.conv1d.weight.shape[0]
        self.refusal = None
        if layer.conv1d.bias is not None:
            self.refusal = "the convolution has a bias"
        elif layer.activation not in _SILU:
            self.refusal = f"the convolution has the activation {layer.activation}"
        elif None in (self._epsilon, self._gate):
            self.refusal = f"{type(norm).__name__} does not say its epsilon and its activation"

    def kind(self, io: torch.dtype, conv: torch.Tensor) -> LayerKind:
        """With weights of the convolution in their own type."""
        if torch.compiler.is_compiling():
            return self._kind(io, conv)
        key = io, conv.dtype
        if key not in self._kinds:
            self._kinds[key] = self._kind(io, conv)
        return self._kinds[key]

    def _kind(self, io: torch.dtype, conv: torch.Tensor) -> LayerKind:
        _, key_dim, value_dim, width = self.sizes
        return LayerKind(
            self.family.layout,
            key_dim,
            value_dim,
            width,
            float(self._epsilon),
            self._gate,
            io=str(io).removeprefix("torch."),
            per_channel=self.family.per_channel,
            doubled_beta=self._doubled,
            decay_bound=self._bound,
            conv=conv_type(conv, io),
        )

    def state_shape(self, rows: int) -> StateShape:
        heads, key_dim, value_dim, width = self.sizes
        return StateShape(rows, self.channels, width, heads, key_dim, value_dim)

    def weights(self, parameters: tuple[Tensor, ...]) -> LayerWeights:
        """Made again where one of the parameters is another, has other memory, or was written."""
        if torch.compiler.is_compiling():
            return LayerWeights(*as_kernels_take(self.family, self.sizes, parameters))
        stamps = [_stamp(x) for x in parameters]
        if self._made is None or self._made.stamps != stamps:
            weights = LayerWeights(*as_kernels_take(self.family, self.sizes, parameters))
            self._made = _Made(stamps, parameters, weights)
        return self._made.weights


class _Made(NamedTuple):
    """`parameters` keep the memory that the stamps name."""

    stamps: list[tuple[int, int]]
    parameters: tuple[Tensor, ...]
    weights: LayerWeights


def _stamp(x: Tensor) -> tuple[int, int]:
    return x.data_ptr(), 0 if x.is_inference() else x._version


def setup_of(layer: nn.Module) -> Setup:
    """Made at the first time."""
    setup = getattr(layer, "_gdn_setup", None)
    if setup is None:
        setup = layer._gdn_setup = Setup(layer)
    return setup
