# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What layers are made of by a model's configuration: attributes, the order of projections, and
whether kernels were compiled for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

from ...model_config import ModelConfig
from ...runtime import Kernel

LONG_TYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
LAYOUTS = ("interleaved", "flat", "split")
PACKED = ("in_proj_qkvz", "in_proj_ba")
APART = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a")
PROJECTIONS = (*PACKED, *APART)
_REST = ("conv1d", "A_log", "dt_bias", "norm", "out_proj")


def check_model_dtype(dtype: str) -> str:
    """The type of a model's activations, by NumPy's name. ValueError for another word."""
    if dtype not in LONG_TYPES.values():
        raise ValueError(f"model_dtype: expected {', '.join(LONG_TYPES.values())}, got {dtype}")
    return dtype


def model_of(config: object, kernels: Mapping[str, Kernel]) -> ModelConfig:
    """Reads a configuration of transformers, a mapping, or the path of a config.json. ValueError
    for models without such layers, and for kernels that were compiled for another model."""
    model = ModelConfig.from_config(config.to_dict() if hasattr(config, "to_dict") else config)
    if model.per_channel_decay:
        raise ValueError(
            f"model_type: expected a model with a decay of each head, got {model.model_type}"
        )
    wanted = {"doubled_beta": str(int(model.doubled_beta))}
    taken = {param.name for kernel in kernels.values() for param in kernel.params}
    if "norm_constants" not in taken:
        wanted["output_gate"] = model.output_gate
    for name, kernel in kernels.items():
        facts = kernel._image.attributes(kernel.name)
        if (layout := facts.get("layout")) not in (None, *LAYOUTS):
            raise ValueError(
                f"kernels: expected {name} with the layout {' or '.join(LAYOUTS)}, got {layout}"
            )
        for fact, value in wanted.items():
            if facts.get(fact, value) != value:
                raise ValueError(
                    f"kernels: expected {name} with {fact} {value} by the configuration,"
                    f" got {facts[fact]}"
                )
        eps = facts.get("norm_eps")
        if "norm_constants" not in taken and eps is not None and float(eps) != model.norm_eps:
            raise ValueError(
                f"kernels: expected {name} with norm_eps {model.norm_eps} by the configuration,"
                f" got {eps}"
            )
    return model


def attributes_of(model: ModelConfig) -> SimpleNamespace:
    """The attributes of a configuration that layers read."""
    return SimpleNamespace(
        model_type=model.model_type,
        hidden_size=model.hidden_size,
        linear_num_key_heads=model.key_heads,
        linear_num_value_heads=model.value_heads,
        linear_key_head_dim=model.key_dim,
        linear_value_head_dim=model.value_dim,
        linear_conv_kernel_dim=model.conv_width,
        rms_norm_eps=model.norm_eps,
        hidden_act="silu",
        output_gate_type=model.output_gate,
    )


def types_of(model: ModelConfig) -> dict[str, str]:
    """Types of weights and, if the model says, of recurrent states, as arguments of layers."""
    types = {"model_dtype": LONG_TYPES[model.io or "bf16"]}
    return types | ({"mamba_ssm_cache_dtype": LONG_TYPES[model.state]} if model.state else {})


def order_of_model(model: ModelConfig) -> str:
    return "interleaved" if model.layout == "interleaved" else "flat"


def names_of(model: ModelConfig, projections: Iterable[str]) -> tuple[str, ...]:
    """A layer's own arrays, beside projections that the caller computes: one array for q, k, v and
    z and one for b and a, unless some of these are the caller's."""
    given = set(projections)
    if order_of_model(model) == "interleaved" and (mixed := given & set(APART)):
        raise ValueError(
            f"projections: expected {' and '.join(PACKED)} for {model.model_type}, got "
            + ", ".join(sorted(mixed))
        )
    inputs = APART[:2] if given & set(APART[:2]) else PACKED[:1]
    gates = APART[2:] if given & set(APART[2:]) else PACKED[1:]
    gates = () if "in_proj_ba" in given else gates
    return tuple(name for name in (*inputs, *gates, *_REST) if name not in given)


def weight_types(kernels: Mapping[str, Kernel], model_dtype: str) -> dict[str, str]:
    """Types of a layer's arrays: those that kernels take, else that of the model."""
    taken = {param.name: param.dtype for kernel in kernels.values() for param in kernel.params}
    types = dict.fromkeys((*PROJECTIONS, "out_proj"), model_dtype)
    types |= {"A_log": "float32", "dt_bias": taken.get("dt_bias", "float32")}
    types |= {"conv1d": taken.get("conv_weight", model_dtype)}
    return types | {"norm": taken.get("norm_weight", model_dtype)}
