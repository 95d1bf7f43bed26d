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
    tp_v_head_num, head_dim, v_head_dim and scaling (0: head_dim ** -0.5).

    q is [tokens, tp_q_head_num * head_dim], k and v are [tokens, heads * dim] or None, and results
    [tokens, tp_q_head_num * v_head_dim] in the type of q. ValueError for a batch that names rows,
    columns or places that are not there, GdnError for arrays that do not go together. There is
    nothing to prepare for a batch or a graph, so functions for that do nothing."""

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
        # Rows behind the tokens are padding.
        out = np.zeros((q.shape[0], layer.tp_q_head_num * layer.v_head_dim), q.dtype)
        batch, keep = raw_batch(forward_batch, tokens=True)
        table = forward_batch.req_to_token_pool.req_to_token
        batch.req_to_token_stride = _row_stride(table)
        batch.req_to_token = table.ctypes.data
        count = forward_batch.batch_size
        for label, most in (("req_pool_indices", len(table) - 1), ("seq_lens", table.shape[1])):
            _check_most(label, keep[label], count, most)
        if save_kv_cache and k is not None and v is not None:
            lengths = keep["extend_seq_lens"]
            is_extend = name.endswith("extend") and lengths is not None
            tokens = int(lengths[:count].sum()) if is_extend else count
            _check_locations(keep["out_cache_loc"], tokens)
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


def _row_stride(table: np.ndarray) -> int:
    """Elements from one row of req_to_token to the next."""
    dense = table.ndim == 2 and (table.shape[1] < 2 or table.strides[1] == 4)
    stride = table.shape[-1] if len(table) < 2 else table.strides[0] // 4
    if table.dtype != np.int32 or not dense or stride < table.shape[1]:
        raise ValueError("req_to_token: expected rows of neighbouring int32")
    return stride


def _check_most(name: str, array: np.ndarray | None, count: int, most: int) -> None:
    """The library knows neither the rows of req_to_token nor columns less than a stride."""
    found = 0 if array is None or count == 0 else array[:count].max()
    if found > most:
        raise ValueError(f"{name}: expected 0 to {most}, those of req_to_token, got {found}")


def _check_locations(locations: np.ndarray | None, tokens: int) -> None:
    if locations is not None and locations.size < tokens:
        raise ValueError(
            f"out_cache_loc: expected at least {tokens} elements, got {locations.size}"
        )
