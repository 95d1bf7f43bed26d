# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn's kernels in models of transformers (5.17 to 5.24): one call, before the model runs.

    import gdn.integrations.transformers
    gdn.integrations.transformers.patch(model)

Layers of Qwen3.5, Qwen3-Next, OLMo-Hybrid, Kimi-Linear and GLM-5.3-Flash go through one kernel
between their projections. Where a layer cannot, its own forward runs with gdn's functions of the
rule, and where these cannot, with the original ones. The logger of this module's name says why,
once.
"""

from __future__ import annotations

import sys
from types import MethodType

import torch

from . import transformers_functions as functions
from .transformers_families import family_of
from .transformers_layers import forward
from .transformers_setup import setup_of


def patch(model: torch.nn.Module) -> int:
    """Gives the layers of `model` that gdn knows its forward, and replaces the functions of the
    rule in the modules that layers come from. Returns the number of layers. A second call changes
    nothing. Raises ValueError if there are none, and for a model whose strengths have another range
    than those of a model of the same module that is patched: unpatch that one first."""
    layers = [layer for layer in model.modules() if _is_served(layer)]
    if not layers:
        raise ValueError(
            "model: expected layers of a gated delta rule that transformers has, found none"
        )
    text_config = getattr(model.config, "text_config", None) or model.config
    doubled = bool(getattr(text_config, "linear_allow_neg_eigval", False))
    for module in {_module_of(layer) for layer in layers}:
        if functions.has_functions(module):
            functions.replace(module, doubled)
    for layer in layers:
        before = layer.__dict__.get("forward")
        if family_of(layer) is not None and not _is_ours(before):
            setup_of(layer).original = before
            layer.forward = MethodType(forward, layer)
    return len(layers)


def unpatch(model: torch.nn.Module) -> None:
    """Puts the original forwards and functions back."""
    for module in {_module_of(layer) for layer in model.modules()}:
        functions.put_back(module)
    for layer in model.modules():
        if _is_ours(layer.__dict__.get("forward")):
            del layer.forward
            if (before := setup_of(layer).original) is not None:
                layer.forward = before
            del layer._gdn_setup


def _is_served(layer: torch.nn.Module) -> bool:
    """As a whole, or by its functions."""
    if family_of(layer) is not None:
        return True
    is_linear = type(layer).__name__.endswith("GatedDeltaNet")
    return is_linear and functions.has_functions(_module_of(layer))


def _module_of(layer: torch.nn.Module):
    return sys.modules[type(layer).__module__]


def _is_ours(method: object) -> bool:
    return getattr(method, "__func__", None) is forward
