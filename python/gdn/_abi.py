# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI of libgdnrt (include/gdn-c/runtime.h) for ctypes."""

import ctypes as c
from pathlib import Path

import numpy as np

MAX_RANK = 8
MESSAGE_SIZE = 1024


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * MESSAGE_SIZE)]


class Sized:
    """Of a struct that may grow: it begins with the size that it has here. The other
    fields are given behind it, or are 0. ValueError for an integer that its field does not hold,
    which ctypes would cut, TypeError for what its field cannot be; both begin with its name."""

    def __init__(self, *fields: object, **named: object):
        names = [name for name, *_ in self._fields_[1:]]
        given = (*zip(names, fields, strict=False), *named.items())
        try:
            super().__init__(c.sizeof(self), *fields, **named)
        except TypeError:
            for name, value in given:
                self._set(name, value)
            raise
        for name, value in given:
            found = getattr(self, name)
            if type(found) is int and not isinstance(value, c.c_void_p) and found != value:
                bits = 8 * getattr(type(self), name).size
                raise ValueError(f"{name}: expected an integer of {bits} bits, got {value}")

    def _set(self, name: str, value: object) -> None:
        """Sets one field, or says that it is the wrong one."""
        kinds = {int: "an integer", float: "a number"}
        try:
            setattr(self, name, value)
        except TypeError as wrong:
            kind = kinds.get(type(getattr(self, name)))
            expected = f"expected {kind}, got {value!r}" if kind else str(wrong)
            raise TypeError(f"{name}: {expected}") from None


class ParamInfo(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("name", c.c_char_p),
        ("kind", c.c_int),
        ("access", c.c_int),
        ("dtype", c.c_int),
        ("rank", c.c_int32),
        ("dims", c.c_char_p * MAX_RANK),
        ("unit_stride_last", c.c_int32),
        ("optional", c.c_int32),
        ("unit_stride_dim", c.c_int32),
        ("reserved", c.c_int32),
    ]


class VariantInfo(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("name", c.c_char_p),
        ("conditions", c.c_char_p),
        ("stage_count", c.c_size_t),
        ("needs_workspace", c.c_int32),
        ("scratch_bytes", c.c_uint64),
        ("bits", c.c_char_p),
    ]


LogFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)


class CpuOptions(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_workers", c.c_int32),
        ("debug_checks", c.c_int32),
        ("log", LogFunction),
        ("log_user", c.c_void_p),
    ]


class CudaOptions(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("ordinal", c.c_int32),
        ("debug_checks", c.c_int32),
        ("driver", c.c_char_p),
        ("log", LogFunction),
        ("log_user", c.c_void_p),
    ]


PushFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
PopFunction = c.CFUNCTYPE(None, c.c_void_p)


class Ranges(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("push", PushFunction),
        ("pop", PopFunction),
        ("user", c.c_void_p),
    ]


class DeviceInfo(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("kind", c.c_char_p),
        ("name", c.c_char_p),
        ("features", c.c_char_p),
        ("num_workers", c.c_int32),
        ("reserved", c.c_int32),
    ]


class CodeInfo(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("target", c.c_char_p),
        ("format", c.c_char_p),
        ("features", c.c_char_p),
        ("scratch_bytes", c.c_uint64),
    ]


class Arg(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int32),
        ("rank", c.c_int32),
        ("sizes", c.c_void_p),  # of i64
        ("strides", c.c_void_p),
        ("null_slot", c.c_int64),
    ]


class NamedArg(c.Structure):
    _fields_ = [("name", c.c_char_p), ("arg", Arg)]


class SlotReport(Sized, c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("live", c.c_int64),
        ("skipped_negative", c.c_int64),
        ("skipped_null", c.c_int64),
        ("skipped_past_end", c.c_int64),
    ]


_P = c.c_void_p
_OUT = c.POINTER(c.c_void_p)
_ERR = c.POINTER(Error)

# name: (result, arguments); every name is one of the header.
_FUNCTIONS = {
    "gdnrt_version_string": (c.c_char_p, []),
    "gdnrt_status_name": (c.c_char_p, [c.c_int]),
    "gdnrt_image_load_file": (c.c_int, [c.c_char_p, _OUT, _ERR]),
    "gdnrt_image_load_memory": (c.c_int, [_P, c.c_size_t, _OUT, _ERR]),
    "gdnrt_image_destroy": (None, [_P]),
    "gdnrt_image_producer": (c.c_char_p, [_P]),
    "gdnrt_image_entry_count": (c.c_size_t, [_P]),
    "gdnrt_image_entry": (_P, [_P, c.c_size_t]),
    "gdnrt_image_find_entry": (c.c_int, [_P, c.c_char_p, _OUT, _ERR]),
    "gdnrt_image_find_kind": (
        c.c_int,
        [_P, c.c_char_p, c.c_int32, c.c_int32, _OUT, _ERR],
    ),
    "gdnrt_entry_name": (c.c_char_p, [_P]),
    "gdnrt_entry_param_count": (c.c_size_t, [_P]),
    "gdnrt_entry_param": (c.c_int, [_P, c.c_size_t, c.POINTER(ParamInfo), _ERR]),
    "gdnrt_entry_code_count": (c.c_size_t, [_P]),
    "gdnrt_entry_code": (c.c_int, [_P, c.c_size_t, c.POINTER(CodeInfo), _ERR]),
    "gdnrt_entry_attribute_count": (c.c_size_t, [_P]),
    "gdnrt_entry_attribute_key": (c.c_char_p, [_P, c.c_size_t]),
    "gdnrt_entry_attribute_value": (c.c_char_p, [_P, c.c_size_t]),
    "gdnrt_entry_attribute": (c.c_char_p, [_P, c.c_char_p]),
    "gdnrt_entry_variant_count": (c.c_size_t, [_P, c.c_size_t]),
    "gdnrt_entry_variant": (
        c.c_int,
        [_P, c.c_size_t, c.c_size_t, c.POINTER(VariantInfo), _ERR],
    ),
    "gdnrt_device_create_cpu": (c.c_int, [c.POINTER(CpuOptions), _OUT, _ERR]),
    "gdnrt_device_create_cuda": (c.c_int, [c.POINTER(CudaOptions), _OUT, _ERR]),
    "gdnrt_device_destroy": (None, [_P]),
    "gdnrt_device_set_ranges": (c.c_int, [_P, c.POINTER(Ranges), _ERR]),
    "gdnrt_device_describe": (c.c_int, [_P, c.POINTER(DeviceInfo), _ERR]),
    "gdnrt_device_allocate": (c.c_int, [_P, c.c_size_t, _OUT, _ERR]),
    "gdnrt_device_free": (c.c_int, [_P, _P, _ERR]),
    "gdnrt_device_write": (c.c_int, [_P, _P, _P, c.c_size_t, _ERR]),
    "gdnrt_device_read": (c.c_int, [_P, _P, _P, c.c_size_t, _ERR]),
    "gdnrt_device_synchronize": (c.c_int, [_P, _P, _ERR]),
    "gdnrt_device_is_capturing": (c.c_int, [_P, _P, c.POINTER(c.c_int32), _ERR]),
    "gdnrt_kernel_create": (c.c_int, [_P, _P, c.c_char_p, _OUT, _ERR]),
    "gdnrt_kernel_create_from_code": (
        c.c_int,
        [_P, _P, c.c_char_p, c.c_size_t, _OUT, _ERR],
    ),
    "gdnrt_kernel_destroy": (None, [_P]),
    "gdnrt_kernel_entry": (_P, [_P]),
    "gdnrt_kernel_code": (c.c_size_t, [_P]),
    "gdnrt_kernel_bind_named": (c.c_int, [_P, c.POINTER(NamedArg), c.c_size_t, _OUT, _ERR]),
    "gdnrt_binding_destroy": (None, [_P]),
    "gdnrt_binding_symbol": (c.c_int, [_P, c.c_char_p, c.POINTER(c.c_int64), _ERR]),
    "gdnrt_binding_workspace_bytes": (c.c_int, [_P, c.POINTER(c.c_uint64), _ERR]),
    "gdnrt_binding_set_workspace": (c.c_int, [_P, _P, c.c_uint64, _P, _ERR]),
    "gdnrt_binding_force_variant": (c.c_int, [_P, c.c_int64, _ERR]),
    "gdnrt_binding_force_stage": (c.c_int, [_P, c.c_int64, _ERR]),
    "gdnrt_binding_set_batch_invariant": (c.c_int, [_P, c.c_int32, _ERR]),
    "gdnrt_binding_expect_sequences": (c.c_int, [_P, c.c_int64, _ERR]),
    "gdnrt_binding_variant": (c.c_size_t, [_P]),
    "gdnrt_binding_units": (c.c_int64, [_P]),
    "gdnrt_binding_check_slots": (c.c_int, [_P, c.POINTER(SlotReport), _ERR]),
    "gdnrt_binding_allow_dependent_launch": (c.c_int, [_P, c.c_int32, _ERR]),
    "gdnrt_launch": (c.c_int, [_P, _P, _ERR]),
}


def _exact(kind: type) -> type:
    """An integer type of arguments that refuses what it does not hold. ctypes would cut it, and
    what is cut names another slot."""

    def from_param(cls: type, value: object) -> object:
        number = kind(value)
        if number.value != value:
            bits = 8 * c.sizeof(kind)
            raise ValueError(f"expected an integer of {bits} bits, got {value}")
        return number

    return type(kind.__name__, (kind,), {"from_param": classmethod(from_param)})


_EXACT = {kind: _exact(kind) for kind in (c.c_int32, c.c_int64, c.c_uint64)}


def declare(library: c.CDLL, functions: dict[str, tuple]) -> None:
    """Sets the types of functions of the library: name, result and arguments."""
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = [_EXACT.get(kind, kind) for kind in arguments]


def load(path: str | Path) -> c.CDLL:
    """The library at `path`, with the types of its functions set."""
    # They need Error from here.
    from . import (
        _attention_abi,
        _exchange_abi,
        _host_tier_abi,
        _serving_abi,
        _state_cache_abi,
        _state_pool_abi,
    )

    library = c.CDLL(str(path))
    declare(library, _FUNCTIONS)
    _attention_abi.declare(library)
    _exchange_abi.declare(library)
    _host_tier_abi.declare(library)
    _serving_abi.declare(library)
    _state_pool_abi.declare(library)
    _state_cache_abi.declare(library)
    return library


def wrong_argument(function: str, found: str) -> Exception:
    """What ctypes says of an argument, with the kind of error that it was."""
    for kind in (ValueError, TypeError):
        # Python 3.10 has the class as text.
        for what in (f"{kind.__name__}: ", f"{kind}: "):
            if what in found:
                return kind(f"{function}: {found.replace(what, '', 1)}")
    return TypeError(f"{function}: {found}")


def in_place(address: int, element: type, size: int, owner: object) -> np.ndarray:
    """Memory of the library as an array, which keeps `owner`, whose memory it is."""
    memory = (element * size).from_address(address)
    memory._owner = owner
    return np.ctypeslib.as_array(memory)
