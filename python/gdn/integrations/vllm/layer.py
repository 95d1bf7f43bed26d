# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's layer of Qwen3-Next and Qwen3.5 with gdn's kernels between its projections: convolution,
gates, rule and norm in one launch for each kind of sequence, on the engine's own states, in place.
A layer that gdn has no kernel for runs vLLM's own; the reason is logged once.
"""

from __future__ import annotations

import torch
from vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn import QwenGatedDeltaNetAttention

from ..pool_options import PoolOptions
from .layer_kind import LayerKind
from .layer_steps import LayerSteps, name_of, platform_name
from .page_size import find_model, has_own_sizes, state_page_size


class GdnQwenGatedDeltaNetAttention(LayerSteps, QwenGatedDeltaNetAttention):
    """In place of the original, which it is in all but the core of a step, and in what a slot has
    where users ask for states in planes or for deferred writes."""

    #: The type of states that users ask for.
    gdn_state: torch.dtype | None = None

    def __init__(self, config, vllm_config, prefix: str = "", **options):
        super().__init__(config, vllm_config, prefix, **options)
        # Values that no pool has end the start.
        kind = kind_of(self, vllm_config)
        if not self._take_gdn_kernels(kind, vllm_config):
            return
        self._declare_slots(kind, vllm_config)
        self.gdn_norm_constants = (kind.norm_eps, float(kind.gate == "silu"))
        # The kernels' type: a weight of another is converted when it is loaded.
        self.dt_bias.data = self.dt_bias.data.float()
        # The operator that is handed the projections as they are, and gives the norm's result.
        self.enable_fused_gdn_spec_decode = kind.has_norm
        # The scheduler ends prompts at blocks: prefill keeps no states inside of a sequence.
        self._checkpoint_alignment = None

    def get_state_shape(self) -> tuple[tuple[int, ...], ...]:
        """Of a slot: its window and its state; or its window and all else (block_arrays.py)."""
        window, *state = super().get_state_shape()
        return (window, *state) if self.gdn_slots is None else (window, (self.gdn_slots.words,))

    def get_state_dtype(self) -> tuple[torch.dtype, ...]:
        window, state = super().get_state_dtype()
        if self.gdn_slots is not None:
            return window, torch.float32
        return window, self.gdn_state or state

    def _declare_slots(self, kind: LayerKind, vllm_config) -> None:
        """What vLLM makes room for in a block. It copies the first two arrays of a block, and no
        more; so there are two."""
        if kind.has_slot_arrays:
            ranks = self.tp_size
            self.gdn_slots = kind.slot_arrays(self.num_k_heads // ranks, self.num_v_heads // ranks)
        else:
            self.gdn_state = getattr(torch, kind.state)
        if self.get_state_dtype() != super().get_state_dtype() or kind.has_slot_arrays:
            state_page_size(find_model(vllm_config))

    def _forward_core_fused_norm_packed(self, mixed_qkvz, ba, core_attn_out) -> None:
        if self.gdn_kernels is None:
            super()._forward_core_fused_norm_packed(mixed_qkvz, ba, core_attn_out)
        else:
            self._run_gdn({"qkvz": mixed_qkvz, "ba": ba}, core_attn_out)

    def _forward_core(self, mixed_qkv, b, a, core_attn_out) -> None:
        if self.gdn_kernels is None:
            super()._forward_core(mixed_qkv, b, a, core_attn_out)
        else:
            self._run_gdn({"qkv": mixed_qkv, "b": b, "a": a}, core_attn_out)

    def _gdn_weights(self) -> dict[str, torch.Tensor]:
        return {"norm_weight": self.norm.weight.detach()}


def kind_of(layer: QwenGatedDeltaNetAttention, vllm_config) -> LayerKind:
    """What a layer that vLLM has made asks of kernels."""
    conv_state, state = map(name_of, layer.get_state_dtype())
    asked = PoolOptions.read(vllm_config.additional_config, "additional_config")
    io = name_of(vllm_config.model_config.dtype)
    norm_weight = name_of(layer.norm.weight.dtype)
    # forward_cuda hands over whole projections in bf16 alone, and those of all ranks where the
    # projection of b and a is not split.
    packed = io == norm_weight == "bfloat16"
    packed = packed and not (layer.disable_tp_for_ba_proj and layer.tp_size > 1)
    cache = vllm_config.cache_config
    return LayerKind(
        platform=platform_name(),
        key_dim=layer.head_k_dim,
        value_dim=layer.head_v_dim,
        conv_width=layer.conv_kernel_size,
        activation=layer.activation,
        gate="sigmoid" if layer.norm.activation == "sigmoid" else "silu",
        norm_eps=layer.layer_norm_epsilon,
        layout=layer.qkvz_layout if packed else "split",
        io=io,
        conv_state=conv_state,
        state=asked.state or state,
        norm_weight=norm_weight,
        num_speculative_tokens=layer.num_spec,
        cache_mode=cache.mamba_cache_mode,
        replays=cache.use_replayssm,
        rounds_at_random=vllm_config.mamba_config.enable_stochastic_rounding,
        deferred_writes=asked.deferred_writes,
        transfers=vllm_config.kv_transfer_config is not None,
        has_own_sizes=asked != PoolOptions() and has_own_sizes(find_model(vllm_config)),
    )
