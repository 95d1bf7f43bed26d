# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layer GatedDeltaNetAttention with vLLM's names, for NumPy arrays and, by way of
torch_gated_delta_net, tensors: projections, the core of the runtime library, the gated
norm, and the output projection."""

import itertools
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ...array_library import NumpyArrays
from ...model_config import LEAST_F32, MOST_F32, OLMO_NORM_EPS
from ...runtime import Kernel
from .delta_layer import GATES, DeltaLayer, check_callables, check_kernels
from .layer_config import (
    PROJECTIONS,
    attributes_of,
    check_model_dtype,
    model_of,
    names_of,
    order_of_model,
    types_of,
    weight_types,
)
from .layer_shape import LayerHeads, shard_weights
from .layer_weights import LayerWeights


def order_of(kernels: Mapping[str, Kernel]) -> str | None:
    """The order of in_proj_qkvz and in_proj_ba that kernels take, "interleaved" or "flat";
    None for kernels of the layout split, which take any."""
    found = {k._image.attributes(k.name).get("layout") for k in kernels.values()}
    found &= {"interleaved", "flat"}
    if len(found) > 1:
        raise ValueError("kernels: expected one order of projections, got flat and interleaved")
    return found.pop() if found else None


def fact_of(kernels: Mapping[str, Kernel], name: str, otherwise: object) -> object:
    """What the image states about its layer, in the type of `otherwise`, which holds where
    it states nothing. One image has one layer, and so has what a layer is made of."""
    found = {k._image.attributes(k.name).get(name) for k in kernels.values()} - {None}
    if len(found) > 1:
        raise ValueError(f"kernels: expected one {name}, got {', '.join(sorted(found))}")
    return type(otherwise)(found.pop()) if found else otherwise


class GatedDeltaNetAttention(DeltaLayer):
    """One rank's part of a layer.

    `config` has the attributes of the models' configurations (linear_num_key_heads, ...).
    `weights` are the whole layer's, by the checkpoint's names without prefix
    ("in_proj_qkvz.weight", "conv1d.weight", "A_log"); this rank's share is taken. Without them
    load_weights() brings the arrays `names`, as in a layer of from_config(). A projection that
    is given as a callable is used as it is: that is where quantised ones come in. `order` is that
    of in_proj_qkvz and in_proj_ba, "interleaved" (Qwen3-Next) or "flat"; beside in_proj_qkv
    in_proj_ba is flat always. Epsilon and gate of the norm are those that the image was made for,
    or the configuration's where kernels take them as `norm_constants`.

    The layout of the kernels says what is handed over: kernels of the checkpoint's layout
    take the projections in place, those with the layout split get views. Kernels that give
    `out` do the norm themselves.
    """

    def __init__(
        self,
        config,
        kernels: Mapping[str, Kernel],
        weights: Mapping[str, object] | None,
        *,
        names: tuple[str, ...] = (),
        tp_size: int = 1,
        tp_rank: int = 0,
        order: str = "interleaved",
        num_spec: int = 0,
        model_dtype: str = "bfloat16",
        mamba_cache_dtype: str = "auto",
        mamba_ssm_cache_dtype: str = "auto",
        conv_state_layout: str = "SD",
        prefix: str = "",
        static_forward_context: dict | None = None,
        projections: Mapping[str, Callable] | None = None,
        all_reduce: Callable | None = None,
    ):
        self.prefix = prefix
        if static_forward_context is not None and prefix in static_forward_context:
            raise ValueError(f"prefix: expected a name of its own, got {prefix} twice")
        if weights is None and not names:
            raise ValueError("weights: expected those of a layer, or from_config(), got none")
        self.kernels = dict(kernels)
        check_kernels(self.kernels)
        self._runtime = next(iter(self.kernels.values()))._runtime
        self._taken = {param.name for k in self.kernels.values() for param in k.params}
        wanted = order_of(self.kernels)
        if wanted not in (None, order):
            raise ValueError(f"order: expected {wanted} for kernels with that, got {order}")
        self.tp_size, self.tp_rank = tp_size, tp_rank
        self.hidden_size = config.hidden_size
        self.num_k_heads = config.linear_num_key_heads
        self.num_v_heads = config.linear_num_value_heads
        self.head_k_dim = config.linear_key_head_dim
        self.head_v_dim = config.linear_value_head_dim
        self.key_dim = self.num_k_heads * self.head_k_dim
        self.value_dim = self.num_v_heads * self.head_v_dim
        self.conv_dim = 2 * self.key_dim + self.value_dim
        self.conv_kernel_size = config.linear_conv_kernel_dim
        # Models have several epsilons, and not all have a gate: the image was made of the right
        # ones.
        named = {} if "norm_constants" in self._taken else kernels
        self.model_type = getattr(config, "model_type", None)
        eps = OLMO_NORM_EPS if self.model_type == "olmo_hybrid" else float(config.rms_norm_eps)
        if not LEAST_F32 <= eps <= MOST_F32:
            raise ValueError(f"rms_norm_eps: expected a positive number of f32, got {eps}")
        self.layer_norm_epsilon = fact_of(named, "norm_eps", eps)
        self.activation = config.hidden_act
        if self.activation not in ("silu", "swish"):
            raise ValueError(f"hidden_act: expected silu or swish, got {self.activation}")
        gate = getattr(config, "output_gate_type", None)
        if gate is not None and gate not in GATES:
            raise ValueError(f"output_gate_type: expected {', '.join(GATES)}, got {gate}")
        self.output_gate = fact_of(named, "output_gate", GATES[gate or "silu"])
        if gate is not None and GATES[gate] != self.output_gate:
            raise ValueError(
                f"output_gate_type: expected {self.output_gate}, that of the image, got {gate}"
            )
        # Checkpoints that have q, k and v apart from z have b and a one behind the other.
        apart = "in_proj_qkv.weight" in (weights or {}) or "in_proj_qkv" in (projections or {})
        self.order = "flat" if apart else order
        self.num_spec = num_spec
        self.model_dtype = check_model_dtype(model_dtype)
        self.mamba_cache_dtype = mamba_cache_dtype
        self.mamba_ssm_cache_dtype = mamba_ssm_cache_dtype
        self.conv_state_layout = conv_state_layout
        self.all_reduce = all_reduce
        self._is_loaded = False

        heads = LayerHeads(self.num_k_heads, self.num_v_heads, self.head_k_dim, self.head_v_dim)
        given = check_callables(projections)
        unknown = set(given) - {*PROJECTIONS, "out_proj"}
        if unknown:
            raise ValueError(
                f"projections: expected {', '.join(PROJECTIONS)} or out_proj, got "
                + ", ".join(sorted(unknown))
            )
        self._parts: LayerWeights | None = None
        if weights is None:
            share = self._make_share(heads, names)
        else:
            share = self.take_share(heads, weights)
        for name in (*PROJECTIONS, "out_proj"):
            weight = share.get(f"{name}.weight")
            setattr(self, name, given.get(name) or (None if weight is None else _linear(weight)))
        for name in ("conv1d.weight", "A_log", "dt_bias"):
            if name not in share:
                raise ValueError(f"{name}: expected a weight, got none")
        conv = share["conv1d.weight"]
        self.conv_weight = conv.reshape(conv.shape[0], conv.shape[-1])
        self.A_log = share["A_log"]
        self.dt_bias = share["dt_bias"]
        self.norm_weight = share.get("norm.weight")
        if self.out_proj is None:
            raise ValueError("out_proj: expected a weight or a callable")
        self._out_width = None if "out_proj" in given else self.hidden_size
        self._check_projections()
        if static_forward_context is not None:
            static_forward_context[prefix] = self

    @classmethod
    def from_config(cls, config, kernels: Mapping[str, Kernel], **options):
        """A layer without weights, for NumPy arrays, of a model's configuration: one of
        transformers, a mapping, or the path of a config.json of Qwen3-Next, Qwen3.5 or
        OLMo-Hybrid. `options` are arguments of the class but weights, names and order; types are
        the configuration's unless they are given. Nothing runs before load_weights() has brought
        all.

        ConfigError for a configuration that gdn-compile refuses; ValueError for kernels of
        another model."""
        check_kernels(kernels)
        model = model_of(config, kernels)
        names = names_of(model, options.get("projections") or ())
        options = types_of(model) | {"names": names, "order": order_of_model(model)} | options
        return cls(attributes_of(model), kernels, None, **options)

    def load_weights(
        self,
        weights: Mapping[str, object] | Iterable[tuple[str, object]],
        *,
        prefix: str = "",
        strict: bool = True,
    ) -> set[str]:
        """Copies this rank's share of the whole layer's weights, of a layer of from_config(). Names
        are the checkpoint's, merged (in_proj_qkvz, in_proj_ba) or apart (in_proj_qkv, in_proj_z,
        in_proj_b, in_proj_a; q_proj, k_proj, v_proj, g_proj, b_proj, a_proj), behind `prefix`;
        names without it are left out. Several calls may bring them, and later ones replace what is
        there. Returns the names that were taken.

        ValueError for a wrong shape and, with `strict`, for an unknown name."""
        if self._parts is None:
            raise ValueError("weights: expected a layer of from_config(), got one that has weights")
        return self._parts.load(self._own, weights, prefix, strict)

    def _make_share(self, heads: LayerHeads, names: tuple[str, ...]) -> dict[str, object]:
        """This rank's arrays, of nothing but NaN, in the types that the kernels take."""
        self._parts = LayerWeights(
            heads,
            names,
            hidden_size=self.hidden_size,
            conv_width=self.conv_kernel_size,
            order=self.order,
            apart=self.model_type == "olmo_hybrid",
            tp_size=self.tp_size,
            tp_rank=self.tp_rank,
        )
        types, numpy = weight_types(self.kernels, self.model_dtype), NumpyArrays()
        self._own = {n: numpy.empty(self._parts.shape(n), types[n]) for n in names}
        for array in self._own.values():
            array[...] = np.nan
        return {n if n in ("A_log", "dt_bias") else f"{n}.weight": x for n, x in self._own.items()}

    def _check_loaded(self) -> None:
        if self._parts is not None and not self._is_loaded:
            if missing := self._parts.missing(self._own):
                raise ValueError(f"weights: expected load_weights to bring {', '.join(missing)}")
            self._is_loaded = True

    def take_share(self, heads: LayerHeads, weights: Mapping[str, object]) -> dict[str, object]:
        """This rank's part of the whole layer's weights."""
        return shard_weights(
            self._runtime,
            heads,
            weights,
            self.tp_size,
            self.tp_rank,
            self.order,
            hidden_size=self.hidden_size,
            conv_width=self.conv_kernel_size,
        )

    def _check_projections(self) -> None:
        """Every projection that a step calls is there."""
        has = {name for name in PROJECTIONS if getattr(self, name) is not None}
        gates = has >= {"in_proj_ba"} or has >= {"in_proj_b", "in_proj_a"}
        packed = has >= {"in_proj_qkvz"} and "in_proj_ba" in has
        apart = has >= {"in_proj_qkv", "in_proj_z"} and gates
        if not (packed or (apart and "qkvz" not in self._taken)):
            raise ValueError(
                "projections: expected in_proj_qkvz and in_proj_ba, or in_proj_qkv, in_proj_z and"
                f" those of b and a, got {', '.join(sorted(has)) or 'none'}"
            )

    # A step.

    def _forward_core(
        self, mixed_qkv, b, a, core_attn_out, attn_metadata=None, stream=None
    ) -> None:
        """The core alone, into core_attn_out [T, Hv, dv]; of kernels with the layout split."""
        arrays = {"qkv": mixed_qkv, "b": b, "a": a}
        self._run(attn_metadata, arrays, core_attn_out, stream)

    def project(self, hidden_states) -> tuple[dict[str, object], object]:
        """What the kernels take of the projections, and z [T, Hv * dv] unless it is packed."""
        self._check_loaded()
        if "qkvz" in self._taken:
            qkvz = self._call("in_proj_qkvz", hidden_states)
            ba = self._call("in_proj_ba", hidden_states)
            z = None
            if "out" not in self._taken:
                z = self.fix_query_key_value_ordering(qkvz, ba)[3]
            return {"qkvz": qkvz, "ba": ba}, z
        if self.in_proj_qkv is not None:
            qkv = self.in_proj_qkv(hidden_states)
            z = self._call("in_proj_z", hidden_states)
            # Of both kinds those apart: what is merged may be left over from a checkpoint.
            if self.in_proj_b is not None and self.in_proj_a is not None:
                b = self._call("in_proj_b", hidden_states)
                a = self._call("in_proj_a", hidden_states)
            else:
                ba = self._call("in_proj_ba", hidden_states)
                half = ba.shape[1] // 2
                b, a = ba[:, :half], ba[:, half:]
        else:
            qkvz = self._call("in_proj_qkvz", hidden_states)
            ba = self._call("in_proj_ba", hidden_states)
            if self.order == "flat":
                # Strided views: kernels take any distance between rows.
                ends = self.conv_dim // self.tp_size
                qkv, z = qkvz[:, :ends], qkvz[:, ends:]
                half = ba.shape[1] // 2
                b, a = ba[:, :half], ba[:, half:]
            else:
                query, key, value, z, b, a = self.fix_query_key_value_ordering(qkvz, ba)
                qkv = self._concatenate([query, key, value])
                z = self._concatenate([z])
        return {"qkv": qkv, "b": b, "a": a}, z

    def fix_query_key_value_ordering(self, mixed_qkvz, mixed_ba):
        """query, key [T, Hk, dk], value, z [T, Hv, dv], b and a [T, Hv], of this rank, from
        the projections in the layer's order."""
        heads, values = self.num_k_heads // self.tp_size, self.num_v_heads // self.tp_size
        tokens, dk, dv = mixed_qkvz.shape[0], self.head_k_dim, self.head_v_dim
        share = values // heads
        if self.order == "flat":
            keys, width = heads * dk, values * dv
            ends = (0, keys, 2 * keys, 2 * keys + width, 2 * keys + 2 * width)
            parts = [mixed_qkvz[:, i:j] for i, j in itertools.pairwise(ends)]
            b, a = mixed_ba[:, :values], mixed_ba[:, values:]
        else:
            groups = mixed_qkvz.reshape(tokens, heads, 2 * dk + 2 * share * dv)
            ends = (0, dk, 2 * dk, 2 * dk + share * dv, 2 * dk + 2 * share * dv)
            parts = [groups[:, :, i:j] for i, j in itertools.pairwise(ends)]
            gates = mixed_ba.reshape(tokens, heads, 2 * share)
            b = gates[:, :, :share].reshape(tokens, values)
            a = gates[:, :, share:].reshape(tokens, values)
        query, key = (part.reshape(tokens, heads, dk) for part in parts[:2])
        value, z = (part.reshape(tokens, values, dv) for part in parts[2:])
        return query, key, value, z, b, a

    # Parts.

    def _call(self, name: str, hidden_states):
        projection = getattr(self, name)
        if projection is None:
            raise ValueError(f"{name}: the kernels need this projection, and there is none")
        return projection(hidden_states)

    def _concatenate(self, parts):
        """[T, heads, dim] each to [T, all of them]."""
        # Sizes in full: there may be no tokens.
        flat = [part.reshape(len(part), part.shape[1] * part.shape[2]) for part in parts]
        if isinstance(flat[0], np.ndarray):
            return np.concatenate(flat, axis=1)
        import torch

        return torch.cat(flat, dim=1)


def _linear(weight) -> Callable:
    return lambda x: x @ weight.T
