# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI of include/gdn-c/state_cache.h for ctypes."""

import ctypes as c

from . import _abi
from ._abi import Error, Sized

EvictedFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_uint64, c.c_int64, c.c_int32)
MovedFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_uint64, c.c_int64, c.c_int32, c.c_int32)


class StateCacheOptions(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("page_tokens", c.c_int64),
        ("max_nodes", c.c_int64),
        ("max_tokens", c.c_int64),
        ("has_pages", c.c_int32),
        ("slot_kind", c.c_int32),
        ("stream", c.c_void_p),
        ("evicted", EvictedFunction),
        ("context", c.c_void_p),
        ("host_tier", c.c_void_p),
        ("host_bytes", c.c_uint64),
        ("host_min_tokens", c.c_int64),
        ("moved", MovedFunction),
    ]


class CacheTokens(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("tokens", c.c_void_p),
        ("count", c.c_size_t),
        ("token_bytes", c.c_int32),
        ("reserved", c.c_int32),
        ("adapter", c.c_uint64),
        ("salt", c.c_char_p),
        ("salt_bytes", c.c_size_t),
    ]


class CacheMatch(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("tokens", c.c_int64),
        ("node", c.c_uint64),
        ("slot", c.c_int32),
        ("num_accepted", c.c_int32),
        ("known_tokens", c.c_int64),
        ("known_node", c.c_uint64),
        ("on_host", c.c_int32),
        ("reserved", c.c_int32),
    ]


class CacheLock(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("node", c.c_uint64),
        ("slot", c.c_int32),
        ("num_accepted", c.c_int32),
        ("on_host", c.c_int32),
        ("reserved", c.c_int32),
    ]


class CacheEntry(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("pages", c.c_void_p),
        ("num_pages", c.c_size_t),
        ("slot", c.c_int32),
        ("num_accepted", c.c_int32),
    ]


class CacheInserted(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("node", c.c_uint64),
        ("known_tokens", c.c_int64),
        ("slot_taken", c.c_int32),
        ("is_full", c.c_int32),
        ("num_free_pages", c.c_size_t),
        ("num_evicted_pages", c.c_size_t),
        ("num_evicted_checkpoints", c.c_int64),
    ]


class StateCachePolicy(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("max_checkpoints", c.c_int64),
        ("reserve_slots", c.c_int64),
        ("min_gap", c.c_int64),
        ("block_tokens", c.c_int64),
        ("at_end", c.c_int32),
        ("at_branches", c.c_int32),
    ]


class CachePiece(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("done", c.c_int64),
        ("count", c.c_int64),
        ("taken", c.c_int64),
    ]


class CacheNodeInfo(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("tokens", c.c_int64),
        ("tokens_above", c.c_int64),
        ("slot", c.c_int32),
        ("num_accepted", c.c_int32),
        ("priority", c.c_double),
        ("num_children", c.c_int64),
        ("num_locks", c.c_int32),
        ("num_slot_locks", c.c_int32),
        ("host_slot", c.c_int32),
        ("reserved", c.c_int32),
    ]


class StateCacheInfo(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_nodes", c.c_int64),
        ("num_tokens", c.c_int64),
        ("locked_tokens", c.c_int64),
        ("num_checkpoints", c.c_int64),
        ("locked_checkpoints", c.c_int64),
        ("max_nodes", c.c_int64),
        ("max_tokens", c.c_int64),
        ("bytes", c.c_uint64),
        ("num_host_copies", c.c_int64),
        ("num_on_host", c.c_int64),
        ("host_bytes", c.c_uint64),
        ("num_stored", c.c_uint64),
        ("num_fetched", c.c_uint64),
    ]


_P = c.c_void_p
_ERR = c.POINTER(Error)
_TOKENS = c.POINTER(CacheTokens)
_LOCK = c.POINTER(CacheLock)
_SLOTS = c.POINTER(c.c_int32)
_SIZE = c.POINTER(c.c_size_t)

# Arrays of pages and positions are addresses.
_FUNCTIONS = {
    "gdnrt_state_cache_create": (
        c.c_int,
        [_P, c.POINTER(StateCacheOptions), c.POINTER(_P), _ERR],
    ),
    "gdnrt_state_cache_destroy": (None, [_P]),
    "gdnrt_state_cache_match": (c.c_int, [_P, _TOKENS, c.POINTER(CacheMatch), _ERR]),
    "gdnrt_state_cache_pages": (
        c.c_int,
        [_P, c.c_uint64, c.c_int64, _P, c.c_size_t, _ERR],
    ),
    "gdnrt_state_cache_lock": (c.c_int, [_P, c.c_uint64, _LOCK, _ERR]),
    "gdnrt_state_cache_unlock_slot": (c.c_int, [_P, _LOCK, _ERR]),
    "gdnrt_state_cache_unlock": (c.c_int, [_P, _LOCK, _ERR]),
    "gdnrt_state_cache_insert": (
        c.c_int,
        [_P, _TOKENS, c.POINTER(CacheEntry), _P, c.c_size_t, c.POINTER(CacheInserted), _ERR],
    ),
    "gdnrt_state_cache_evict_pages": (
        c.c_int,
        [_P, c.c_int64, _P, c.c_size_t, _SIZE, _ERR],
    ),
    "gdnrt_state_cache_evict_checkpoints": (
        c.c_int,
        [_P, c.c_int64, c.POINTER(c.c_int64), _ERR],
    ),
    "gdnrt_state_cache_drop": (c.c_int, [_P, c.c_uint64, _ERR]),
    "gdnrt_state_cache_set_priority": (c.c_int, [_P, c.c_uint64, c.c_double, _ERR]),
    "gdnrt_state_cache_take_slots": (
        c.c_int,
        [_P, c.c_size_t, c.c_int32, _SLOTS, _SLOTS, _ERR],
    ),
    "gdnrt_state_cache_policy_recommended": (c.c_int, [c.POINTER(StateCachePolicy), _ERR]),
    "gdnrt_state_cache_checkpoints_to_take": (
        c.c_int,
        [
            _P,
            _TOKENS,
            c.POINTER(StateCachePolicy),
            c.POINTER(CachePiece),
            _P,
            c.c_size_t,
            _SIZE,
            _ERR,
        ],
    ),
    "gdnrt_state_cache_node": (c.c_int, [_P, c.c_uint64, c.POINTER(CacheNodeInfo), _ERR]),
    "gdnrt_state_cache_describe": (c.c_int, [_P, c.POINTER(StateCacheInfo), _ERR]),
    "gdnrt_state_cache_check_writes": (c.c_int, [_P, _SLOTS, c.c_size_t, _ERR]),
    "gdnrt_state_cache_audit": (c.c_int, [_P, _ERR]),
}


def declare(library: c.CDLL) -> None:
    """Sets the types of the functions of the library."""
    _abi.declare(library, _FUNCTIONS)
