# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI of include/gdn-c/state_pool.h for ctypes."""

import ctypes as c

from . import _abi
from ._abi import Arg, Error, Sized


class StatePoolOptions(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_layers", c.c_int64),
        ("num_requests", c.c_int64),
        ("num_track", c.c_int64),
        ("num_key_heads", c.c_int64),
        ("num_value_heads", c.c_int64),
        ("key_dim", c.c_int64),
        ("value_dim", c.c_int64),
        ("conv_width", c.c_int64),
        ("conv_extra", c.c_int64),
        ("state_slot_stride", c.c_int64),
        ("state_layer_stride", c.c_int64),
        ("conv_slot_stride", c.c_int64),
        ("conv_layer_stride", c.c_int64),
        ("state_dtype", c.c_int32),
        ("conv_dtype", c.c_int32),
        ("conv_layout", c.c_int32),
        ("debug_checks", c.c_int32),
        ("foreign_requests", c.c_int32),
        ("pending_tokens", c.c_int64),
        ("decay_per_channel", c.c_int32),
        ("deferred_writes", c.c_int32),
        ("state_planes", c.c_int32),
        ("pending_dtype", c.c_int32),
    ]


class StatePoolInfo(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_slots", c.c_int64),
        ("free_requests", c.c_int64),
        ("used_requests", c.c_int64),
        ("free_track", c.c_int64),
        ("used_track", c.c_int64),
        ("bytes", c.c_uint64),
    ]


_P = c.c_void_p
_OUT = c.POINTER(c.c_void_p)
_ERR = c.POINTER(Error)
_OPTIONS = c.POINTER(StatePoolOptions)
_SLOTS = c.POINTER(c.c_int32)
_TAKE = [_P, c.c_size_t, c.c_int32, _P, _SLOTS, _SLOTS, _ERR]

_FUNCTIONS = {
    "gdnrt_state_pool_bytes": (c.c_int, [_OPTIONS, c.POINTER(c.c_uint64), _ERR]),
    "gdnrt_state_pool_requests_that_fit": (
        c.c_int,
        [_OPTIONS, c.c_uint64, c.POINTER(c.c_int64), _ERR],
    ),
    "gdnrt_state_pool_create": (c.c_int, [_P, _OPTIONS, _OUT, _ERR]),
    "gdnrt_state_pool_wrap": (
        c.c_int,
        [_P, _OPTIONS, c.POINTER(Arg), c.POINTER(Arg), _OUT, _ERR],
    ),
    "gdnrt_state_pool_destroy": (None, [_P]),
    "gdnrt_state_pool_describe": (c.c_int, [_P, c.POINTER(StatePoolInfo), _ERR]),
    "gdnrt_state_pool_view": (c.c_int, [_P, c.c_int32, c.c_int64, c.POINTER(Arg), _ERR]),
    "gdnrt_state_pool_allocate": (c.c_int, _TAKE),
    "gdnrt_state_pool_allocate_track": (c.c_int, _TAKE),
    "gdnrt_state_pool_free": (c.c_int, [_P, _SLOTS, c.c_size_t, _P, _ERR]),
    "gdnrt_state_pool_fork": (c.c_int, [_P, c.c_int32, _P, _SLOTS, _SLOTS, _ERR]),
    "gdnrt_state_pool_reset": (c.c_int, [_P, _SLOTS, c.c_size_t, _P, _ERR]),
    "gdnrt_state_pool_copy": (c.c_int, [_P, _SLOTS, _SLOTS, c.c_size_t, _P, _ERR]),
    "gdnrt_state_pool_has_pending": (
        c.c_int,
        [_P, _SLOTS, c.c_size_t, _P, c.POINTER(c.c_uint8), _ERR],
    ),
    "gdnrt_state_pool_use_kernels": (c.c_int, [_P, _P, _P, _ERR]),
    "gdnrt_state_pool_check_batch": (c.c_int, [_P, _SLOTS, c.c_size_t, _ERR]),
}


def declare(library: c.CDLL) -> None:
    """Sets the types of the functions of the library."""
    _abi.declare(library, _FUNCTIONS)
