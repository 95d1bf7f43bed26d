# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layer KimiDeltaAttention of Kimi-Linear, Kimi K3, GLM-5.3-Flash and Ling-3.0, with the names
of weights that the models have: for NumPy arrays and, in torch_kimi_delta_attention, tensors."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from ...array_library import NumpyArrays
from ...model_config import ModelConfig
from ...runtime import Kernel
from .delta_layer import DeltaLayer, check_callables, check_kernels
from .kda_weights import KdaProjections, KdaWeights
from .layer_config import LONG_TYPES, check_model_dtype


class KimiDeltaAttention(DeltaLayer):
    """One rank's part of a layer.

    `config` is a configuration of transformers, a mapping, the path of a config.json, or a
    gdn.ModelConfig: ConfigError for one that gdn-compile refuses. `kernels` are those of its model
    with the layout separate. `weights` are the whole layer's, by the checkpoint's names without
    prefix, of which this rank's share is taken; load_weights() may bring them later. A projection
    of `projections` is used as it is: that is where quantised ones come in. Projections of hidden
    states that are the layer's own are one array, in_proj, but for b_proj and for the second one
    where a decay or a gate has two. Unless they are given, types are the configuration's, that of
    states that of the kernels."""

    def __init__(
        self,
        config: object,
        kernels: Mapping[str, Kernel],
        weights: Mapping[str, object] | None = None,
        *,
        tp_size: int = 1,
        tp_rank: int = 0,
        num_spec: int = 0,
        model_dtype: str | None = None,
        mamba_cache_dtype: str = "auto",
        mamba_ssm_cache_dtype: str | None = None,
        conv_state_layout: str = "SD",
        prefix: str = "",
        static_forward_context: dict | None = None,
        projections: Mapping[str, Callable] | None = None,
        all_reduce: Callable | None = None,
    ):
        if static_forward_context is not None and prefix in static_forward_context:
            raise ValueError(f"prefix: expected a name of its own, got {prefix} twice")
        self.prefix, self.kernels = prefix, dict(kernels)
        model = self.model = kda_model_of(config, self.kernels)
        self._runtime = next(iter(self.kernels.values()))._runtime
        self._taken = {param.name for k in self.kernels.values() for param in k.params}
        self.tp_size, self.tp_rank, self.num_spec = tp_size, tp_rank, num_spec
        self.num_k_heads = self.num_v_heads = model.value_heads
        self.head_k_dim = self.head_v_dim = model.key_dim
        self.conv_kernel_size = model.conv_width
        self.model_dtype = check_model_dtype(model_dtype or LONG_TYPES[model.io or "bf16"])
        self.mamba_cache_dtype = mamba_cache_dtype
        states = {
            p.dtype for k in self.kernels.values() for p in k.params if p.name == "state_pool"
        }
        self.mamba_ssm_cache_dtype = mamba_ssm_cache_dtype or states.pop()
        self.conv_state_layout, self.all_reduce = conv_state_layout, all_reduce
        self.layer_norm_epsilon, self.output_gate = model.norm_eps, model.output_gate
        given = self._given = check_callables(projections)
        self._parts = kda_weights_of(model, given, tp_size, tp_rank)
        self._columns = self._parts.columns_of()
        self._is_loaded = False
        self._own = self._make_arrays()
        self.out_proj = given.get("o_proj") or (lambda x: x @ self._own["o_proj"].T)
        self._out_width = None if "o_proj" in given else model.hidden_size
        conv = self._own["conv1d"]
        self.conv_weight = conv.reshape(conv.shape[0], conv.shape[-1])
        self.A_log = self._own["A_log"]
        self.dt_bias = self._own["dt_bias"].reshape(-1, model.key_dim)
        self.norm_weight = self._own["o_norm"]
        if weights is not None:
            self.load_weights(weights)
        if static_forward_context is not None:
            static_forward_context[prefix] = self

    def _make_arrays(self) -> dict[str, object]:
        """This rank's arrays, of nothing but NaN, in the types that the kernels take."""
        types, numpy = kda_weight_types(self.kernels, self.model_dtype), NumpyArrays()
        own = {n: numpy.empty(self._parts.shape(n), types[n]) for n in self._parts.names}
        for array in own.values():
            array[...] = np.nan
        return own

    def load_weights(
        self,
        weights: Mapping[str, object] | Iterable[tuple[str, object]],
        *,
        prefix: str = "",
        strict: bool = True,
    ) -> set[str]:
        """Copies this rank's share of the whole layer's weights. Names are the checkpoint's
        (q_proj, q_conv1d, f_a_proj, A_log), or those of transformers (conv1d, forget_gate.f_a_proj,
        forget_gate.A_log), behind `prefix`; names without it are left out. A_log is [H] or
        [1, 1, H, 1]. Several calls may bring them, and later ones replace what is there. Returns
        the names that were taken.

        ValueError for a wrong shape and, with `strict`, for an unknown name."""
        return self._parts.load(self._own, weights, prefix, strict)

    def _check_loaded(self) -> None:
        if not self._is_loaded:
            if missing := self._parts.missing(self._own):
                raise ValueError(f"weights: expected load_weights to bring {', '.join(missing)}")
            self._is_loaded = True

    def project(self, hidden_states) -> tuple[dict[str, object], object]:
        """q, k, v and a [T, H, d] and b [T, H], which the kernels take, and z [T, H, d]. Those that
        in_proj makes are views of its rows."""
        self._check_loaded()
        tokens, rows = hidden_states.shape[0], self.num_v_heads // self.tp_size
        merged = hidden_states @ self._own["in_proj"].T if self._columns else None

        def made(name: str, x=hidden_states):
            if name in self._columns:
                return merged[:, self._columns[name]]
            if name in self._given:
                return self._given[name](x)
            return x @ self._own[name].T

        def heads(*names: str):
            x = hidden_states
            for name in names:
                x = made(name, x)
            if x.shape[0] != tokens or math.prod(x.shape[1:]) != rows * self.head_k_dim:
                raise ValueError(
                    f"{names[-1]}: expected a result [{tokens}, {rows * self.head_k_dim}], got"
                    f" {list(x.shape)}"
                )
            # Sizes in full: there may be no tokens.
            return x.reshape(tokens, rows, self.head_k_dim)

        decay = ("f_proj",) if self.model.full_rank_decay else ("f_a_proj", "f_b_proj")
        gate = ("g_proj",) if self.model.full_rank_gate else ("g_a_proj", "g_b_proj")
        arrays = {name: heads(f"{name}_proj") for name in ("q", "k", "v")}
        arrays |= {"b": made("b_proj"), "a": heads(*decay)}
        return arrays, heads(*gate)


def kda_weights_of(
    model: ModelConfig, given: Collection[str], tp_size: int, tp_rank: int
) -> KdaWeights:
    """The tensors of one rank's layer, beside projections that are given."""
    projections = KdaProjections(
        full_rank_decay=model.full_rank_decay, full_rank_gate=model.full_rank_gate, given=given
    )
    return KdaWeights(
        projections,
        num_heads=model.value_heads,
        head_dim=model.key_dim,
        hidden_size=model.hidden_size,
        conv_width=model.conv_width,
        has_out="o_proj" not in given,
        tp_size=tp_size,
        tp_rank=tp_rank,
    )


def kda_model_of(config: object, kernels: Mapping[str, Kernel]) -> ModelConfig:
    """Reads a configuration. ValueError for models without decays of channels, and for kernels that
    were compiled for another model."""
    check_kernels(kernels)
    model = config
    if not isinstance(config, ModelConfig):
        model = ModelConfig.from_config(config.to_dict() if hasattr(config, "to_dict") else config)
    if not model.per_channel_decay:
        raise ValueError(
            f"model_type: expected a model with a decay of each channel, got {model.model_type}"
        )
    taken = {param.name for kernel in kernels.values() for param in kernel.params}
    wanted = {
        "layout": "separate",
        "doubled_beta": str(int(model.doubled_beta)),
        "decay_bound": model.decay_bound,
    }
    if "norm_constants" not in taken:
        wanted |= {"output_gate": model.output_gate, "norm_eps": model.norm_eps}
    for name, kernel in kernels.items():
        facts = kernel._image.attributes(kernel.name)
        if "layout" not in facts:
            continue  # a commit
        found = {fact: facts.get(fact) for fact in wanted}
        for fact in {"decay_bound", "norm_eps"} & set(wanted):
            found[fact] = None if found[fact] is None else float(found[fact])
        for fact, value in wanted.items():
            if found[fact] != value:
                raise ValueError(
                    f"kernels: expected {name} with {fact} {value} by the configuration, got"
                    f" {found[fact]}"
                )
    return model


def kda_weight_types(kernels: Mapping[str, Kernel], model_dtype: str) -> dict[str, str]:
    """Types of a layer's arrays: those that kernels take, else that of the model."""
    taken = {param.name: param.dtype for kernel in kernels.values() for param in kernel.params}
    names = ("in_proj", "b_proj", "f_b_proj", "g_b_proj", "o_proj")
    types = dict.fromkeys(names, model_dtype) | {"A_log": "float32"}
    types |= {"dt_bias": taken.get("dt_bias", "float32")}
    types |= {"conv1d": taken.get("conv_weight", model_dtype)}
    return types | {"o_norm": taken.get("norm_weight", model_dtype)}
