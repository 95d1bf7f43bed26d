# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer with a decay of each channel, from hidden states to output, made up from a seed, and what
steps of it give in float64: what gdn.kda_layer_check runs with PyTorch, and tests without it."""

from __future__ import annotations

import numpy as np

from .layer_problem import rounded
from .layers.attention import CommonAttentionMetadata
from .model_config import ModelConfig
from .reference import Layer, evaluate

#: Tokens of two requests in each step: they begin, go on with a token each, and with a piece of a
#: prompt; and where their states are.
LENGTHS = ((5, 9), (1, 1), (1, 3))
REQUESTS = (1, 3)
SLOTS = 4


def _in_io(model: ModelConfig, array: np.ndarray) -> np.ndarray:
    """Numbers that the type of the projections has, in f32."""
    array = array.astype(np.float32)
    return rounded(array) if model.io in (None, "bf16") else array


def checkpoint(model: ModelConfig) -> dict[str, np.ndarray]:
    """The whole layer's tensors by the checkpoint's names."""
    rng, heads, dim = np.random.default_rng(2), model.value_heads, model.key_dim
    rows, hidden = heads * dim, model.hidden_size

    def normal(*shape):
        return _in_io(model, rng.standard_normal(shape) / np.sqrt(shape[-1]))

    weights = {f"{n}_proj.weight": normal(rows, hidden) for n in "qkv"}
    weights["b_proj.weight"] = normal(heads, hidden)
    for letter, is_full in (("f", model.full_rank_decay), ("g", model.full_rank_gate)):
        if is_full:
            weights[f"{letter}_proj.weight"] = normal(rows, hidden)
        else:
            weights[f"{letter}_a_proj.weight"] = normal(dim, hidden)
            weights[f"{letter}_b_proj.weight"] = normal(rows, dim)
    weights |= {f"{n}_conv1d.weight": 2 * normal(rows, 1, model.conv_width) for n in "qkv"}
    weights["A_log"] = np.log(rng.uniform(0.5, 4, heads)).astype(np.float32)
    weights["dt_bias"] = rng.uniform(-6, 1, rows).astype(np.float32)
    weights["o_norm.weight"] = _in_io(model, rng.uniform(0.5, 1.5, dim))
    weights["o_proj.weight"] = normal(hidden, rows)
    return weights


def hidden_states(model: ModelConfig) -> list[np.ndarray]:
    """Of each step [tokens, hidden]."""
    rng = np.random.default_rng(4)
    sizes = [(sum(lengths), model.hidden_size) for lengths in LENGTHS]
    return [_in_io(model, rng.standard_normal(size)) for size in sizes]


def steps() -> list[CommonAttentionMetadata]:
    """What an engine says of each step."""
    done, found = np.zeros(len(REQUESTS), np.int32), []
    for lengths in LENGTHS:
        done = done + np.array(lengths, np.int32)
        found.append(
            CommonAttentionMetadata(
                query_start_loc=np.cumsum([0, *lengths], dtype=np.int32),
                seq_lens=done,
                num_reqs=len(lengths),
                num_actual_tokens=sum(lengths),
                block_table_tensor=np.array(REQUESTS, np.int32)[:, None],
            )
        )
    return found


def expected(model: ModelConfig) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of each step the output, and what goes into the last projection."""
    weights = {name: weight.astype(np.float64) for name, weight in checkpoint(model).items()}
    heads, dim = model.value_heads, model.key_dim
    layer = Layer(
        layout="separate",
        key_dim=dim,
        value_dim=dim,
        gate=model.output_gate,
        norm_eps=model.norm_eps,
        decay_bound=model.decay_bound,
    )
    pools = {
        "conv_pool": np.zeros((SLOTS, 3 * heads * dim, model.conv_width - 1)),
        "state_pool": np.zeros((SLOTS, heads, dim, dim)),
    }

    def made(x, letter: str):
        if f"{letter}_proj.weight" in weights:
            return x @ weights[f"{letter}_proj.weight"].T
        low = x @ weights[f"{letter}_a_proj.weight"].T
        return low @ weights[f"{letter}_b_proj.weight"].T

    outputs, inner = [], []
    for lengths, hidden in zip(LENGTHS, hidden_states(model), strict=True):
        x = hidden.astype(np.float64)
        names = {"q": "q", "k": "k", "v": "v", "a": "f", "z": "g"}
        arguments = {n: made(x, of).reshape(len(x), heads, dim) for n, of in names.items()}
        arguments |= {
            "b": made(x, "b"),
            "conv_weight": np.concatenate([weights[f"{n}_conv1d.weight"][:, 0] for n in "qkv"]),
            "norm_weight": weights["o_norm.weight"],
            "A_log": weights["A_log"],
            "dt_bias": weights["dt_bias"].reshape(heads, dim),
            "cu_seqlens": np.cumsum([0, *lengths]),
            "slots": np.array(REQUESTS),
        }
        result = evaluate(layer, arguments | pools)
        pools = {name: result[name] for name in pools}
        inner.append(result["out"].reshape(len(x), -1))
        outputs.append(inner[-1] @ weights["o_proj.weight"].T)
    return outputs, inner
