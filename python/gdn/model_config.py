# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model's config.json says about its gated-delta-network layers, as gdn-compile reads it.

`ModelConfig.from_config` accepts and refuses the same configurations as the compiler, with the
same messages (lib/Model/ModelConfig.cpp); a test compares the two.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .config_text import ConfigError, parse, text_of

# By model type: the family, which says where the sizes are, and the layout of the projections.
_MODEL_TYPES = {
    "qwen3_next": ("qwen", "interleaved"),
    "qwen3_5": ("qwen", "flat"),
    "qwen3_5_text": ("qwen", "flat"),
    "qwen3_5_moe": ("qwen", "flat"),
    "qwen3_5_moe_text": ("qwen", "flat"),
    "qwen4_exp": ("qwen", "flat"),
    "qwen4_exp_text": ("qwen", "flat"),
    "olmo_hybrid": ("olmo", "separate"),
    "kimi_linear": ("kimi", "separate"),
    "kimi_k3": ("kimi", "separate"),
    "glm5_next": ("glm", "separate"),
    "glm5_next_text": ("glm", "separate"),
    "bailing_hybrid": ("ling", "separate"),
    "bailing_moe_v3": ("ling", "separate"),
    "bailing_moe_v3_vl": ("ling", "separate"),
}
_DTYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
# The normal numbers of f32, and the largest of f64.
LEAST_F32, MOST_F32 = 2.0**-126, (2 - 2.0**-23) * 2.0**127
_MOST_F64 = (2 - 2.0**-52) * 2.0**1023
_MOST_SHOWN = 60

# The least log decay of models that bound it, and where they do not say it.
LEAST_BOUND = -5.0

#: OLMo-Hybrid fixes this epsilon; `rms_norm_eps` is that of its other norms.
OLMO_NORM_EPS = 1e-5


@dataclass(frozen=True)
class ModelConfig:
    """The gated-delta-network layers of a model; all of them are alike."""

    name: str  # of the file, for messages
    model_type: str
    layout: str  # how projections are packed: "interleaved", "flat" or "separate"
    hidden_size: int
    num_layers: int  # of every kind
    num_gdn_layers: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_width: int
    output_gate: str = "silu"
    doubled_beta: bool = False  # beta in (0, 2) instead of (0, 1)
    per_channel_decay: bool = False
    decay_bound: float | None = None  # the least logarithm of a decay, if it has one
    # Of a layer with a decay of each channel: whether one projection makes it, not two with the
    # size of a head between them; and the same of the gate of the norm.
    full_rank_decay: bool = False
    full_rank_gate: bool = False
    norm_eps: float = 1e-6
    io: str | None = None  # type of activations, if the model says: "bf16", "f16" or "f32"
    state: str | None = None  # type of recurrent states, if it says

    @classmethod
    def from_config(cls, config: Mapping[str, object] | str | os.PathLike[str]) -> ModelConfig:
        """Reads a Hugging Face configuration: a mapping, the path of its config.json, or of the
        folder that has one. Raises ConfigError, and TypeError for what is neither."""
        if isinstance(config, Mapping):
            return cls.from_text(text_of(config), "config.json")
        if not isinstance(config, str | os.PathLike):
            raise TypeError(f"config: expected a mapping or a path, got {type(config).__name__}")
        path = Path(config)
        path = path / "config.json" if path.is_dir() else path
        try:
            return cls.from_text(path.read_bytes().decode(), str(path))
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: is not JSON: {error}") from None

    @classmethod
    def from_text(cls, text: str, name: str) -> ModelConfig:
        """Reads the text of a config.json; `name` stands for it in messages."""
        return _read(_Reader(parse(text, name), name))

    def facts(self) -> dict[str, object]:
        """What decides which code its layers need, without what an engine chooses."""
        return {
            "layout": self.layout,
            "output_gate": self.output_gate,
            "norm_eps": self.norm_eps,
            "doubled_beta": self.doubled_beta,
            "decay": "channel" if self.per_channel_decay else "head",
            "decay_bound": self.decay_bound,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "conv_width": self.conv_width,
            "io": self.io or "bf16",
            "state": self.state or "f32",
        }


class _Reader:
    """Typed access to a JSON object. The first failure is kept, and later reads give values that
    do no harm, so that a caller reads everything and asks once."""

    def __init__(self, values: dict[str, object], name: str, prefix: str = ""):
        self.values, self.name, self.prefix = values, name, prefix
        self.failure: str | None = None

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def expected(self, key: str, what: str) -> None:
        found = _shown(self.values[key]) if key in self.values else "nothing"
        if self.failure is None:
            self.failure = f"{self.name}: {self.prefix}{key}: expects {what}, but got {found}"

    def positive(self, key: str) -> int:
        value = _integer(self.values.get(key))
        if value is not None and value >= 1:
            return value
        self.expected(key, "a positive integer")
        return 1

    def positive_number(self, key: str) -> float:
        value = self.values.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and LEAST_F32 <= value <= MOST_F32:
            return float(value)
        is_positive = is_number and value > 0
        self.expected(key, "a positive number of f32" if is_positive else "a positive number")
        return 1.0

    def number(self, key: str) -> float:
        value = self.values.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(max(min(value, _MOST_F64), -_MOST_F64))
        self.expected(key, "a number")
        return -1.0

    def boolean(self, key: str) -> bool:
        value = self.values.get(key)
        if isinstance(value, bool):
            return value
        self.expected(key, "true or false")
        return False

    def string(self, key: str) -> str:
        value = self.values.get(key)
        if isinstance(value, str):
            return value
        self.expected(key, "a string")
        return ""

    def array(self, key: str) -> list[object] | None:
        """None where it is absent or null."""
        if not self.has(key):
            return None
        value = self.values[key]
        if isinstance(value, list):
            return value
        self.expected(key, "an array")
        return None

    def inner(self, key: str) -> _Reader:
        """An object inside; on failure a reader of nothing."""
        value = self.values.get(key)
        if not isinstance(value, dict):
            self.expected(key, "an object")
            value = {}
        return _Reader(value, self.name, f"{self.prefix}{key}.")

    def take(self, other: _Reader) -> None:
        """Notes the failure of another reader."""
        if self.failure is None:
            self.failure = other.failure

    def check(self) -> None:
        if self.failure is not None:
            raise ConfigError(self.failure)


def _integer(value: object) -> int | None:
    """Whole numbers of 64 bits, also those that are written as 4.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if -(2**63) <= value < 2**63 else None


def _json_of(value: object) -> str:
    """JSON as the compiler prints it in messages."""
    if isinstance(value, dict):
        inside = (f"{_json_of(key)}:{_json_of(value[key])}" for key in sorted(value))
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json_of, value)) + "]"
    if isinstance(value, float):
        return f"{value:.17g}"
    return json.dumps(value, ensure_ascii=False)


def _shown(value: object) -> str:
    text = _json_of(value)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def _read(top: _Reader) -> ModelConfig:
    nested = top.has("text_config")
    reader = top.inner("text_config") if nested else _Reader(top.values, top.name)
    # Some nested configurations leave their type to the outer one.
    typed = top if nested and not reader.has("model_type") else reader
    model_type = typed.string("model_type")
    top.check()
    typed.check()
    if model_type not in _MODEL_TYPES:
        known, found = ", ".join(_MODEL_TYPES), model_type
        found = found[: _MOST_SHOWN - 3] + "..." if len(found) > _MOST_SHOWN else found
        raise ConfigError(f'{top.name}: model_type: expects one of {known}, but got "{found}"')
    family, layout = _MODEL_TYPES[model_type]
    fields: dict = {"name": top.name, "model_type": model_type, "layout": layout}
    fields["hidden_size"] = reader.positive("hidden_size")
    fields["num_layers"] = reader.positive("num_hidden_layers")
    _FAMILIES[family](reader, fields)
    fields["io"] = _first_dtype((reader, top), ("dtype", "torch_dtype"))
    fields["state"] = _first_dtype((reader, top), ("mamba_ssm_dtype",))
    reader.take(top)
    reader.check()
    config = ModelConfig(**fields)
    _check_sizes(config)
    return config


def _first_dtype(readers: tuple[_Reader, ...], keys: tuple[str, ...]) -> str | None:
    """Types may stand outside alone."""
    for reader in readers:
        for key in keys:
            if reader.has(key):
                return _dtype(reader, key)
    return None


def _dtype(reader: _Reader, key: str) -> str | None:
    name = reader.string(key)
    if name == "auto":
        return None
    if name not in _DTYPES:
        reader.expected(key, "float32, bfloat16, float16 or auto")
    return _DTYPES.get(name)


def _count_gdn_layers(reader: _Reader, num_layers: int, by_default: int) -> int:
    """Those of `layer_types`, or all but every `full_attention_interval`-th, or so many as there
    are by default."""
    types = reader.array("layer_types")
    if types is not None:
        count = types.count("linear_attention")
        if len(types) != num_layers or count == 0:
            reader.expected(
                "layer_types",
                f"the kinds of {num_layers} layers, of which one is linear_attention",
            )
        return count
    if not reader.has("full_attention_interval"):
        return by_default
    interval = reader.positive("full_attention_interval")
    if interval < 2:
        reader.expected("full_attention_interval", "2 or more, so that a layer is linear attention")
    return num_layers - num_layers // interval


def _refuse_flag(reader: _Reader, key: str, neutral: bool) -> None:
    """A field that changes what a layer computes: only the value that leaves it as it is."""
    if reader.has(key) and reader.boolean(key) != neutral:
        word = "true" if neutral else "false"
        reader.expected(key, f"{word}, the only form that is implemented")


def _check_activation(reader: _Reader) -> None:
    """What the convolution of the models of transformers applies."""
    if reader.string("hidden_act") not in ("silu", "swish"):
        reader.expected("hidden_act", "silu or swish")


def _read_heads(reader: _Reader, fields: dict) -> None:
    for name, key in (
        ("key_heads", "linear_num_key_heads"),
        ("value_heads", "linear_num_value_heads"),
        ("key_dim", "linear_key_head_dim"),
        ("value_dim", "linear_value_head_dim"),
        ("conv_width", "linear_conv_kernel_dim"),
    ):
        fields[name] = reader.positive(key)
    layers = fields["num_layers"]
    fields["num_gdn_layers"] = _count_gdn_layers(reader, layers, layers - layers // 4)
    _check_activation(reader)


def _read_qwen(reader: _Reader, fields: dict) -> None:
    _read_heads(reader, fields)
    _refuse_flag(reader, "linear_allow_neg_eigval", False)
    fields["norm_eps"] = reader.positive_number("rms_norm_eps")
    gate = reader.string("output_gate_type") if reader.has("output_gate_type") else "silu"
    if gate not in ("silu", "swish", "sigmoid"):
        reader.expected("output_gate_type", "silu, swish or sigmoid")
    fields["output_gate"] = "sigmoid" if gate == "sigmoid" else "silu"


def _read_olmo(reader: _Reader, fields: dict) -> None:
    _read_heads(reader, fields)
    _refuse_flag(reader, "linear_use_gate", True)
    fields["doubled_beta"] = reader.boolean("linear_allow_neg_eigval")
    fields["norm_eps"] = OLMO_NORM_EPS


def _read_kda_heads(reader: _Reader, fields: dict, keys: tuple[str, str, str]) -> None:
    """What layers with a decay of each channel share: as many key as value heads, of one size, and
    a sigmoid for the gate of the norm."""
    heads, dim, width = (reader.positive(key) for key in keys)
    fields |= {"key_heads": heads, "value_heads": heads, "key_dim": dim, "value_dim": dim}
    fields |= {"conv_width": width, "output_gate": "sigmoid", "per_channel_decay": True}


def _read_native_heads(reader: _Reader, fields: dict) -> None:
    """The same, under the names that transformers has."""
    names = ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")
    _read_kda_heads(reader, fields, names)
    if reader.has("hidden_act"):
        _check_activation(reader)


def _read_bound(reader: _Reader, key: str) -> float | None:
    """As the models' own code has it: decays of 16 tokens and their inverses stay in the range of
    f32."""
    if not reader.has(key):
        return None
    bound = reader.number(key)
    # Kernels take it as f32, in which it is not to become 0.
    if not LEAST_BOUND <= bound <= -LEAST_F32:
        reader.expected(key, "a number from -5 to below 0")
    return bound


def _read_kda_dictionary(reader: _Reader, fields: dict, is_safe: bool, bound: float | None) -> None:
    """The dictionary of Kimi's models, which GLM's may have too. `is_safe` is what `safe_gate` is
    where it is not there: whether decays have a bound, if only the usual one; `bound` is what the
    bound is without a `gate_lower_bound`."""
    linear = reader.inner("linear_attn_config")
    _read_kda_heads(linear, fields, ("num_heads", "head_dim", "short_conv_kernel_size"))
    fields["num_gdn_layers"] = _count_kda_layers(linear, fields)
    if linear.has("safe_gate"):
        is_safe = linear.boolean("safe_gate")
    if "gate_lower_bound" in linear.values:
        bound = _read_bound(linear, "gate_lower_bound")
    if linear.has("gate_lower_bound") and linear.has("safe_gate") and not is_safe:
        linear.expected("safe_gate", "true beside a gate_lower_bound")
    fields["decay_bound"] = LEAST_BOUND if is_safe and bound is None else bound
    fields["full_rank_gate"] = linear.values.get("use_full_rank_gate") is True
    if linear.has("allow_neg_eigval"):
        fields["doubled_beta"] = linear.boolean("allow_neg_eigval")
    reader.take(linear)


def _read_kimi(reader: _Reader, fields: dict) -> None:
    layers = fields["num_layers"]
    fields["num_gdn_layers"] = layers - (layers - 1) // 4
    if reader.has("linear_attn_config") or not reader.has("linear_num_heads"):
        _read_kda_dictionary(reader, fields, is_safe=False, bound=None)
    else:
        _read_native_heads(reader, fields)
        fields["num_gdn_layers"] = _count_gdn_layers(reader, layers, fields["num_gdn_layers"])
    for key in ("linear_lower_bound", "kda_lower_bound"):
        if reader.has(key):
            reader.expected(
                key, "nothing: models of this type have a gate_lower_bound in linear_attn_config"
            )
    fields["norm_eps"] = reader.positive_number("rms_norm_eps")


def _read_glm(reader: _Reader, fields: dict) -> None:
    layers = fields["num_layers"]
    fields["num_gdn_layers"] = layers - layers // 4
    bound: float | None = LEAST_BOUND
    if "linear_lower_bound" in reader.values:
        bound = _read_bound(reader, "linear_lower_bound")
    if reader.has("linear_attn_config"):
        _read_kda_dictionary(reader, fields, is_safe=True, bound=bound)
        if reader.has("linear_lower_bound") and bound != fields["decay_bound"]:
            reader.expected("linear_lower_bound", "what linear_attn_config says")
    else:
        _read_native_heads(reader, fields)
        fields["decay_bound"] = bound
    if reader.has("layer_types"):
        fields["num_gdn_layers"] = _count_gdn_layers(reader, layers, fields["num_gdn_layers"])
    fields["norm_eps"] = reader.positive_number("rms_norm_eps")


def _read_ling(reader: _Reader, fields: dict) -> None:
    # What transformers writes: its head_dim is that of the attention layers' rotary part, and its
    # layers have no projections through the size of a head.
    native = reader.has("linear_num_heads") or reader.has("linear_head_dim")
    if native:
        _read_native_heads(reader, fields)
    else:
        names = ("num_attention_heads", "head_dim", "short_conv_kernel_size")
        _read_kda_heads(reader, fields, names)
    # The last layer of each group is attention, and so are those behind the last whole group.
    group = reader.positive("layer_group_size")
    layers = fields["num_layers"]
    fields["num_gdn_layers"] = layers // group * (group - 1)
    if fields["num_gdn_layers"] == 0:
        reader.expected("layer_group_size", f"2 to {layers}, so that a layer is linear attention")
    if reader.has("layer_types"):
        fields["num_gdn_layers"] = _count_gdn_layers(reader, layers, fields["num_gdn_layers"])
    is_full = reader.values.get("no_kda_lora", native) is True
    fields |= {"full_rank_decay": is_full, "full_rank_gate": is_full}
    bound = _read_bound(reader, "kda_lower_bound")
    fields["decay_bound"] = LEAST_BOUND if bound is None else bound
    if reader.has("kda_safe_gate") and not reader.boolean("kda_safe_gate"):
        fields["decay_bound"] = None
    fields["norm_eps"] = reader.positive_number("rms_norm_eps")


def _count_kda_layers(linear: _Reader, fields: dict) -> int:
    """A list of numbers, from 0 or from 1 on; without one what `fields` say."""
    layers, num_layers = linear.array("kda_layers"), fields["num_layers"]
    if layers is None:
        return fields["num_gdn_layers"]
    numbers = [_integer(layer) for layer in layers]
    good = all(n is not None and 0 <= n <= num_layers for n in numbers)
    good = good and len(set(numbers)) == len(numbers)
    if not good or not layers or len(layers) > num_layers:
        linear.expected("kda_layers", f"numbers of some of {num_layers} layers")
    full = linear.array("full_attn_layers")
    if full is not None and len(full) + len(layers) != num_layers:
        linear.expected(
            "full_attn_layers",
            f"the {num_layers - len(layers)} of {num_layers} layers that are not among kda_layers",
        )
    return len(layers)


_FAMILIES: dict[str, Callable[[_Reader, dict], None]] = {
    "qwen": _read_qwen,
    "olmo": _read_olmo,
    "kimi": _read_kimi,
    "glm": _read_glm,
    "ling": _read_ling,
}


def _check_sizes(config: ModelConfig) -> None:
    def fail(message: str) -> None:
        raise ConfigError(f"{config.name}: expects {message}")

    for what, size in (("key", config.key_dim), ("value", config.value_dim)):
        if size < 8 or size > 256 or size % 8 != 0:
            fail(f"the {what} head dimension to be a multiple of 8 up to 256, but got {size}")
    if not 2 <= config.conv_width <= 8:
        fail(f"the convolution width to be from 2 to 8, but got {config.conv_width}")
    if config.value_heads < config.key_heads or config.value_heads % config.key_heads != 0:
        fail(
            "the value heads to be a multiple of the key heads, but got"
            f" {config.value_heads} value heads and {config.key_heads} key heads"
        )
