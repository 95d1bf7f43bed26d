# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers for the library `kernels` (0.17), by the names under which transformers looks for them.
They have no members and no state: a model's layers get their forward.

    kernels.register_kernel_mapping(gdn.integrations.kernels_layers.mapping())

or, for models that are loaded with use_kernels=True,

    folder = gdn.integrations.kernels_layers.write_repository("gdn-layers")
    names = {"Qwen3_5GatedDeltaNet": f"{folder}:Qwen3_5GatedDeltaNet"}
    config = transformers.KernelConfig(names, use_local_kernel=True)

Layers that ask for no name, those of Qwen3-Next, OLMo-Hybrid and Kimi-Linear, get gdn's forward by
gdn.integrations.transformers.patch alone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from torch import nn

from .transformers_layers import forward as _forward


class Qwen3_5GatedDeltaNet(nn.Module):  # noqa: N801  the name that models ask for
    """Of Qwen3.5 and its models of experts; see gdn.integrations.transformers_layers.forward."""

    can_torch_compile = True
    has_backward = True
    forward = _forward


class Qwen3NextGatedDeltaNet(nn.Module):
    """See gdn.integrations.transformers_layers.forward."""

    can_torch_compile = True
    has_backward = True
    forward = _forward


LAYERS = {layer.__name__: layer for layer in (Qwen3_5GatedDeltaNet, Qwen3NextGatedDeltaNet)}


class _Repository:
    """What kernels asks for a layer."""

    def __init__(self, layer_name: str):
        self.layer_name = layer_name

    def load(self) -> type[nn.Module]:
        return LAYERS[self.layer_name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Repository) and other.layer_name == self.layer_name

    def __hash__(self) -> int:
        return hash((_Repository, self.layer_name))

    def __str__(self) -> str:
        return f"gdn (layer `{self.layer_name}`)"


def mapping() -> dict[str, dict[str, object]]:
    """An argument of kernels.register_kernel_mapping and kernels.use_kernel_mapping."""
    return {name: {"cuda": _Repository(name), "cpu": _Repository(name)} for name in LAYERS}


def write_repository(folder: str | os.PathLike[str]) -> Path:
    """Writes a local repository of kernels that has the layers, and returns its path. It has no
    code of its own: it imports gdn."""
    path = Path(folder).resolve()
    variant = path / "build" / "torch-universal"
    variant.mkdir(parents=True, exist_ok=True)
    text = "from gdn.integrations import kernels_layers as layers\n\n__all__ = ['layers']\n"
    (variant / "__init__.py").write_text(text)
    metadata = {
        "id": "_gdn_layers",
        "name": "gdn-layers",
        "version": 1,
        "license": "Apache-2.0 WITH LLVM-exception",
        "python-depends": [],
        "backend": {"type": "cuda"},
    }
    (variant / "metadata.json").write_text(json.dumps(metadata) + "\n")
    return path
