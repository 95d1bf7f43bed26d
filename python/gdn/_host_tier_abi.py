# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI of include/gdn-c/host_tier.h for ctypes."""

import ctypes as c

from . import _abi
from ._abi import Error, Sized


class HostTierOptions(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_slots", c.c_int64),
        ("format", c.c_int32),
        ("has_copy_stream", c.c_int32),
        ("copy_stream", c.c_void_p),
        ("tp_size", c.c_int64),
        ("tp_rank", c.c_int64),
        ("total_key_heads", c.c_int64),
        ("total_value_heads", c.c_int64),
        ("rounding_threads", c.c_int32),
        ("reserved", c.c_int32),
    ]


class HostTierInfo(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_slots", c.c_int64),
        ("free_slots", c.c_int64),
        ("slot_bytes", c.c_uint64),
        ("bytes", c.c_uint64),
    ]


class StateTags(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_tokens", c.c_int64),
        ("name_space", c.c_uint64),
        ("token_hash", c.c_uint64),
    ]


WriteFunction = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, c.c_uint64)
ReadFunction = c.CFUNCTYPE(c.c_int64, c.c_void_p, c.c_void_p, c.c_uint64)


class ByteWriter(c.Structure):
    _fields_ = [("write", WriteFunction), ("user", c.c_void_p)]


class ByteReader(c.Structure):
    _fields_ = [("read", ReadFunction), ("user", c.c_void_p)]


_P = c.c_void_p
_OUT = c.POINTER(c.c_void_p)
_ERR = c.POINTER(Error)
_SLOTS = c.POINTER(c.c_int32)
_TAGS = c.POINTER(StateTags)
_SWAP = [_P, _SLOTS, c.c_size_t, _P, _SLOTS, _SLOTS, _ERR]
_COPY = [_P, _SLOTS, _SLOTS, c.c_size_t, _P, _ERR]

_FUNCTIONS = {
    "gdnrt_host_tier_create": (c.c_int, [_P, c.POINTER(HostTierOptions), _OUT, _ERR]),
    "gdnrt_host_tier_destroy": (None, [_P]),
    "gdnrt_host_tier_describe": (c.c_int, [_P, c.POINTER(HostTierInfo), _ERR]),
    "gdnrt_host_tier_allocate": (c.c_int, [_P, c.c_size_t, _SLOTS, _SLOTS, _ERR]),
    "gdnrt_host_tier_free": (c.c_int, [_P, _SLOTS, c.c_size_t, _ERR]),
    "gdnrt_host_tier_is_over": (
        c.c_int,
        [_P, _SLOTS, c.c_size_t, c.POINTER(c.c_uint8), _ERR],
    ),
    "gdnrt_host_tier_synchronize": (c.c_int, [_P, _SLOTS, c.c_size_t, _ERR]),
    "gdnrt_host_tier_store": (c.c_int, _COPY),
    "gdnrt_host_tier_load": (c.c_int, _COPY),
    "gdnrt_host_tier_wait": (c.c_int, [_P, _SLOTS, c.c_size_t, _P, _ERR]),
    "gdnrt_host_tier_swap_out": (c.c_int, _SWAP),
    "gdnrt_host_tier_swap_in": (c.c_int, _SWAP),
    "gdnrt_host_tier_write": (
        c.c_int,
        [_P, c.c_int32, _TAGS, c.POINTER(ByteWriter), _ERR],
    ),
    "gdnrt_host_tier_read": (
        c.c_int,
        [_P, c.c_int32, c.POINTER(ByteReader), c.c_size_t, _TAGS, _TAGS, _ERR],
    ),
    "gdnrt_host_tier_write_file": (c.c_int, [_P, c.c_int32, _TAGS, c.c_char_p, _ERR]),
    "gdnrt_host_tier_read_files": (
        c.c_int,
        [_P, c.c_int32, c.POINTER(c.c_char_p), c.c_size_t, _TAGS, _TAGS, _ERR],
    ),
}


def declare(library: c.CDLL) -> None:
    """Sets the types of the functions of the library."""
    _abi.declare(library, _FUNCTIONS)
