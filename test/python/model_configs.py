# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configurations as models' config.json files have them: of each preset, and with mistakes."""


def qwen(model_type: str, hidden: int, layers: int, heads: tuple[int, int], **extra) -> dict:
    return {
        "model_type": model_type,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "full_attention_interval": 4,
        "linear_num_key_heads": heads[0],
        "linear_num_value_heads": heads[1],
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "torch_dtype": "bfloat16",
    } | extra


def qwen35(hidden: int, layers: int, heads: tuple[int, int], moe: str = "") -> dict:
    """The text model stands inside."""
    kinds = ["linear_attention"] * 3 + ["full_attention"]
    text = qwen(f"qwen3_5{moe}_text", hidden, layers, heads, mamba_ssm_dtype="float32")
    text |= {"layer_types": kinds * (layers // 4)}
    return {"model_type": f"qwen3_5{moe}", "text_config": text, "vision_config": {"depth": 27}}


OLMO = qwen(
    "olmo_hybrid",
    3840,
    32,
    (30, 30),
    linear_key_head_dim=96,
    linear_value_head_dim=192,
    linear_allow_neg_eigval=True,
)
KIMI = {
    "model_type": "kimi_linear",
    "hidden_size": 2304,
    "num_hidden_layers": 27,
    "rms_norm_eps": 1e-5,
    "dtype": "bfloat16",
    "linear_attn_config": {
        "num_heads": 32,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
        "kda_layers": [n for n in range(1, 28) if n % 4 and n != 27],
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
    },
}
K3 = KIMI | {
    "hidden_size": 7168,
    "num_hidden_layers": 93,
    "linear_attn_config": {
        "num_heads": 96,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
        "gate_lower_bound": -5.0,
        "use_full_rank_gate": True,
        "kda_layers": [n for n in range(1, 93) if n % 4],
        "full_attn_layers": [n for n in range(1, 94) if n % 4 == 0 or n == 93],
    },
}
GLM = {
    "model_type": "glm5_next_text",
    "hidden_size": 4096,
    "num_hidden_layers": 45,
    "rms_norm_eps": 1e-5,
    "dtype": "bfloat16",
    "linear_num_heads": 64,
    "linear_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "linear_lower_bound": -5.0,
    "layer_types": [
        "deepseek_sparse_attention" if n % 4 == 3 else "linear_attention" for n in range(45)
    ],
}


def ling(hidden: int, layers: int, heads: int, group: int) -> dict:
    return {
        "model_type": "bailing_hybrid",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "head_dim": 128,
        "layer_group_size": group,
        "short_conv_kernel_size": 4,
        "no_kda_lora": True,
        "kda_safe_gate": True,
        "kda_lower_bound": -5.0,
        "rms_norm_eps": 1e-6,
        "torch_dtype": "bfloat16",
    }


LING = ling(2560, 42, 32, 6)
PRESETS = {
    "qwen3-next-80b-a3b": qwen("qwen3_next", 2048, 48, (16, 32)),
    "qwen3.5-0.8b": qwen35(1024, 24, (16, 16)),
    "qwen3.5-2b": qwen35(2048, 24, (16, 16)),
    "qwen3.5-4b": qwen35(2560, 32, (16, 32)),
    "qwen3.5-9b": qwen35(4096, 32, (16, 32)),
    "qwen3.5-27b": qwen35(5120, 64, (16, 48)),
    "qwen3.5-35b-a3b": qwen35(2048, 40, (16, 32), "_moe"),
    "qwen3.5-122b-a10b": qwen35(3072, 48, (16, 64), "_moe"),
    "qwen3.5-397b-a17b": qwen35(4096, 60, (16, 64), "_moe"),
    "qwen3.6-27b": qwen35(5120, 64, (16, 48)),
    "qwen3.6-35b-a3b": qwen35(2048, 40, (16, 32), "_moe"),
    "qwen3.8-flash-next": qwen("qwen4_exp", 2560, 48, (16, 48), output_gate_type="sigmoid"),
    "olmo-hybrid-7b": OLMO,
    "kimi-linear-48b-a3b": KIMI,
    "kimi-k3": {"model_type": "kimi_k3", "text_config": K3, "vision_config": {}},
    "glm-5.3-flash": {"model_type": "glm5_next", "text_config": GLM, "vision_config": {}},
    "ling-3.0-flash": LING,
    "ling-3.0-tiny": ling(1536, 24, 16, 4),
}

SMALL = qwen("qwen3_next", 64, 4, (1, 2)) | {"torch_dtype": None}


def without(config: dict, key: str) -> dict:
    return {name: value for name, value in config.items() if name != key}


def kimi(**linear) -> dict:
    inside = {"num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}
    return KIMI | {"num_hidden_layers": 4, "linear_attn_config": inside | linear}


# The names of transformers, and what they are made of.
NATIVE = {"linear_num_heads": 32, "linear_head_dim": 64, "linear_conv_kernel_dim": 3}
DICTIONARY = {"num_heads": 8, "head_dim": 64, "short_conv_kernel_size": 4}

# Accepted, each in an unusual way.
UNUSUAL = [
    SMALL,
    SMALL | {"dtype": "float16", "mamba_ssm_dtype": "bfloat16"},
    SMALL | {"dtype": "auto", "torch_dtype": "float32"},
    SMALL | {"linear_key_head_dim": 64.0, "linear_value_head_dim": 256, "rms_norm_eps": 1},
    SMALL | {"linear_conv_kernel_dim": 2, "rope": [float("nan"), float("inf")]},
    SMALL | {"linear_allow_neg_eigval": False, "output_gate_type": "swish", "rms_norm_eps": 1e-4},
    {"model_type": "qwen3_5", "dtype": "float16", "text_config": without(SMALL, "model_type")},
    {"model_type": "qwen3_5", "dtype": "float16", "text_config": SMALL | {"dtype": "bfloat16"}},
    OLMO | {"linear_allow_neg_eigval": False, "linear_use_gate": True, "rms_norm_eps": 7.0},
    kimi(gate_lower_bound=None, safe_gate=False),
    kimi(gate_lower_bound=-0.5),
    kimi(gate_lower_bound=-5, safe_gate=True),
    kimi(safe_gate=True),
    without(KIMI, "linear_attn_config") | NATIVE,
    without(KIMI, "linear_attn_config") | NATIVE | {"layer_types": ["linear_attention"] * 27},
    KIMI | NATIVE | {"linear_num_heads": 4},
    without(GLM, "layer_types"),
    without(GLM, "linear_lower_bound"),
    GLM | {"linear_lower_bound": None},
    GLM | {"linear_lower_bound": -2.5, "model_type": "glm5_next"},
    GLM | {"linear_attn_config": DICTIONARY},
    without(GLM, "linear_lower_bound") | {"linear_attn_config": DICTIONARY | {"safe_gate": False}},
    GLM | {"linear_attn_config": DICTIONARY | {"gate_lower_bound": None, "kda_layers": [0, 1]}},
    LING | {"model_type": "bailing_moe_v3", "num_hidden_layers": 44},
    {"model_type": "bailing_moe_v3_vl", "text_config": without(LING, "model_type")},
    without(without(LING, "kda_lower_bound"), "kda_safe_gate"),
    LING | {"kda_safe_gate": False},
    LING | {"kda_lower_bound": -1},
    LING | NATIVE | {"hidden_act": "silu", "layer_types": ["linear_attention"] * 42},
    GLM | {"linear_attn_config": DICTIONARY, "linear_lower_bound": -2.5},
    GLM | {"linear_attn_config": DICTIONARY | {"safe_gate": False}},
    KIMI | {"hidden_act": "situ"},
    kimi(kda_layers=[0, 1, 2], full_attn_layers=[3]),
    kimi(allow_neg_eigval=True),
]
MISTAKES = [
    {},
    {"model_type": 3},
    {"model_type": "llama"},
    {"model_type": "x" * 100},
    {"model_type": "qwen3_5", "text_config": 4},
    {"text_config": {"model_type": True}},
    *(SMALL | {"hidden_size": value} for value in (None, 0, -4, 2.5, "8", True, [1] * 99, 2**70)),
    *(without(SMALL, key) for key in ("num_hidden_layers", "hidden_act", "rms_norm_eps")),
    *(SMALL | {"rms_norm_eps": value} for value in (0, -1e-6, False, "1e-6", float("nan"))),
    SMALL | {"hidden_act": "gelu"},
    SMALL | {"full_attention_interval": 1},
    SMALL | {"full_attention_interval": 0},
    SMALL | {"layer_types": "all"},
    SMALL | {"layer_types": ["linear_attention"] * 3},
    SMALL | {"layer_types": ["full_attention"] * 4},
    SMALL | {"linear_allow_neg_eigval": True},
    SMALL | {"linear_allow_neg_eigval": 1},
    SMALL | {"output_gate_type": "tanh"},
    SMALL | {"output_gate_type": {"b": 1e-6, "a": [None, True, "ä\n"]}},
    SMALL | {"dtype": "int8"},
    SMALL | {"mamba_ssm_dtype": "float64"},
    SMALL | {"linear_key_head_dim": 264},
    SMALL | {"linear_value_head_dim": 12},
    SMALL | {"linear_conv_kernel_dim": 9},
    SMALL | {"linear_num_value_heads": 3, "linear_num_key_heads": 2},
    without(OLMO, "linear_allow_neg_eigval"),
    OLMO | {"linear_use_gate": False},
    KIMI | {"linear_attn_config": None},
    KIMI | {"kda_lower_bound": -5},
    KIMI | {"linear_lower_bound": -5},
    *(kimi(gate_lower_bound=value) for value in (0, 1, -5.1, "-5", True)),
    kimi(gate_lower_bound=-5, safe_gate=False),
    kimi(safe_gate="yes"),
    without(GLM, "linear_head_dim"),
    GLM | {"linear_lower_bound": -6},
    GLM | {"linear_attn_config": DICTIONARY | {"gate_lower_bound": -4}},
    GLM | {"layer_types": ["full_attention"] * 45},
    *(LING | {"layer_group_size": value} for value in (0, 1, 43)),
    without(LING, "short_conv_kernel_size"),
    LING | {"kda_lower_bound": -8.0},
    LING | {"kda_safe_gate": 1},
    LING | {"linear_head_dim": 64},
    LING | {"layer_types": ["linear_attention"] * 41},
    GLM | {"hidden_act": "gelu"},
    without(KIMI, "linear_attn_config") | NATIVE | {"hidden_act": "relu"},
    GLM | {"linear_attn_config": DICTIONARY | {"gate_lower_bound": None}, "linear_lower_bound": -2},
    kimi(allow_neg_eigval=1),
    *(kimi(kda_layers=value) for value in ([], [1, 1], [9], ["a"], {})),
    kimi(kda_layers=[1, 2], full_attn_layers=[4]),
]
