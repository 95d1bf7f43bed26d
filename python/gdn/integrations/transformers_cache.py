# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The states of a layer in a cache of transformers, in memory that kernels change in place.

A cache keeps the last K inputs of the convolution, [B, C, K], of which the first is not needed for
any further token, and states [B, Hv, dk, dv] of f32. Kernels have windows [B, C, K - 1] and states
[B, Hv, dv, dk]. So the cache's tensors are views of the kernels' memory. What is no such view, as
after stock functions or the choice of beams, is copied into one, once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class StateShape(NamedTuple):
    """Sizes of a layer's states."""

    rows: int
    channels: int
    conv_width: int
    heads: int
    key_dim: int
    value_dim: int

    def empty(self, io: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
        """conv_states and recurrent_states that hold anything. Channels of one input are next to
        each other, which GPUs read fastest."""
        rows, channels, width, heads, key_dim, value_dim = self
        conv = torch.empty((rows, width, channels), dtype=io, device=device).mT
        options = {"dtype": torch.float32, "device": device}
        return conv, torch.empty((rows, heads, value_dim, key_dim), **options).mT


def find_refusal(layer, shape: StateShape, io: torch.dtype, device: torch.device) -> str | None:
    """Why kernels cannot work on a cache's layer, or None."""
    if not hasattr(layer, "conv_states"):
        return "the cache has no states of linear attention for this layer"
    if getattr(layer, "record_past", False):
        return "the cache keeps past inputs of the convolution"
    if not layer.is_conv_states_initialized[0]:
        return None
    conv, recurrent = layer.conv_states[0], layer.recurrent_states[0]
    rows, channels, width, *state = shape
    if conv.shape != (rows, channels, width) or recurrent.shape != (rows, *state):
        return "the cache has states of other shapes"
    if conv.dtype != io or recurrent.dtype != torch.float32:
        return f"the cache has states of {conv.dtype} and {recurrent.dtype}"
    if conv.device != device or recurrent.device != device:
        return f"the cache has states on {conv.device}"
    return None


def take_states(
    layer, shape: StateShape, io: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """conv_states and recurrent_states of a cache's layer, made and zeroed at the first time, as
    gdn.ops.layer takes them."""
    if not layer.is_conv_states_initialized[0]:
        conv, recurrent = shape.empty(io, device)
        # These set the layer's flags, and make tensors with other strides.
        layer.lazy_initialization(conv_states=conv, conv_kernel_size=shape.conv_width)
        layer.lazy_initialization(recurrent_states=recurrent)
        layer.conv_states[0] = _with_static_address(conv.zero_())
        layer.recurrent_states[0] = _with_static_address(recurrent.zero_())
    elif not layer.recurrent_states[0].mT.is_contiguous():
        turned = layer.recurrent_states[0].mT.contiguous().mT
        layer.recurrent_states[0] = _with_static_address(turned)
    return layer.conv_states[0], layer.recurrent_states[0]


def _with_static_address(tensor: Tensor) -> Tensor:
    """Tells graphs that the tensor stays where it is, as caches do with their own."""
    if not torch.compiler.is_compiling():
        torch._dynamo.mark_static_address(tensor)
    return tensor
