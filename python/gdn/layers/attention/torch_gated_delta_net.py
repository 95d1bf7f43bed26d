# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GatedDeltaNetAttention as a module of PyTorch: parameters by the checkpoints' names,
tensor parallel by torch.distributed. Everything else is that of gated_delta_net."""

from collections.abc import Callable, Mapping

try:
    import torch
except ImportError as error:
    raise ImportError(
        "gdn.layers.attention.torch_gated_delta_net: expected PyTorch to be installed; the"
        " layer for NumPy is gdn.layers.attention.GatedDeltaNetAttention"
    ) from error

from ...runtime import Kernel
from . import gated_delta_net
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
from .torch_delta_layer import DTYPES, TorchDeltaLayer


class GatedDeltaNetAttention(TorchDeltaLayer):
    """Arguments are those of gated_delta_net.GatedDeltaNetAttention without weights, which
    load_weights() brings, and the device of the parameters. `names` are the projections that the
    layer keeps: in_proj_qkvz and in_proj_ba, or in_proj_qkv, in_proj_z, in_proj_b and
    in_proj_a."""

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
        super().__init__(group, options)
        if device is None:
            raise ValueError("device: expected that of the weights, such as 'cuda:0', got none")
        self.config, self.kernels = config, dict(kernels)
        self.order = "flat" if "in_proj_qkv" in names else order
        self.projections = dict(projections or {})
        self.heads = LayerHeads(
            config.linear_num_key_heads,
            config.linear_num_value_heads,
            config.linear_key_head_dim,
            config.linear_value_head_dim,
        )
        gated_delta_net.check_kernels(self.kernels)
        self._runtime = next(iter(self.kernels.values()))._runtime
        own = (*names, "conv1d", "A_log", "dt_bias", "norm", "out_proj")
        weights = LayerWeights(
            self.heads,
            (name for name in own if name not in self.projections),
            hidden_size=config.hidden_size,
            conv_width=config.linear_conv_kernel_dim,
            order=self.order,
            apart=getattr(config, "model_type", None) == "olmo_hybrid",
            tp_size=self.tp_size,
            tp_rank=self.tp_rank,
        )
        types = weight_types(self.kernels, str(dtype).removeprefix("torch."))
        self.make_parameters(weights, types, device)

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
        dtype = options.pop("dtype", DTYPES[types.pop("model_dtype")])
        types |= {"model_dtype": str(dtype).removeprefix("torch."), "order": order_of_model(model)}
        types |= {"names": tuple(name for name in own if name in PROJECTIONS)}
        options = types | options
        return cls(attributes_of(model), kernels, device=device, dtype=dtype, **options)

    def _make(self) -> gated_delta_net.GatedDeltaNetAttention:
        return _RankLayer(
            self.config,
            self.kernels,
            {name: parameter.data for name, parameter in self.named_parameters()},
            rank=(self.tp_size, self.tp_rank),
            order=self.order,
            projections=self.projections,
            all_reduce=self._all_reduce,
            **self.options,
        )


class _RankLayer(gated_delta_net.GatedDeltaNetAttention):
    """A layer whose weights are one rank's share already."""

    def __init__(self, config, kernels, weights, *, rank: tuple[int, int], **options):
        self._rank = rank
        super().__init__(config, kernels, weights, tp_size=rank[0], tp_rank=rank[1], **options)

    def take_share(self, heads, weights):
        return dict(weights)
