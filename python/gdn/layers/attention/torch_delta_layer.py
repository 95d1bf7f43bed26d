# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers as modules of PyTorch: parameters by the checkpoints' names, tensor parallel by
torch.distributed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from .delta_layer import DeltaLayer
from .gdn_metadata import GDNAttentionMetadata
from .weight_sections import WeightSections

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class TorchDeltaLayer(torch.nn.Module):
    """One rank's part of a layer on a device. Classes of layers make the tensors' places
    (`make_parameters`) and, once these are loaded, the layer over them (`_make`)."""

    mamba_type = "gdn_attention"

    def __init__(self, group: object, options: dict):
        super().__init__()
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.group = group
        self.tp_size = torch.distributed.get_world_size(group) if distributed else 1
        self.tp_rank = torch.distributed.get_rank(group) if distributed else 0
        self._weights: WeightSections | None = None
        self._layer: DeltaLayer | None = None
        self._made_over: tuple[int, ...] = ()
        self.register_load_state_dict_post_hook(TorchDeltaLayer._make_anew_if_moved)
        self._prefix = options.pop("prefix", "")
        self._registry = options.pop("static_forward_context", None)
        self.options = options

    def make_parameters(
        self, weights: WeightSections, types: Mapping[str, str], device: object
    ) -> None:
        """Registers the layer, and its parameters, of nothing but NaN."""
        self._weights = weights
        for name in weights.names:
            # No weight yet: whoever computes with it shall see that.
            shape, wide = weights.shape(name), DTYPES[types[name]]
            weight = torch.full(shape, float("nan"), dtype=wide, device=device)
            parameter = torch.nn.Parameter(weight, requires_grad=False)
            if name in ("A_log", "dt_bias"):
                self.register_parameter(name, parameter)
            else:
                self.add_module(name, _Weight(parameter))
        if self._registry is not None:
            if self._prefix in self._registry:
                raise ValueError(f"prefix: expected a name of its own, got {self._prefix} twice")
            self._registry[self._prefix] = self

    def _make(self) -> DeltaLayer:
        """The layer over the parameters, which are one rank's already."""
        raise NotImplementedError

    def load_weights(
        self,
        weights: Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]],
        *,
        prefix: str = "",
        strict: bool = True,
    ) -> set[str]:
        """Copies this rank's share of the whole layer's weights, without their gradients. See
        load_weights of the layer for NumPy arrays."""
        return self._weights.load(self._own(), weights, prefix, strict)

    def _own(self) -> dict[str, torch.Tensor]:
        """The parameters' memory, by the names of LayerWeights."""
        return {name.removesuffix(".weight"): p.data for name, p in self.named_parameters()}

    def _own_memory(self) -> tuple[int, ...]:
        return tuple(weight.data_ptr() for weight in self._own().values())

    def _apply(self, fn, recurse: bool = True):
        """Moves or converts the parameters, as `to` does."""
        super()._apply(fn, recurse)
        self._make_anew_if_moved()
        return self

    def _make_anew_if_moved(self, *_) -> None:
        """Parameters may get other memory: by `to`, or by load_state_dict(assign=True). The layer
        over them is then made anew, and states have to be bound again."""
        if self._layer is not None and self._made_over != self._own_memory():
            self._layer = None

    def _made(self) -> DeltaLayer:
        if self._layer is None:
            if missing := self._weights.missing(self._own()):
                raise ValueError(f"weights: expected load_weights to bring {', '.join(missing)}")
            self._made_over = self._own_memory()
            self._layer = self._make()
        return self._layer

    def _all_reduce(self, result: torch.Tensor) -> torch.Tensor:
        torch.distributed.all_reduce(result, group=self.group)
        return result

    def get_state_dtype(self) -> tuple[torch.dtype, torch.dtype]:
        """Types of the arrays of get_state_shape()."""
        conv, ssm = self._made().get_state_dtype()
        return DTYPES[conv], DTYPES[ssm]

    def get_state_shape(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of one slot on this rank: conv_state and ssm_state [Hv, dv, dk]."""
        return self._made().get_state_shape()

    def bind_kv_cache(self, conv_state, ssm_state, null_slot: int = 0, **states) -> None:
        """The layer's states, tensors with slots in front of get_state_shape(), which stay the
        caller's. `states` are what kernels keep besides; see bind_kv_cache of the layer for NumPy
        arrays. ValueError for other shapes, GdnError for other types."""
        self._made().bind_kv_cache(conv_state, ssm_state, null_slot, **states)

    def bind_state_pool(self, pool, layer_idx: int) -> None:
        """The same with layer `layer_idx` of a gdn.StatePool."""
        self._made().bind_state_pool(pool, layer_idx)

    def forward(
        self,
        hidden_states: torch.Tensor,
        output: torch.Tensor,
        attn_metadata: GDNAttentionMetadata | None = None,
    ) -> None:
        """As the layer for NumPy arrays; on PyTorch's current stream."""
        self._made().forward(hidden_states, output, attn_metadata)


class _Weight(torch.nn.Module):
    """Gives a parameter the name `<module>.weight`, as checkpoints have it."""

    def __init__(self, weight: torch.nn.Parameter):
        super().__init__()
        self.weight = weight
