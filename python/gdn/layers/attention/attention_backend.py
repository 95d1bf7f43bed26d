# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base of attention backends, which engines in Python implement."""

from abc import ABC, abstractmethod

from .device_arrays import zeros_like_rows
from .forward_batch import ForwardBatch, ForwardMode


class AttentionBackend(ABC):
    """Arguments and names are pymllm's. The first three methods have to be there; the others
    raise NotImplementedError until a backend has them."""

    @abstractmethod
    def init_forward_metadata(self, forward_batch: ForwardBatch) -> None:
        """Once per batch, before its layers. ValueError or GdnError for a batch that contradicts
        itself."""

    @abstractmethod
    def forward_decode(
        self, q, k, v, layer, forward_batch: ForwardBatch, save_kv_cache: bool = True, **kwargs
    ):
        """Full attention of one token of each request. q [bs, tp_q_head_num * head_dim], k and v
        [bs, heads * dim] or None to [bs, tp_q_head_num * v_head_dim] in the type of q; with
        `save_kv_cache` k and v go to the places out_cache_loc of the cache first. `layer` has the
        head counts and sizes."""

    @abstractmethod
    def forward_extend(
        self, q, k, v, layer, forward_batch: ForwardBatch, save_kv_cache: bool = True, **kwargs
    ):
        """The same of the tokens of extend_seq_lens, the requests' one behind the other: rows are
        tokens."""

    def forward(
        self, q, k, v, layer, forward_batch: ForwardBatch, save_kv_cache: bool = True, **kwargs
    ):
        """Decode or extend by the mode of the batch. IDLE: zeros [q's rows, tp_q_head_num *
        v_head_dim]; the backend is not asked."""
        mode = forward_batch.forward_mode
        if mode.is_idle():
            return zeros_like_rows(q, (q.shape[0], layer.tp_q_head_num * layer.v_head_dim))
        run = self.forward_decode if mode.is_decode() else self.forward_extend
        return run(q, k, v, layer, forward_batch, save_kv_cache=save_kv_cache, **kwargs)

    def forward_gdn(self, layer, forward_batch: ForwardBatch, mixed_qkv, a, b):
        """Linear attention on pooled states: mixed_qkv [tokens, D], a and b [tokens, Hv] to
        [tokens, Hv * dv]."""
        raise NotImplementedError

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        """What pads seq_lens of graphs."""
        raise NotImplementedError

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        """Arrays that graphs of up to `max_bs` requests read, and of extend up to `max_num_tokens`
        tokens. Before the first graph is captured."""
        raise NotImplementedError

    def init_forward_metadata_capture_cuda_graph(
        self, bs: int, num_tokens: int, req_pool_indices, seq_lens, forward_mode: ForwardMode
    ) -> None:
        """Before a graph of `bs` requests is captured, with req_pool_indices and seq_lens [bs],
        integers."""
        raise NotImplementedError

    def init_forward_metadata_replay_cuda_graph(
        self,
        bs: int,
        req_pool_indices,
        seq_lens,
        seq_lens_sum: int,
        forward_mode: ForwardMode,
        seq_lens_cpu,
    ) -> None:
        """Before each replay of a graph, with req_pool_indices, seq_lens and seq_lens_cpu [bs],
        integers, of the batch that it is for."""
        raise NotImplementedError
