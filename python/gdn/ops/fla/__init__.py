# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of flash-linear-attention (FLA)."""

from .kda import chunk_kda, fused_recurrent_kda
from .norm import rms_norm_gated
from .rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule

__all__ = [
    "chunk_gated_delta_rule",
    "chunk_kda",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_kda",
    "rms_norm_gated",
]
