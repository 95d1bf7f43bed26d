# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forward of a linear-attention layer of transformers with gdn's kernels: projections are those
of the layer, all between them is one call. It works on the states of the cache. A layer keeps
nothing but what kind it is, and small weights in the types of the kernels."""

from __future__ import annotations

import logging
from types import MethodType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..layer_kernels import LayerKind
from ..layer_run import LayerWeights
from ..ops.layer import delta_layer, run_on_cache
from ..rule_kernels import find_refusal
from . import transformers_cache as states
from .transformers_families import (
    Family,
    Sizes,
    as_kernels_take,
    family_of,
    parameters_of,
    sizes_of,
)

logger = logging.getLogger("gdn.integrations.transformers")

# Arguments of packed sequences, which the original serves.
_PACKED = ("cu_seq_lens_q", "cu_seq_lens_k", "seq_idx")
_SILU = ("silu", "swish")
_logged: set[str] = set()


def forward(
    self: nn.Module,
    hidden_states: Tensor,
    cache_params: object | None = None,
    attention_mask: Tensor | None = None,
    **options,
) -> Tensor:
    """In place of a layer's forward. What it had before serves what kernels cannot: calls that need
    a gradient, packed sequences, caches that keep past inputs, types and sizes without an image.
    The reason is logged once."""
    cache = options.pop("cache", cache_params)  # its name in transformers 5.24
    setup = setup_of(self)
    reason = setup.refusal
    if reason is None:
        parameters = parameters_of(setup.family, self)
        shape = setup.state_shape(hidden_states.shape[0])
        call = (hidden_states, cache, attention_mask, options)
        reason = _refusal(setup, self, parameters, shape, *call)
    if reason is not None:
        if not torch.compiler.is_compiling() and reason not in _logged:
            _logged.add(reason)
            logger.info("%s: not by gdn as a whole: %s", type(self).__name__, reason)
        original = setup.original or MethodType(type(self).forward, self)
        return original(hidden_states, cache, attention_mask, **options)
    batch, tokens, _ = hidden_states.shape
    x = hidden_states
    if attention_mask is not None:
        # As the original does. Zeros leave windows and states of new sequences as they are.
        x = (x * attention_mask[:, :, None]).to(x.dtype)
    projections = setup.family.project(self, x.reshape(batch * tokens, -1))
    cached = None if cache is None else cache.layers[self.layer_idx]
    has_initial = cached is not None and cached.has_previous_state[0]
    io, device = x.dtype, x.device
    if cached is None:
        conv, recurrent = shape.empty(io, device)
    else:
        conv, recurrent = states.take_states(cached, shape, io, device)
    kind, weights = setup.kind(io), setup.weights(parameters)
    # Operators of PyTorch take longer on the host than a small kernel on the device.
    if torch.compiler.is_compiling() or type(x) is not Tensor:
        core = delta_layer(
            projections,
            *weights,
            conv,
            recurrent,
            has_initial,
            kind.layout,
            kind.norm_eps,
            kind.gate,
            kind.per_channel,
            kind.doubled_beta,
        )
    else:
        core = run_on_cache(kind, projections, weights, conv, recurrent, has_initial)
    if cached is not None and not has_initial:
        cached.has_previous_state[0] = True
    out = getattr(self, setup.family.out_proj)(core)
    return out.view(batch, tokens, -1)


class Setup:
    """What does not change from call to call of a layer."""

    def __init__(self, layer: nn.Module):
        #: A forward that the layer had in place of its class's.
        self.original: MethodType | None = None
        self.family: Family | None = family_of(layer)
        self.refusal = "it is no layer that gdn knows"
        self._kinds: dict[torch.dtype, LayerKind] = {}
        self._made: _Made | None = None
        if self.family is None:
            return
        norm = getattr(layer, self.family.norm)
        gate = getattr(norm, "activation", None)
        self._facts = (getattr(norm, "variance_epsilon", None), "silu" if gate in _SILU else gate)
        self._doubled = bool(getattr(layer, "allow_neg_eigval", False))
        self.sizes: Sizes = sizes_of(self.family, layer)
        self.channels = layer.conv1d.weight.shape[0]
        self.refusal = None
        if layer.conv1d.bias is not None:
            self.refusal = "the convolution has a bias"
        elif layer.activation not in _SILU:
            self.refusal = f"the convolution has the activation {layer.activation}"
        elif None in self._facts:
            self.refusal = f"{type(norm).__name__} does not say its epsilon and its activation"

    def kind(self, io: torch.dtype) -> LayerKind:
        if io not in self._kinds:
            _, key_dim, value_dim, width = self.sizes
            self._kinds[io] = LayerKind(
                self.family.layout,
                key_dim,
                value_dim,
                width,
                *self._facts,
                io=str(io).removeprefix("torch."),
                per_channel=self.family.per_channel,
                doubled_beta=self._doubled,
            )
        return self._kinds[io]

    def state_shape(self, rows: int) -> states.StateShape:
        heads, key_dim, value_dim, width = self.sizes
        return states.StateShape(rows, self.channels, width, heads, key_dim, value_dim)

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


def _refusal(
    setup, layer, parameters, shape, hidden_states, cache, attention_mask, options
) -> str | None:
    """Why the original has to run, or None."""
    if torch.is_grad_enabled() and (
        hidden_states.requires_grad or any(p.requires_grad for p in layer.parameters())
    ):
        return "a gradient is required"
    if options and any(options.get(name) is not None for name in _PACKED):
        return "sequences are packed into rows"
    if attention_mask is not None and attention_mask.dim() != 2:
        return f"the attention mask has {attention_mask.dim()} dimensions"
    if 0 in hidden_states.shape:
        return "there are no tokens"
    io, device = hidden_states.dtype, hidden_states.device
    if device.type not in ("cpu", "cuda"):
        return f"the device is {device}"
    if torch.is_autocast_enabled(device.type):
        return "types are those of an autocast"
    conv, _, _, norm = parameters
    if not conv.dtype == norm.dtype == io:
        return f"weights of {conv.dtype} and {norm.dtype} for inputs of {io}"
    if not torch.compiler.is_compiling() and "_hf_hook" in layer.conv1d.__dict__:
        return "weights are placed by hooks"
    if cache is not None:
        reason = states.find_refusal(cache.layers[layer.layer_idx], shape, io, device)
        if reason is not None:
            return reason
    return _find_image(setup.kind(io), device.type, device.index or 0)


@torch.compiler.assume_constant_result
def _find_image(kind: LayerKind, device: str, ordinal: int) -> str | None:
    return find_refusal(kind, (device, ordinal))
