# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's metadata of gated delta networks, with the launches of gdn's layers beside it.

Every field is made by vLLM's own builder. Its padding names slot 0, which gdn's kernels skip.
"""

from __future__ import annotations

import torch
from vllm.v1.attention.backends.gdn_attn import (
    GDNAttentionBackend,
    GDNAttentionMetadata,
    GDNAttentionMetadataBuilder,
)

from .steps import runs_of


class GdnMetadataBuilder(GDNAttentionMetadataBuilder):
    """The metadata has `gdn_runs` besides: what steps.runs_of says, once for all layers."""

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        # As the original has it, which turns it off for other types than its own: a subclass might
        # keep more of a group's in the metadata. The runs here are made anew in both methods.
        self.supports_update_block_table = vllm_config.use_v2_model_runner and device.type == "cuda"
        if self.supports_update_block_table:
            self.mamba_aligned_state_indices = None

    def build(self, *arguments, **options) -> GDNAttentionMetadata:
        return _with_runs(super().build(*arguments, **options))

    def update_block_table(self, *arguments, **options) -> GDNAttentionMetadata:
        return _with_runs(super().update_block_table(*arguments, **options))


class GdnAttentionBackend(GDNAttentionBackend):
    """vLLM's backend with that builder."""

    @staticmethod
    def get_builder_cls() -> type[GdnMetadataBuilder]:
        return GdnMetadataBuilder


def _with_runs(metadata: GDNAttentionMetadata) -> GDNAttentionMetadata:
    metadata.gdn_runs = runs_of(metadata, torch.Tensor.contiguous)
    return metadata
