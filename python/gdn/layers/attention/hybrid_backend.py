# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Full attention by one backend, linear attention by another."""

import logging

from .attention_backend import AttentionBackend
from .forward_batch import ForwardBatch, ForwardMode

logger = logging.getLogger(__name__)


class HybridAttnBackend(AttentionBackend):
    """Hands every call on: what is about a batch or a graph to both backends, forward_decode and
    forward_extend to `full_attn_backend`, which is any object with AttentionBackend's methods, and
    forward_gdn to `gdn_backend`. Shapes and errors are theirs; `full_attn_layer_ids` are for
    people."""

    def __init__(self, full_attn_backend, gdn_backend, full_attn_layer_ids: set[int]):
        self.full_attn_backend = full_attn_backend
        self.gdn_backend = gdn_backend
        self.full_attn_layer_ids = full_attn_layer_ids
        logger.info("hybrid attention: %d layers of full attention", len(full_attn_layer_ids))

    def init_forward_metadata(self, forward_batch: ForwardBatch) -> None:
        self.full_attn_backend.init_forward_metadata(forward_batch)
        self.gdn_backend.init_forward_metadata(forward_batch)

    def forward_decode(
        self, q, k, v, layer, forward_batch: ForwardBatch, save_kv_cache: bool = True, **kwargs
    ):
        return self.full_attn_backend.forward_decode(
            q, k, v, layer, forward_batch, save_kv_cache=save_kv_cache, **kwargs
        )

    def forward_extend(
        self, q, k, v, layer, forward_batch: ForwardBatch, save_kv_cache: bool = True, **kwargs
    ):
        return self.full_attn_backend.forward_extend(
            q, k, v, layer, forward_batch, save_kv_cache=save_kv_cache, **kwargs
        )

    def forward_gdn(self, layer, forward_batch: ForwardBatch, mixed_qkv, a, b):
        return self.gdn_backend.forward_gdn(
            layer=layer, forward_batch=forward_batch, mixed_qkv=mixed_qkv, a=a, b=b
        )

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        return self.full_attn_backend.get_cuda_graph_seq_len_fill_value()

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        self.full_attn_backend.init_cuda_graph_state(max_bs, max_num_tokens)
        self.gdn_backend.init_cuda_graph_state(max_bs, max_num_tokens)

    def init_forward_metadata_capture_cuda_graph(
        self, bs: int, num_tokens: int, req_pool_indices, seq_lens, forward_mode: ForwardMode
    ) -> None:
        self.full_attn_backend.init_forward_metadata_capture_cuda_graph(
            bs=bs,
            num_tokens=num_tokens,
            req_pool_indices=req_pool_indices,
            seq_lens=seq_lens,
            forward_mode=forward_mode,
        )
        extend = {}
        if forward_mode.is_extend():
            extend = {"forward_mode": forward_mode, "num_tokens": num_tokens}
        self.gdn_backend.init_forward_metadata_capture_cuda_graph(
            bs=bs, req_pool_indices=req_pool_indices, seq_lens=seq_lens, **extend
        )

    def init_forward_metadata_replay_cuda_graph(
        self,
        bs: int,
        req_pool_indices,
        seq_lens,
        seq_lens_sum: int,
        forward_mode: ForwardMode,
        seq_lens_cpu,
        *,
        num_reqs: int | None = None,
        num_tokens: int | None = None,
        extend_seq_lens=None,
    ) -> None:
        """For linear attention: how many of the rows are requests, and of a graph of extend its
        tokens and those of each request."""
        self.full_attn_backend.init_forward_metadata_replay_cuda_graph(
            bs=bs,
            req_pool_indices=req_pool_indices,
            seq_lens=seq_lens,
            seq_lens_sum=seq_lens_sum,
            forward_mode=forward_mode,
            seq_lens_cpu=seq_lens_cpu,
        )
        extend = {}
        if forward_mode.is_extend():
            extend = {
                "forward_mode": forward_mode,
                "num_tokens": num_tokens,
                "extend_seq_lens": extend_seq_lens,
            }
        self.gdn_backend.init_forward_metadata_replay_cuda_graph(
            bs=bs, req_pool_indices=req_pool_indices, seq_lens=seq_lens, num_reqs=num_reqs, **extend
        )
