# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's layer of Kimi-Linear and AliceAI, Kimi Delta Attention, with gdn's kernels between its
projections: convolution, gates with a decay of each channel, rule and norm in one launch for each
kind of sequence, on the engine's own states, in place. A layer that gdn has no kernel for runs
vLLM's own; the reason is logged once.
"""

from __future__ import annotations

import torch
from vllm.compilation.breakable_cudagraph import eager_break_during_capture
from vllm.model_executor.layers.mamba.gdn.kimi_gdn_linear_attn import KimiGatedDeltaNetAttention

from ..pool_options import PoolOptions
from .kda_tokens import kda_tokens
from .layer_kind import LayerKind
from .layer_steps import LayerSteps, name_of, platform_name


class GdnKimiGatedDeltaNetAttention(LayerSteps, KimiGatedDeltaNetAttention):
    """In place of the original, which it is in all but the core of a step."""

    def __init__(self, config, vllm_config, prefix: str = "", **options):
        super().__init__(config, vllm_config, prefix, **options)
        self.vllm_config = vllm_config
        self._take_gdn_kernels(kda_kind_of(self, vllm_config), vllm_config)

    @property
    def gdn_norm_constants(self) -> tuple[float, float]:
        """As they are when the first step comes: models set eps behind the layer's start."""
        return self.o_norm.eps, float(self.o_norm.activation != "sigmoid")

    def _gdn_weights(self) -> dict[str, torch.Tensor]:
        bias = self.dt_bias.detach().view(-1, self.head_dim)
        return {"dt_bias": bias, "norm_weight": self.o_norm.weight.detach()}

    def _forward(self, mixed_qkv, g1, g2, beta, core_attn_out) -> None:
        # Kernels of gdn are no part of a graph of torch.compile; vLLM's may be.
        if self.gdn_kernels is None or torch.compiler.is_compiling():
            super()._forward(mixed_qkv, g1, g2, beta, core_attn_out)
        else:
            self._run_gdn_step(mixed_qkv, g1, g2, beta, core_attn_out)

    @eager_break_during_capture
    def _run_gdn_step(self, mixed_qkv, g1, g2, beta, core_attn_out) -> None:
        tokens = kda_tokens(mixed_qkv, g1[0], g2, beta[0], self.head_dim)
        self._run_gdn(tokens, core_attn_out[0])


def kda_kind_of(layer: KimiGatedDeltaNetAttention, vllm_config) -> LayerKind:
    """What a layer that vLLM has made asks of kernels."""
    conv_state, state = map(name_of, layer.get_state_dtype())
    asked = PoolOptions.read(vllm_config.additional_config, "additional_config")
    cache = vllm_config.cache_config
    return LayerKind(
        platform=platform_name(),
        key_dim=layer.head_dim,
        value_dim=layer.head_dim,
        conv_width=layer.conv_size,
        activation="silu",
        gate="sigmoid" if layer.o_norm.activation == "sigmoid" else "silu",
        norm_eps=layer.o_norm.eps,
        layout="separate",
        io=name_of(vllm_config.model_config.dtype),
        conv_state=conv_state,
        state=state,
        norm_weight=name_of(layer.o_norm.weight.dtype),
        num_speculative_tokens=layer.num_spec,
        cache_mode=cache.mamba_cache_mode,
        replays=cache.use_replayssm,
        rounds_at_random=vllm_config.mamba_config.enable_stochastic_rounding,
        per_channel=True,
        decay_bound=layer.gate_lower_bound,
        conv_weight=name_of(layer.conv1d.weight.dtype),
        pool_options=asked,
    )
