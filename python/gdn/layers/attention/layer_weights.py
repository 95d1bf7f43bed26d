# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors of layers with a decay of each head, as checkpoints of Qwen and OLMo-Hybrid name
them."""

from __future__ import annotations

from collections.abc import Iterable

from .layer_shape import LayerHeads
from .weight_sections import WeightSections, check_rank

# Sections of tensors by the names of checkpoints, of all layers and of those of one order.
_COMMON = {
    "conv1d": ("conv_q", "conv_k", "conv_v"),
    "q_conv1d": ("conv_q",),
    "k_conv1d": ("conv_k",),
    "v_conv1d": ("conv_v",),
    "A_log": ("A_log",),
    "dt_bias": ("dt_bias",),
    "norm": ("norm",),
    "o_norm": ("norm",),
    "out_proj": ("out",),
    "o_proj": ("out",),
}
_FLAT = {
    "in_proj_qkvz": ("q", "k", "v", "z"),
    "in_proj_qkv": ("q", "k", "v"),
    "in_proj_z": ("z",),
    "in_proj_ba": ("b", "a"),
    "in_proj_b": ("b",),
    "in_proj_a": ("a",),
    "q_proj": ("q",),
    "k_proj": ("k",),
    "v_proj": ("v",),
    "g_proj": ("z",),
    "b_proj": ("b",),
    "a_proj": ("a",),
}
_INTERLEAVED = {"in_proj_qkvz": ("qkvz",), "in_proj_ba": ("ba",)}


class LayerWeights(WeightSections):
    """What tensors a layer takes, and where they go on one rank.

    `names` are the layer's own arrays, of the names above without ".weight"; `order` is that of
    in_proj_qkvz and in_proj_ba, "interleaved" or "flat". `apart` says that messages shall name the
    tensors of OLMo-Hybrid's checkpoints."""

    def __init__(
        self,
        heads: LayerHeads,
        names: Iterable[str],
        *,
        hidden_size: int,
        conv_width: int,
        order: str,
        apart: bool = False,
        tp_size: int = 1,
        tp_rank: int = 0,
    ):
        check_rank(tp_size, tp_rank)
        for count in (heads.num_key_heads, heads.num_value_heads):
            if count % tp_size:
                raise ValueError(f"heads: expected multiples of {tp_size} ranks, got {count}")
        keys = heads.num_key_heads * heads.key_dim
        values = heads.num_value_heads * heads.value_dim
        gates = heads.num_value_heads
        sizes = {"q": keys, "k": keys, "v": values, "z": values, "b": gates, "a": gates}
        sizes |= {"conv_q": keys, "conv_k": keys, "conv_v": values, "out": values}
        sizes |= {"A_log": gates, "dt_bias": gates, "norm": heads.value_dim}
        sizes |= {"qkvz": 2 * (keys + values), "ba": 2 * gates}
        known = _COMMON | (_INTERLEAVED if order == "interleaved" else _FLAT)
        names = tuple(names)
        if unknown := [name for name in names if name not in known]:
            raise ValueError(
                f"names: expected {', '.join(known)} with the order {order},"
                f" got {', '.join(unknown)}"
            )
        super().__init__(
            names,
            known,
            sizes,
            hidden_size=hidden_size,
            conv_width=conv_width,
            tp_size=tp_size,
            tp_rank=tp_rank,
            apart=apart,
        )
