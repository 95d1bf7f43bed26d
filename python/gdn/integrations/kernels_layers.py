# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers for the library `kernels`, by the names under which transformers looks for them. They have
no members and no state of their own: `kernelize` gives their forward to a model's layers.

    import kernels, gdn.integrations.kernels_layers as layers
    kernels.register_kernel_mapping(layers.mapping())
"""

from __future__ import annotations

from torch import nn

from .transformers_layers import forward as _forward


class Qwen3NextGatedDeltaNet(nn.Module):
    """See gdn.integrations.transformers_layers.forward."""

    can_torch_compile = True
    has_backward = True
    forward = _forward


class Qwen3_5GatedDeltaNet(nn.Module):  # noqa: N801  the name that models ask for
    """See gdn.integrations.transformers_layers.forward."""

    can_torch_compile = True
    has_backward = True
    forward = _forward
