# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI of include/gdn-c/attention.h for ctypes."""

import ctypes as c

from . import _abi
from ._abi import Arg, Error, NamedArg, Sized


class ForwardBatch(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("forward_mode", c.c_int32),
        ("batch_size", c.c_int64),
        ("req_pool_indices", c.c_void_p),
        ("seq_lens", c.c_void_p),
        ("seq_lens_sum", c.c_int64),
        ("extend_num_tokens", c.c_int64),
        ("extend_seq_lens", c.c_void_p),
        ("extend_prefix_lens", c.c_void_p),
        ("extend_start_loc", c.c_void_p),
        ("input_ids", c.c_void_p),
        ("positions", c.c_void_p),
        ("out_cache_loc", c.c_void_p),
        ("req_to_token", c.c_void_p),
        ("req_to_token_stride", c.c_int64),
        ("stream", c.c_void_p),
    ]


class GraphBatch(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("bs", c.c_int64),
        ("num_tokens", c.c_int64),
        ("req_pool_indices", c.c_void_p),
        ("seq_lens", c.c_void_p),
        ("seq_lens_sum", c.c_int64),
        ("forward_mode", c.c_int32),
        ("stream", c.c_void_p),
        ("num_reqs", c.c_int64),
        ("extend_seq_lens", c.c_void_p),
    ]


class RadixAttention(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("layer_id", c.c_int64),
        ("tp_q_head_num", c.c_int64),
        ("tp_k_head_num", c.c_int64),
        ("tp_v_head_num", c.c_int64),
        ("head_dim", c.c_int64),
        ("v_head_dim", c.c_int64),
        ("scaling", c.c_double),
        ("k_buffer", Arg),
        ("v_buffer", Arg),
    ]


class AttentionCall(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("layer", c.POINTER(RadixAttention)),
        ("q", Arg),
        ("k", Arg),
        ("v", Arg),
        ("out", Arg),
        ("save_kv_cache", c.c_int32),
        ("reserved", c.c_int32),
    ]


class GDNForwardMetadata(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("cache_indices", c.c_void_p),
        ("batch_size", c.c_int64),
        ("cu_seqlens", c.c_void_p),
    ]


_P = c.c_void_p
_OUT = c.POINTER(c.c_void_p)
_ERR = c.POINTER(Error)
_ATTEND = (c.c_int, [_P, c.POINTER(AttentionCall), c.POINTER(ForwardBatch), _ERR])
_GRAPH = (c.c_int, [_P, c.POINTER(GraphBatch), _ERR])

# name: (result, arguments); every name is one of the header.
FUNCTIONS = {
    "gdnrt_attention_backend_create_gdn": (c.c_int, [_P, _OUT, _ERR]),
    "gdnrt_attention_backend_create_paged": (c.c_int, [_P, _OUT, _ERR]),
    "gdnrt_attention_backend_destroy": (None, [_P]),
    "gdnrt_attention_init_forward_metadata": (c.c_int, [_P, c.POINTER(ForwardBatch), _ERR]),
    "gdnrt_attention_forward": _ATTEND,
    "gdnrt_attention_forward_decode": _ATTEND,
    "gdnrt_attention_forward_extend": _ATTEND,
    "gdnrt_attention_forward_gdn": (
        c.c_int,
        [_P, _P, c.POINTER(ForwardBatch), c.POINTER(NamedArg), c.c_size_t, _ERR],
    ),
    "gdnrt_attention_forward_metadata": (
        c.c_int,
        [_P, c.POINTER(GDNForwardMetadata), c.POINTER(c.c_int32), _ERR],
    ),
    "gdnrt_attention_init_cuda_graph_state": (c.c_int, [_P, c.c_int64, c.c_int64, _ERR]),
    "gdnrt_attention_init_forward_metadata_capture_cuda_graph": _GRAPH,
    "gdnrt_attention_init_forward_metadata_replay_cuda_graph": _GRAPH,
}


def declare(library: c.CDLL) -> None:
    """Sets the types of the functions."""
    _abi.declare(library, FUNCTIONS)
