# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI of include/gdn-c/exchange.h for ctypes."""

import ctypes as c

from . import _abi
from ._abi import Error, Sized

#: The bytes of an id of a communicator.
ID_BYTES = 128


class NcclOptions(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("library", c.c_char_p),
        ("communicator", c.c_void_p),
        ("id", c.c_void_p),
        ("rank", c.c_int32),
        ("num_ranks", c.c_int32),
        ("timeout_ms", c.c_int64),
    ]


_P = c.c_void_p
_OUT = c.POINTER(c.c_void_p)
_ERR = c.POINTER(Error)
_RANK = c.POINTER(c.c_int32)

_FUNCTIONS = {
    "gdnrt_nccl_id": (c.c_int, [c.c_char_p, c.c_char_p, _ERR]),
    "gdnrt_exchange_create_nccl": (c.c_int, [_P, c.POINTER(NcclOptions), _OUT, _ERR]),
    "gdnrt_exchange_create_threads": (c.c_int, [c.c_int32, c.c_int64, _OUT, _ERR]),
    "gdnrt_exchange_create_streams": (c.c_int, [_P, c.c_int32, c.c_int64, _OUT, _ERR]),
    "gdnrt_exchange_destroy": (None, [_P]),
    "gdnrt_exchange_describe": (c.c_int, [_P, _RANK, _RANK, _ERR]),
    "gdnrt_exchange_all_gather": (c.c_int, [_P, _P, _P, c.c_uint64, _P, _ERR]),
    "gdnrt_exchange_wait": (c.c_int, [_P, _P, _ERR]),
    "gdnrt_exchange_abort": (c.c_int, [_P, _ERR]),
}


def declare(library: c.CDLL) -> None:
    """Sets the types of the functions of the library."""
    _abi.declare(library, _FUNCTIONS)
