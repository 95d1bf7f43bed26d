# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forward of a linear-attention layer of transformers with gdn's kernels: projections are those
of the layer, all between them is one call. It works on the states of the cache."""

from __future__ import annotations

import logging
from types import MethodType

import torch
from torch import Tensor, nn

from ..kernel_calls import find_refusal
from ..layer_kernels import LayerKind
from ..ops.layer import delta_layer, run_on_cache
from . import transformers_cache as states
from .transformers_families import parameters_of
from .transformers_setup import Setup, setup_of

logger = logging.getLogger("gdn.integrations.transformers")

# Arguments of packed sequences, which the original serves.
_PACKED = ("cu_seq_lens_q", "cu_seq_lens_k", "seq_idx")
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
    if reason is None:
        return _run(self, setup, parameters, shape, hidden_states, cache, attention_mask)
    if not torch.compiler.is_compiling() and reason not in _logged:
        _logged.add(reason)
        logger.info("%s: not by gdn as a whole: %s", type(self).__name__, reason)
    original = setup.original or MethodType(type(self).forward, self)
    return original(hidden_states, cache, attention_mask, **options)


def _run(layer, setup: Setup, parameters, shape, hidden_states, cache, attention_mask) -> Tensor:
    batch, tokens, _ = hidden_states.shape
    x = hidden_states
    if attention_mask is not None:
        # As the original does. Zeros leave windows and states of new sequences as they are.
        x = (x * attention_mask[:, :, None]).to(x.dtype)
    projections = setup.family.project(layer, x.reshape(batch * tokens, -1))
    cached = None if cache is None else cache.layers[layer.layer_idx]
    has_initial = cached is not None and cached.has_previous_state[0]
    if cached is None:
        conv, recurrent = shape.empty(x.dtype, x.device)
    else:
        conv, recurrent = states.take_states(cached, shape, x.dtype, x.device)
    kind, weights = setup.kind(x.dtype, parameters[0]), setup.weights(parameters)
    # Operators of PyTorch take longer on the host than a small kernel on the device.
    if torch.compiler.is_compiling() or type(x) is not Tensor:
        facts = (kind.layout, kind.norm_eps, kind.gate, kind.per_channel, kind.doubled_beta)
        states_of_rows = conv, recurrent, has_initial
        core = delta_layer(projections, *weights, *states_of_rows, *facts, kind.decay_bound)
    else:
        core = run_on_cache(kind, projections, weights, conv, recurrent, has_initial)
    if cached is not None and not has_initial:
        cached.has_previous_state[0] = True
    return getattr(layer, setup.family.out_proj)(core).view(batch, tokens, -1)


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
    # Models that keep some weights in f32 have those of the convolution among them.
    if norm.dtype != io or conv.dtype not in (io, torch.float32):
        return f"weights of {conv.dtype} and {norm.dtype} for inputs of {io}"
    if not torch.compiler.is_compiling() and any(
        "_hf_hook" in module.__dict__ for module in (layer, layer.conv1d)
    ):
        return "weights are placed by hooks"
    if cache is not None:
        reason = states.find_refusal(cache.layers[layer.layer_idx], shape, io, device)
        if reason is not None:
            return reason
    return _find_image(setup.kind(io, conv), device.type, device.index or 0)


@torch.compiler.assume_constant_result
def _find_image(kind: LayerKind, device: str, ordinal: int) -> str | None:
    return find_refusal(kind, (device, ordinal))
