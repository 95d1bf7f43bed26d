# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI of include/gdn-c/serving.h and layer_shape.h for ctypes."""

import ctypes as c

import numpy as np

from . import _abi
from ._abi import Error, NamedArg, Sized, in_place


class MetadataOptions(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("max_num_seqs", c.c_int64),
        ("max_num_tokens", c.c_int64),
        ("num_speculative_tokens", c.c_int64),
        ("use_full_cuda_graph", c.c_int32),
        ("mamba_cache_mode", c.c_int32),
        ("max_cudagraph_capture_size", c.c_int64),
        ("block_size", c.c_int64),
        ("pad_slot", c.c_int32),
        ("verify_states", c.c_int32),
        ("mixed_batch", c.c_int32),
        ("deferred_writes", c.c_int32),
        ("max_num_prefills", c.c_int64),
    ]


class CommonMetadata(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_reqs", c.c_int64),
        ("num_actual_tokens", c.c_int64),
        ("query_start_loc", c.c_void_p),
        ("seq_lens", c.c_void_p),
        ("block_table", c.c_void_p),
        ("block_table_columns", c.c_int64),
        ("block_table_stride", c.c_int64),
        ("num_accepted_tokens", c.c_void_p),
        ("num_decode_draft_tokens", c.c_void_p),
        ("num_padded_reqs", c.c_int64),
        ("token_slots", c.c_void_p),
        ("parents", c.c_void_p),
        ("token_slots_stride", c.c_int64),
    ]


class I32Array(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_int64)]

    def numpy(self, owner: object) -> np.ndarray | None:
        """The array in place, which keeps `owner` of its memory; None if there is none."""
        return in_place(self.data, c.c_int32, self.size, owner) if self.data else None


class BoolArray(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_int64)]

    def numpy(self, owner: object) -> np.ndarray | None:
        """The array in place, which keeps `owner` of its memory; None if there is none."""
        return in_place(self.data, c.c_bool, self.size, owner) if self.data else None


class Run(c.Structure):
    _fields_ = [
        ("kind", c.c_int32),
        ("reads_state", c.c_int32),
        ("first_token", c.c_int64),
        ("num_tokens", c.c_int64),
        ("first_row", c.c_int64),
        ("num_rows", c.c_int64),
        ("query_start_loc", c.c_void_p),
    ]


class Metadata(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_prefills", c.c_int64),
        ("num_prefill_tokens", c.c_int64),
        ("num_decodes", c.c_int64),
        ("num_decode_tokens", c.c_int64),
        ("num_spec_decodes", c.c_int64),
        ("num_spec_decode_tokens", c.c_int64),
        ("num_actual_tokens", c.c_int64),
        ("has_initial_state", BoolArray),
        ("chunk_indices", I32Array),
        ("chunk_offsets", I32Array),
        ("spec_query_start_loc", I32Array),
        ("non_spec_query_start_loc", I32Array),
        ("spec_state_indices", I32Array),
        ("num_spec_columns", c.c_int64),
        ("non_spec_state_indices", I32Array),
        ("spec_sequence_masks", BoolArray),
        ("spec_token_indx", I32Array),
        ("non_spec_token_indx", I32Array),
        ("num_accepted_tokens", I32Array),
        ("spec_decode_src_indices", I32Array),
        ("non_spec_num_accepted", I32Array),
        ("prefill_query_start_loc", I32Array),
        ("prefill_state_indices", I32Array),
        ("prefill_has_initial_state", BoolArray),
        ("conv_nums", I32Array),
        ("conv_total", c.c_int64),
        ("batch_ptr", I32Array),
        ("token_chunk_offset_ptr", I32Array),
        ("cu_checkpoints", I32Array),
        ("checkpoint_tokens", I32Array),
        ("checkpoint_slots", I32Array),
        ("verify_states", c.c_int64),
        ("spec_slots", I32Array),
        ("spec_parents", I32Array),
        ("commit_slots", I32Array),
        ("commit_num_accepted", I32Array),
        ("commit_token_slots", I32Array),
        ("non_spec_read_indices", I32Array),
        ("zeros", I32Array),
        ("run_has_initial", BoolArray),
        ("runs", c.POINTER(Run)),
        ("num_runs", c.c_int64),
        ("num_run_tokens", c.c_int64),
        ("arena", c.c_void_p),
        ("arena_bytes", c.c_size_t),
        ("device_bytes", c.c_size_t),
        ("moves_states", c.c_int32),
        ("prefill_is_bounded", c.c_int32),
        ("run_is_prefill", BoolArray),
        ("non_spec_is_prefill", BoolArray),
        ("num_expected_prefills", c.c_int64),
        ("spec_stride", c.c_int64),
        ("on_device", c.c_int64),
        ("uploaded", c.c_void_p),
        ("deferred_writes", c.c_int64),
        ("non_spec_rows", I32Array),
    ]


class LayerHeads(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_key_heads", c.c_int64),
        ("num_value_heads", c.c_int64),
        ("key_dim", c.c_int64),
        ("value_dim", c.c_int64),
    ]


class Slice(c.Structure):
    _fields_ = [("begin", c.c_int64), ("size", c.c_int64)]


class Kernels(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("decode", c.c_void_p),
        ("prefill", c.c_void_p),
        ("verify", c.c_void_p),
        ("commit", c.c_void_p),
    ]


class BatchPlannerOptions(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("max_num_seqs", c.c_int64),
        ("num_speculative_tokens", c.c_int64),
        ("verify_states", c.c_int32),
        ("reserved", c.c_int32),
    ]


class DeviceBatch(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_seqs", c.c_int64),
        ("num_tokens", c.c_int64),
        ("max_num_prefills", c.c_int64),
        ("query_start_loc", c.c_void_p),
        ("seq_lens", c.c_void_p),
        ("block_table", c.c_void_p),
        ("block_table_columns", c.c_int64),
        ("block_table_stride", c.c_int64),
        ("num_accepted_tokens", c.c_void_p),
        ("num_decode_draft_tokens", c.c_void_p),
        ("token_slots", c.c_void_p),
        ("parents", c.c_void_p),
        ("token_slots_stride", c.c_int64),
    ]


class WorkspaceSize(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("counter_bytes", c.c_uint64),
        ("total_bytes", c.c_uint64),
    ]


MAX_SLICES = 4
_P = c.c_void_p
_OUT = c.POINTER(c.c_void_p)
_ERR = c.POINTER(Error)
# The number of ranks and one of them, and what that has of a weight.
_SLICES = [
    c.c_int64,
    c.c_int64,
    c.POINTER(c.c_int32),
    Slice * MAX_SLICES,
    c.POINTER(c.c_size_t),
    _ERR,
]

# name: (result, arguments); every name is one of the headers.
FUNCTIONS = {
    "gdnrt_metadata_builder_create": (c.c_int, [c.POINTER(MetadataOptions), _OUT, _ERR]),
    "gdnrt_metadata_builder_destroy": (None, [_P]),
    "gdnrt_metadata_builder_reorder_batch_threshold": (c.c_int64, [_P]),
    "gdnrt_metadata_builder_decode_cudagraph_max_bs": (c.c_int64, [_P]),
    "gdnrt_metadata_builder_build": (
        c.c_int,
        [_P, c.POINTER(CommonMetadata), c.POINTER(Metadata), _ERR],
    ),
    "gdnrt_metadata_builder_build_for_cudagraph_capture": (
        c.c_int,
        [_P, c.POINTER(CommonMetadata), c.POINTER(Metadata), _ERR],
    ),
    "gdnrt_metadata_builder_build_commit": (
        c.c_int,
        [_P, _P, _P, c.c_int64, c.POINTER(Metadata), _ERR],
    ),
    "gdnrt_align_states_before": (
        c.c_int,
        [_P, c.POINTER(CommonMetadata), _P, _P, _P, _P, c.POINTER(c.c_int64), _ERR],
    ),
    "gdnrt_align_states_after": (
        c.c_int,
        [_P, c.POINTER(CommonMetadata), _P, _P, _P, _P, c.POINTER(c.c_int64), _ERR],
    ),
    "gdnrt_state_columns": (c.c_int, [_P, _P, _P, _P, c.c_int64, _P, _ERR]),
    "gdnrt_metadata_upload": (c.c_int, [_P, c.POINTER(Metadata), _P, _P, _ERR]),
    "gdnrt_gdn_layer_create": (
        c.c_int,
        [c.POINTER(Kernels), c.POINTER(NamedArg), c.c_size_t, _OUT, _ERR],
    ),
    "gdnrt_gdn_layer_create_in_pool": (
        c.c_int,
        [c.POINTER(Kernels), c.POINTER(NamedArg), c.c_size_t, _P, c.c_int64, _OUT, _ERR],
    ),
    "gdnrt_metadata_upload_changed": (c.c_int, [_P, c.POINTER(Metadata), _P, _P, _ERR]),
    "gdnrt_batch_planner_create": (
        c.c_int,
        [_P, c.POINTER(BatchPlannerOptions), _OUT, _ERR],
    ),
    "gdnrt_batch_planner_destroy": (None, [_P]),
    "gdnrt_batch_planner_plan": (
        c.c_int,
        [_P, c.POINTER(DeviceBatch), _P, c.POINTER(Metadata), _ERR],
    ),
    "gdnrt_gdn_layer_check_steps": (c.c_int, [_P, _P, _ERR]),
    "gdnrt_gdn_layer_destroy": (None, [_P]),
    "gdnrt_gdn_layer_forward": (
        c.c_int,
        [_P, c.POINTER(Metadata), _P, c.POINTER(NamedArg), c.c_size_t, _P, _ERR],
    ),
    "gdnrt_gdn_layer_workspace_size": (
        c.c_int,
        [_P, c.c_int64, c.c_int64, c.POINTER(WorkspaceSize), _ERR],
    ),
    "gdnrt_workspace_create": (c.c_int, [_P, c.POINTER(WorkspaceSize), _OUT, _ERR]),
    "gdnrt_workspace_wrap": (
        c.c_int,
        [_P, c.POINTER(WorkspaceSize), _P, _P, _OUT, _ERR],
    ),
    "gdnrt_workspace_destroy": (None, [_P]),
    "gdnrt_gdn_layer_set_batch_invariant": (c.c_int, [_P, c.c_int32, _ERR]),
    "gdnrt_gdn_layer_allow_dependent_launch": (c.c_int, [_P, c.c_int32, _ERR]),
    "gdnrt_gdn_layer_share_workspace": (c.c_int, [_P, _P, _ERR]),
    "gdnrt_gdn_layer_share_workspace_on_stream": (c.c_int, [_P, _P, _P, _ERR]),
    "gdnrt_layer_state_shape": (
        c.c_int,
        [
            c.POINTER(LayerHeads),
            c.c_int64,
            c.c_int64,
            c.c_int64,
            c.c_int32,
            c.c_int64 * 2,
            c.c_int64 * 3,
            _ERR,
        ],
    ),
    "gdnrt_layer_state_dtype": (
        c.c_int,
        [c.c_int32, c.c_int32, c.c_int32, c.POINTER(c.c_int32), c.POINTER(c.c_int32), _ERR],
    ),
    "gdnrt_layer_weight_slices": (
        c.c_int,
        [c.POINTER(LayerHeads), c.c_char_p, c.c_int32, *_SLICES],
    ),
    "gdnrt_kda_weight_slices": (
        c.c_int,
        [c.POINTER(LayerHeads), c.c_char_p, *_SLICES],
    ),
    "gdnrt_rank_place": (
        c.c_int,
        [c.c_int64] * 3 + [c.POINTER(c.c_int64)] * 2 + [_ERR],
    ),
}


def declare(library: c.CDLL) -> None:
    """Sets the types of the functions."""
    _abi.declare(library, FUNCTIONS)
