# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serving with the names that pymllm and vLLM have for it. The work is done by
the runtime library; see docs/design/20261121-serving.md."""

from .attention_backend import AttentionBackend
from .batch_planner import BatchPlanner, PlannedBatch
from .delta_layer import rms_norm_gated
from .forward_batch import ForwardBatch, ForwardMode
from .gated_delta_net import GatedDeltaNetAttention, order_of
from .gdn_backend import GDNAttnBackend, GDNForwardMetadata
from .gdn_layer import GDNLayer, Workspace, layer_kernels
from .gdn_metadata import (
    FLA_CHUNK_SIZE,
    NULL_BLOCK_ID,
    PAD_SLOT_ID,
    CommonAttentionMetadata,
    GDNAttentionMetadata,
    GDNAttentionMetadataBuilder,
)
from .hybrid_backend import HybridAttnBackend
from .kimi_delta_attention import KimiDeltaAttention
from .layer_shape import (
    LayerHeads,
    gated_delta_net_state_dtype,
    gated_delta_net_state_shape,
    shard_weights,
    weight_slices,
)
from .paged_backend import PagedAttnBackend
from .prefill_over_ranks import plan_over_ranks, prefill_over_ranks
from .radix_linear_attention import RadixLinearAttention

__all__ = [
    "FLA_CHUNK_SIZE",
    "NULL_BLOCK_ID",
    "PAD_SLOT_ID",
    "AttentionBackend",
    "BatchPlanner",
    "CommonAttentionMetadata",
    "ForwardBatch",
    "ForwardMode",
    "GDNAttentionMetadata",
    "GDNAttentionMetadataBuilder",
    "GDNAttnBackend",
    "GDNForwardMetadata",
    "GDNLayer",
    "GatedDeltaNetAttention",
    "HybridAttnBackend",
    "KimiDeltaAttention",
    "LayerHeads",
    "PagedAttnBackend",
    "PlannedBatch",
    "RadixLinearAttention",
    "Workspace",
    "gated_delta_net_state_dtype",
    "gated_delta_net_state_shape",
    "layer_kernels",
    "order_of",
    "plan_over_ranks",
    "prefill_over_ranks",
    "rms_norm_gated",
    "shard_weights",
    "weight_slices",
]
