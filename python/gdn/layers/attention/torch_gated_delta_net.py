# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GatedDeltaNetAttention as a module of PyTorch: parameters by the checkpoints' names,
tensor parallel by torch.distributed. Everything else is that of gated_delta_net."""

from collections.abc import Callable, Iterable, Mapping

try:
    import torch
except ImportError as error:
    raise ImportError(
        "gdn.layers.attention.torch_gated_delta_net: expected PyTorch to be installed; the"
        " layer for NumPy is gdn.layers.attention.GatedDeltaNetAttention"
    ) from error

from ...runtime import Kernel
from . import gated_delta_net
from .gdn_metadata import GDNAttentionMetadata
from .layer_config import (
    PROJECTIONS,
    attributes_of,
    model_of,
    names_of,
    order_of_model,
    types_of,
    weight_types,
)
from .layer_shape import LayerHeads
from .layer_weights import LayerWeights

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class GatedDeltaNetAttention(torch.nn.Module):
    """Arguments are those of gated_delta_net.GatedDeltaNetAttention without weights, which
    load_weights() brings, and the device of the parameters. `names` are the projections that the
    layer keeps: in_proj_qkvz and in_proj_ba, or in_proj_qkv, in_proj_z, in_proj_b and
    in_proj_a."""

    mamba_type = "gdn_attention"

    def __init__(
        self,
        config,
        kernels: Mapping[str, Kernel],
        *,
        names: tuple[str, ...] = ("in_proj_qkvz", "in_proj_ba"),
        group: object = None,
        device: object = None,
        dtype: torch.dtype = torch.bfloat16,
        order: str = "interleaved",
        projections: Mapping[str, Callable] | None = None,
        **options,
    ):
        super().__init__()
        if device is None:
            raise ValueError("device: expected that of the weights, such as 'cuda:0', got none")
        self.config, self.kernels = config, dict(kernels)
        self.order = "flat" if "in_proj_qkv" in names else order
        self.projections = dict(projections or {})
        self.options = options
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.group = group
        self.tp_size = torch.distributed.get_world_size(group) if distributed else 1
        self.tp_rank = torch.distributed.get_rank(group) if distributed else 0
        self.heads = LayerHeads(
            config.linear_num_key_heads,
            config.linear_num_value_heads,
            config.linear_key_head_dim,
            config.linear_value_head_dim,
        )
        gated_delta_net.check_kernels(self.kernels)
        self._runtime = next(iter(self.kernels.values()))._runtime
        own = (*names, "conv1d", "A_log", "dt_bias", "norm", "out_proj")
        self._weights = LayerWeights(
            self.heads,
            (name for name in own if name not in self.projections),
            hidden_size=config.hidden_size,
            conv_width=config.linear_conv_kernel_dim,
            order=self.order,
            apart=getattr(config, "model_type", None) == "olmo_hybrid",
            tp_size=self.tp_size,
            tp_rank=self.tp_rank,
        )
        model_type = str(dtype).removeprefix("torch.")
        types = weight_types(self.kernels, model_type)
        for name in self._weights.names:
            # No weight yet: whoever computes with it shall see that.
            shape, wide = self._weights.shape(name), _DTYPES[types[name]]
            weight = torch.full(shape, float("nan"), dtype=wide, device=device)
            parameter = torch.nn.Parameter(weight, requires_grad=False)
            if name in ("A_log", "dt_bias"):
                self.register_parameter(name, parameter)
            else:
                self.add_module(name, _Weight(parameter))
        self._layer: gated_delta_net.GatedDeltaNetAttention | None = None
        self._prefix = self.options.pop("prefix", "")
        registry = self.options.pop("static_forward_context", None)
        if registry is not None:
            if self._prefix in registry:
                raise ValueError(f"prefix: expected a name of its own, got {self._prefix} twice")
            registry[self._prefix] = self

    @classmethod
    def from_config(
        cls, config, kernels: Mapping[str, Kernel], *, device: object = None, **options
    ):
        """A layer of a model's configuration: one of transformers, a mapping, or the path of a
        config.json of Qwen3-Next, Qwen3.5 or OLMo-Hybrid. `device` is that of its parameters;
        there is no default. `options` are arguments of the class but names and order; types are
        the configuration's unless they are given. Nothing runs before load_weights() has brought
        all.

        ConfigError for a configuration that gdn-compile refuses; ValueError for kernels of
        another model."""
        gated_delta_net.check_kernels(kernels)
        model = model_of(config, kernels)
        own = names_of(model, options.get("projections") or ())
        types = types_of(model)
        dtype = options.pop("dtype", _DTYPES[types.pop("model_dtype")])
        types |= {"model_dtype": str(dtype).removeprefix("torch."), "order": order_of_model(model)}
        types |= {"names": tuple(name for name in own if name in PROJECTIONS)}
        options = types | options
        return cls(attributes_of(model), kernels, device=device, dtype=dtype, **options)

    def load_weights(
        self,
        weights: Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]],
        *,
        prefix: str = "",
        strict: bool = True,
    ) -> set[str]:
        """Copies this rank's share of the whole layer's weights, without their gradients. See
        gated_delta_net.GatedDeltaNetAttention.load_weights."""
        return self._weights.load(self._own(), weights, prefix, strict)

    def _own(self) -> dict[str, torch.Tensor]:
        """The parameters' memory, by the names of LayerWeights."""
        return {name.removesuffix(".weight"): p.data for name, p in self.named_parameters()}

    def _made(self) -> gated_delta_net.GatedDeltaNetAttention:
        """The layer over the parameters, which are one rank's already."""
        if self._layer is None:
            if missing := self._weights.missing(self._own()):
                raise ValueError(f"weights: expected load_weights to bring {', '.join(missing)}")
            self._layer = _RankLayer(
                self.config,
                self.kernels,
                {name: parameter.data for name, parameter in self.named_parameters()},
                rank=(self.tp_size, self.tp_rank),
                order=self.order,
                projections=self.projections,
                all_reduce=self._all_reduce,
                **self.options,
            )
        return self._layer

    def _all_reduce(self, result: torch.Tensor) -> torch.Tensor:
        torch.distributed.all_reduce(result, group=self.group)
        return result

    def get_state_dtype(self) -> tuple[torch.dtype, torch.dtype]:
        conv, ssm = self._made().get_state_dtype()
        return _DTYPES[conv], _DTYPES[ssm]

    def get_state_shape(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self._made().get_state_shape()

    def bind_kv_cache(self, conv_state, ssm_state, null_slot: int = 0, **states) -> None:
        self._made().bind_kv_cache(conv_state, ssm_state, null_slot, **states)

    def bind_state_pool(self, pool, layer_idx: int) -> None:
        self._made().bind_state_pool(pool, layer_idx)

    def forward(
        self,
        hidden_states: torch.Tensor,
        output: torch.Tensor,
        attn_metadata: GDNAttentionMetadata | None = None,
    ) -> None:
        """See gated_delta_net.GatedDeltaNetAttention.forward; on PyTorch's current stream."""
        self._made().forward(hidden_states, output, attn_metadata)


class _Weight(torch.nn.Module):
    """Gives a parameter the name `<module>.weight`, as checkpoints have it."""

    def __init__(self, weight: torch.nn.Parameter):
        super().__init__()
        self.weight = weight


class _RankLayer(gated_delta_net.GatedDeltaNetAttention):
    """A layer whose weights are one rank's share already."""

    def __init__(self, config, kernels, weights, *, rank: tuple[int, int], **options):
        self._rank = rank
        super().__init__(config, kernels, weights, tp_size=rank[0], tp_rank=rank[1], **options)

    def take_share(self, heads, weights):
        return dict(weights)
