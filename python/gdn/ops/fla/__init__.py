# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of flash-linear-attention (FLA)."""

from .kda import chunk_kda, fused_kda_gate, fused_recurrent_kda
from .norm import (
    layer_norm_gated,
    layer_norm_swish_gate_linear,
    rms_norm_gated,
    rms_norm_swish_gate_linear,
)
from .rule import chunk_gated_delta_rule, fused_gdn_gate, fused_recurrent_gated_delta_rule

__all__ = [
    "chunk_gated_delta_rule",
    "chunk_kda",
    "fused_gdn_gate",
    "fused_kda_gate",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_kda",
    "layer_norm_gated",
    "layer_norm_swish_gate_linear",
    "rms_norm_gated",
    "rms_norm_swish_gate_linear",
]
