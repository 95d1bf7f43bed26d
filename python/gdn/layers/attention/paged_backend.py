# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Full attention over a paged cache on the CPU: for tests, and models whose few full
layers are small beside the rest. NumPy arrays."""

import ctypes as c

import numpy as np

from ... import _attention_abi as abi
from ...runtime import Device, _argument, _Handle
from .attention_backend import AttentionBackend
from .gdn_backend import raw_batch


class PagedAttnBackend(AttentionBackend):
    """A batch has `req_to_token_pool.req_to_token` [requests, columns] i32 and
    `token_to_kv_pool` with get_key_buffer(layer_id) and get_value_buffer(layer_id)
    [locations, heads, dim]. A layer has layer_id, tp_q_head_num, tp_k_head_num,
    tp_v_head_num, head_dim, v_head_dim and scaling (0: head_dim ** -0.5)."""

    def __init__(self, device: Device):
        handle = device._runtime.create("gdnrt_attention_backend_create_paged", device._handle)
        self._raw = _Handle(device._runtime, handle, "gdnrt_attention_backend_destroy")
        self.device = device

    def init_forward_metadata(self, forward_batch) -> None:
        pass

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        return 1

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        pass

    def init_forward_metadata_capture_cuda_graph(self, *args, **kwargs) -> None:
        pass

    def init_forward_metadata_replay_cuda_graph(self, *args, **kwargs) -> None:
        pass

    def forward_decode(self, q, k, v, layer, forward_batch, save_kv_cache=True, **kwargs):
        name = "gdnrt_attention_forward_decode"
        return self._run(name, q, k, v, layer, forward_batch, save_kv_cache)

    def forward_extend(self, q, k, v, layer, forward_batch, save_kv_cache=True, **kwargs):
        name = "gdnrt_attention_forward_extend"
        return self._run(name, q, k, v, layer, forward_batch, save_kv_cache)

    def _run(self, name, q, k, v, layer, forward_batch, save_kv_cache):
        out = np.empty((q.shape[0], layer.tp_q_head_num * layer.v_head_dim), q.dtype)
        batch, keep = raw_batch(forward_batch, tokens=True)
        table = forward_batch.req_to_token_pool.req_to_token
        if table.dtype != np.int32 or table.strides[1] != 4:
            raise ValueError("req_to_token: expected rows of neighbouring int32")
        batch.req_to_token = table.ctypes.data
        batch.req_to_token_stride = table.strides[0] // 4
        cache = forward_batch.token_to_kv_pool
        arrays = {
            "k_buffer": cache.get_key_buffer(layer.layer_id),
            "v_buffer": cache.get_value_buffer(layer.layer_id),
            "q": q,
            "k": k,
            "v": v,
            "out": out,
        }
        raw = {}
        written = {"out", *(("k_buffer", "v_buffer") if save_kv_cache else ())}
        for label, array in arrays.items():
            if array is not None:
                raw[label], alive = _argument(label, array, self.device, label in written)
                keep[label] = alive
        heads = abi.RadixAttention(
            layer.layer_id,
            layer.tp_q_head_num,
            layer.tp_k_head_num,
            layer.tp_v_head_num,
            layer.head_dim,
            layer.v_head_dim,
            getattr(layer, "scaling", 0) or 0,
            raw.pop("k_buffer"),
            raw.pop("v_buffer"),
        )
        call = abi.AttentionCall(layer=c.pointer(heads), save_kv_cache=int(save_kv_cache), **raw)
        self._raw._runtime.call(name, self._raw._handle, c.byref(call), c.byref(batch))
        return out
