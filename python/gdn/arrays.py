# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What counts as an array: NumPy's, anything that speaks DLPack (tensors of
PyTorch, arrays of JAX and CuPy), and memory of a device that no library holds.

Nothing is copied, and no library is imported. Views are taken when a kernel is
bound: `__dlpack__` is asked not to synchronise, so the caller orders streams.
"""

import ctypes as c
from math import prod
from typing import NamedTuple

import numpy as np

from .call_options import refuse_meta, refuse_negating

DTYPES = ("float32", "bfloat16", "float16", "int32", "int64", "bool", "float64", "uint8")

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_DEVICES = {_CPU: "cpu", _CUDA: "cuda", _CUDA_HOST: "cpu", _CUDA_MANAGED: "cuda"}
# DLPack's type codes with bits.
_DLPACK_DTYPES = {
    (2, 32): "float32",
    (4, 16): "bfloat16",
    (2, 16): "float16",
    (0, 32): "int32",
    (0, 64): "int64",
    (6, 8): "bool",
    (2, 64): "float64",
    (1, 8): "uint8",
}


class _DLTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device_type", c.c_int32),
        ("device_id", c.c_int32),
        ("ndim", c.c_int32),
        ("code", c.c_uint8),
        ("bits", c.c_uint8),
        ("lanes", c.c_uint16),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


_capsule_pointer = c.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = c.c_void_p
_capsule_pointer.argtypes = [c.py_object, c.c_char_p]
_is_capsule = c.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = [c.py_object, c.c_char_p]


class _DLManagedTensorVersioned(c.Structure):
    _fields_ = [
        ("major", c.c_uint32),
        ("minor", c.c_uint32),
        ("context", c.c_void_p),
        ("deleter", c.c_void_p),
        ("flags", c.c_uint64),
        ("tensor", _DLTensor),
    ]


# Flags of a tensor that nobody may write, and of a copy, which its owner does not see.
_READ_ONLY, _IS_COPIED = 1, 2


class View(NamedTuple):
    """An array as the runtime sees it. Strides count elements."""

    data: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    owner: object  # keeps the memory alive
    ordinal: int = 0  # which of the devices of that kind
    readonly: bool = False  # nobody may write it

    @property
    def is_contiguous(self) -> bool:
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * itemsize(self.dtype)


_ITEMSIZES = {name: bits // 8 for (_, bits), name in _DLPACK_DTYPES.items()}
_TORCH_DTYPES: dict[object, str] = {}  # names of PyTorch's types that were seen


def itemsize(dtype: str) -> int:
    """Bytes of an element."""
    return _ITEMSIZES[dtype]


class DeviceArray:
    """Memory of a device with a shape, row-major. Made by Device.array and
    Device.empty; freed with the object."""

    def __init__(self, device, shape: tuple[int, ...], dtype: np.dtype):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise TypeError(f"dtype: expected numbers, got {self.dtype}")
        if any(size < 0 for size in self.shape):
            raise ValueError(f"shape: expected sizes of at least 0, got {list(self.shape)}")
        self.nbytes = prod(self.shape) * self.dtype.itemsize
        self._device = device
        self.data = device._runtime.create(
            "gdnrt_device_allocate", device._handle, self.nbytes
        ).value

    def __del__(self):
        if getattr(self, "data", None):
            self._device._runtime._lib.gdnrt_device_free(self._device._handle, self.data, None)
            self.data = None

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """The memory for libraries that take arrays of CUDA as they are: torch.as_tensor,
        cupy.asarray. They keep this object. Other devices and bfloat16 have no such interface."""
        if self._device.kind != "cuda" or self.dtype.kind not in "fib":
            raise AttributeError(f"{self._device.kind} memory of {self.dtype}: no CUDA interface")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.data, False),
            "version": 3,
        }

    def write(self, array: np.ndarray) -> None:
        """Copies an array of the same shape and dtype to the device."""
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ValueError(
                f"expected {self.dtype}{list(self.shape)}, got {array.dtype}{list(array.shape)}"
            )
        source = np.ascontiguousarray(array)
        self._device._runtime.call(
            "gdnrt_device_write", self._device._handle, self.data, source.ctypes.data, self.nbytes
        )

    def numpy(self) -> np.ndarray:
        """A copy on the host, after what was launched on the null stream."""
        array = np.empty(self.shape, self.dtype)
        self._device._runtime.call(
            "gdnrt_device_read", self._device._handle, array.ctypes.data, self.data, self.nbytes
        )
        return array


def view(name: str, value: object, dtypes: tuple[str, ...] = DTYPES) -> View:
    """`value` as a View; errors begin with `name`."""
    found = _view(name, value)
    if found.dtype not in dtypes:
        raise TypeError(f"{name}: expected one of {', '.join(dtypes)}, got {found.dtype}")
    return found


def _view(name: str, value: object) -> View:
    if isinstance(value, View):
        return value
    if isinstance(value, np.ndarray):
        return _numpy_view(name, value)
    if isinstance(value, DeviceArray):
        strides = [1]
        for size in reversed(value.shape[1:]):
            strides.append(strides[-1] * size)
        device = value._device
        strides = tuple(reversed(strides)) if value.shape else ()
        return View(
            value.data,
            value.dtype.name,
            value.shape,
            strides,
            device.kind,
            value,
            device.ordinal,
        )
    if type(value).__module__.partition(".")[0] == "torch" and not value.requires_grad:
        return _torch_view(name, value)
    if hasattr(value, "__dlpack__"):
        return _dlpack_view(name, value)
    raise TypeError(
        f"{name}: expected a NumPy array or one with __dlpack__, got {type(value).__name__}"
    )


def _numpy_view(name: str, array: np.ndarray) -> View:
    if any(stride % array.itemsize for stride in array.strides):
        raise ValueError(f"{name}: expected strides in whole elements, got {array.strides} bytes")
    if not array.dtype.isnative:
        raise TypeError(
            f"{name}: expected the byte order of this machine, got {array.dtype.str}; "
            "astype(array.dtype.newbyteorder('=')) copies"
        )
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return View(
        array.ctypes.data,
        array.dtype.name,
        array.shape,
        strides,
        "cpu",
        array,
        readonly=not array.flags.writeable,
    )


def _torch_view(name: str, value) -> View:
    """As by DLPack, which takes ten times as long."""
    dtype = _TORCH_DTYPES.get(value.dtype)
    if dtype is None:
        dtype = _TORCH_DTYPES[value.dtype] = str(value.dtype).removeprefix("torch.")
    device = value.device
    # Kinds of tensors that are no plain memory say why they are refused.
    if device.type not in ("cpu", "cuda") or value.is_conj() or value.is_neg():
        return _dlpack_view(name, value)
    if dtype not in _ITEMSIZES:
        raise TypeError(f"{name}: expected one of {', '.join(DTYPES)}, got {dtype}")
    return View(
        value.data_ptr(),
        dtype,
        tuple(value.shape),
        value.stride(),
        device.type,
        value,
        device.index or 0 if device.type == "cuda" else 0,
    )


def _dlpack_view(name: str, value) -> View:
    refuse_meta(name, value)
    refuse_negating(name, value)  # PyTorch lends the memory of one all the same
    device_type, ordinal = (int(part) for part in value.__dlpack_device__())
    if device_type not in _DEVICES:
        raise TypeError(f"{name}: expected memory of a CPU or of CUDA, got device {device_type}")
    # -1 asks for no synchronisation, which a CPU has none of.
    options = {"stream": -1} if device_type == _CUDA else {}
    try:
        capsule = value.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a library of before DLPack 1.0
        capsule = value.__dlpack__(**options)
    # It is not consumed: the capsule frees it when it goes.
    flags = 0
    if _is_capsule(capsule, b"dltensor_versioned"):
        address = _capsule_pointer(capsule, b"dltensor_versioned")
        managed = _DLManagedTensorVersioned.from_address(address)
        tensor, flags = managed.tensor, managed.flags
    else:
        # The tensor is the first member of the managed one.
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    dtype = _DLPACK_DTYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise TypeError(
            f"{name}: expected one of {', '.join(DTYPES)}, got DLPack's type code {tensor.code}"
            f" of {tensor.bits} bits"
        )
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    else:
        strides = tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
    data = (tensor.data or 0) + tensor.byte_offset
    # Memory of the host that CUDA allocated is the host's, whatever its number.
    kind = _DEVICES[device_type]
    return View(
        data,
        dtype,
        shape,
        strides,
        kind,
        (value, capsule),
        ordinal if kind == "cuda" else 0,
        bool(flags & (_READ_ONLY | _IS_COPIED)),
    )


def argument(
    name: str, value: object, device, written: bool, dtypes: tuple[str, ...] = DTYPES
) -> View:
    """`value` as an argument of a kernel on `device`, which has `kind` and `ordinal`; errors
    begin with `name`. What the kernel writes may not be read-only."""
    found = view(name, value, dtypes)
    # An array without elements has no memory.
    if found.nbytes == 0:
        return found
    if (found.device, found.ordinal) != (device.kind, device.ordinal):
        raise ValueError(
            f"{name}: expected memory of {_device_name(device.kind, device.ordinal)}, "
            f"got {_device_name(found.device, found.ordinal)}"
        )
    if written and found.readonly:
        raise ValueError(f"{name}: expected an array that can be written, got a read-only one")
    return found


def _device_name(kind: str, ordinal: int) -> str:
    return kind if kind == "cpu" else f"{kind}:{ordinal}"
