# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stacks of transformers with the sizes of models and random weights, and the ways in which their
linear attention can run."""

import contextlib
import sys
from collections.abc import Iterator

import torch
from transformers import AutoModelForCausalLM, Qwen3NextConfig
from transformers.models.qwen3_5 import Qwen3_5TextConfig

from ..integrations import transformers as integration
from ..integrations import transformers_functions as functions

_LINEAR = {
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}
MODELS = ("Qwen3.5-4B", "Qwen3-Next")
VOCABULARY = 1024
RULE = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")


def make_model(name: str, blocks: int) -> torch.nn.Module:
    """A stack of `blocks` of four layers, three of which are linear attention, in bf16."""
    common = _LINEAR | {
        "vocab_size": VOCABULARY,
        "num_hidden_layers": 4 * blocks,
        "num_attention_heads": 16,
        "head_dim": 256,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * blocks,
    }
    if name == "Qwen3.5-4B":
        sizes = {"hidden_size": 2560, "intermediate_size": 9216, "num_key_value_heads": 4}
        config = Qwen3_5TextConfig(**common, **sizes)
    elif name == "Qwen3-Next":
        config = Qwen3NextConfig(
            **common,
            hidden_size=2048,
            num_key_value_heads=2,
            num_experts=512,
            num_experts_per_tok=10,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
        )
    else:
        raise ValueError(f"model: expected one of {', '.join(MODELS)}, got {name}")
    torch.manual_seed(0)
    with torch.device("cuda"):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def linear_layers(model: torch.nn.Module) -> list[torch.nn.Module]:
    return [m for m in model.modules() if type(m).__name__.endswith("GatedDeltaNet")]


@contextlib.contextmanager
def as_impl(model: torch.nn.Module, impl: str) -> Iterator[None]:
    """Within, the linear attention is "stock", "gdn functions", "gdn layers", or the stock layers
    with "torch functions" of the rule."""
    module = sys.modules[type(linear_layers(model)[0]).__module__]
    before = {name: getattr(module, name) for name in RULE}
    try:
        if impl == "gdn layers":
            integration.patch(model)
        elif impl == "gdn functions":
            functions.replace(module, doubled=False)
        elif impl == "torch functions":
            for name, function in before.items():
                setattr(module, name, getattr(function, "__wrapped__", function))
        yield
    finally:
        if impl == "gdn layers":
            integration.unpatch(model)
        for name, function in before.items():
            setattr(module, name, function)
