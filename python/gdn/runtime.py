# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images, devices and kernels for NumPy arrays.

    runtime = Runtime("libgdnrt.so")
    kernel = runtime.device().kernel(runtime.image("layer.gdnk"), "decode")
    kernel.bind(qkvz=..., state_pool=Pool(states, null_slot=0), ...).launch()

Arrays are used in place, with their strides; outputs are arrays of the caller.
bfloat16 arrays are those of ml_dtypes.
"""

import ctypes as c
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import _abi

_DTYPES = ("float32", "bfloat16", "float16", "int32", "int64", "bool", "float64")
_KINDS = ("tensor", "pool")
_ACCESS = ("read", "write", "read_write")


class GdnError(RuntimeError):
    """A call of the runtime failed. `status` is the name of the status."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Pool:
    """A pool argument: states of many sequences, slot axis first.

    Rows whose slot is negative, `null_slot` or past the end are skipped. -1
    means that no slot is null.
    """

    array: np.ndarray
    null_slot: int = 0


@dataclass(frozen=True)
class Param:
    """What an argument of an entry must be."""

    name: str
    kind: str
    access: str
    dtype: str
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Variant:
    """One way in which a kernel does its work, and when the device takes it."""

    name: str
    conditions: str
    stages: int
    needs_workspace: bool


class Runtime:
    """The runtime library, loaded from `path`."""

    def __init__(self, path: str | Path):
        self._lib = _abi.load(path)

    @property
    def version(self) -> str:
        return self._lib.gdnrt_version_string().decode()

    def image(self, source: str | Path | bytes) -> "Image":
        """The image in a file, or in bytes."""
        return Image(self, source)

    def device(self, num_workers: int = 1, debug_checks: bool = False) -> "Device":
        """This CPU; `num_workers` 0 means one for each hardware thread."""
        return Device(self, num_workers, debug_checks)

    def call(self, name: str, *arguments):
        """Calls a function that can fail, with an error record behind."""
        error = _abi.Error()
        status = getattr(self._lib, name)(*arguments, c.byref(error))
        if status != 0:
            raise GdnError(
                self._lib.gdnrt_status_name(status).decode(),
                error.message.decode(errors="replace"),
            )

    def create(self, name: str, *arguments) -> c.c_void_p:
        """Calls a function whose last output is a handle."""
        handle = c.c_void_p()
        self.call(name, *arguments, c.byref(handle))
        return handle


class _Handle:
    """Owns a handle of the library; `destroy` is the function that ends it."""

    def __init__(self, runtime: Runtime, handle: c.c_void_p, destroy: str):
        self._runtime = runtime
        self._handle = handle
        self._destroy = getattr(runtime._lib, destroy)

    def __del__(self):
        if getattr(self, "_handle", None):
            self._destroy(self._handle)
            self._handle = None


class Image(_Handle):
    """Kernels of one or more entries. Errors are GdnError (CORRUPT, IO_ERROR)."""

    def __init__(self, runtime: Runtime, source: str | Path | bytes):
        if isinstance(source, bytes):
            self._bytes = source  # the image points into it
            handle = runtime.create("gdnrt_image_load_memory", source, len(source))
        else:
            handle = runtime.create("gdnrt_image_load_file", str(source).encode())
        super().__init__(runtime, handle, "gdnrt_image_destroy")

    @property
    def entries(self) -> list[str]:
        lib = self._runtime._lib
        count = lib.gdnrt_image_entry_count(self._handle)
        return [
            lib.gdnrt_entry_name(lib.gdnrt_image_entry(self._handle, i)).decode()
            for i in range(count)
        ]


class Device(_Handle):
    """A device that runs kernels."""

    def __init__(self, runtime: Runtime, num_workers: int, debug_checks: bool):
        options = _abi.CpuOptions(c.sizeof(_abi.CpuOptions), num_workers, int(debug_checks))
        handle = runtime.create("gdnrt_device_create_cpu", c.byref(options))
        super().__init__(runtime, handle, "gdnrt_device_destroy")

    def kernel(self, image: Image, entry: str) -> "Kernel":
        """The kernel of an entry, ready to be bound."""
        return Kernel(self, image, entry)


class Kernel(_Handle):
    """An entry on a device."""

    def __init__(self, device: Device, image: Image, entry: str):
        runtime = device._runtime
        handle = runtime.create(
            "gdnrt_kernel_create", device._handle, image._handle, entry.encode()
        )
        super().__init__(runtime, handle, "gdnrt_kernel_destroy")
        self._image = image

    @property
    def name(self) -> str:
        lib = self._runtime._lib
        return lib.gdnrt_entry_name(lib.gdnrt_kernel_entry(self._handle)).decode()

    @property
    def params(self) -> list[Param]:
        lib = self._runtime._lib
        entry = lib.gdnrt_kernel_entry(self._handle)
        params = []
        for i in range(lib.gdnrt_entry_param_count(entry)):
            info = _abi.ParamInfo()
            self._runtime.call("gdnrt_entry_param", entry, i, c.byref(info))
            params.append(
                Param(
                    info.name.decode(),
                    _KINDS[info.kind],
                    _ACCESS[info.access],
                    _DTYPES[info.dtype],
                    tuple(info.dims[d].decode() for d in range(info.rank)),
                )
            )
        return params

    @property
    def variants(self) -> list[Variant]:
        """In order of preference; the last runs anywhere."""
        lib = self._runtime._lib
        entry, code = lib.gdnrt_kernel_entry(self._handle), lib.gdnrt_kernel_code(self._handle)
        variants = []
        for i in range(lib.gdnrt_entry_variant_count(entry, code)):
            info = _abi.VariantInfo()
            self._runtime.call("gdnrt_entry_variant", entry, code, i, c.byref(info))
            variants.append(
                Variant(
                    info.name.decode(),
                    info.conditions.decode(),
                    info.stage_count,
                    bool(info.needs_workspace),
                )
            )
        return variants

    def bind(self, **arguments: "np.ndarray | Pool") -> "Binding":
        """Checks the arguments against the entry; see gdnrt_kernel_bind."""
        return Binding(self, arguments)

    def __call__(self, **arguments: "np.ndarray | Pool") -> None:
        """Binds and launches."""
        self.bind(**arguments).launch()


class Binding(_Handle):
    """Arguments of a kernel; keeps them alive."""

    def __init__(self, kernel: Kernel, arguments: "dict[str, np.ndarray | Pool]"):
        self._kernel = kernel
        self._arguments = arguments
        named = (_abi.NamedArg * len(arguments))()
        keep = []
        for slot, (name, value) in zip(named, arguments.items(), strict=True):
            slot.name = name.encode()
            slot.arg, alive = _argument(name, value)
            keep.append(alive)
        handle = kernel._runtime.create(
            "gdnrt_kernel_bind_named", kernel._handle, named, len(arguments)
        )
        super().__init__(kernel._runtime, handle, "gdnrt_binding_destroy")

    def launch(self) -> None:
        """Runs the kernel; returns when it has run."""
        self._runtime.call("gdnrt_launch", self._handle, None)

    @property
    def workspace_bytes(self) -> int:
        """What set_workspace has to give for the variant that suits the arguments."""
        count = c.c_uint64()
        self._runtime.call("gdnrt_binding_workspace_bytes", self._handle, c.byref(count))
        return count.value

    def set_workspace(self, memory: np.ndarray | None = None) -> None:
        """Gives launches memory to work in, 64-byte aligned; by default new memory of the
        size they want. One launch at a time may use it."""
        if memory is None:
            count = self.workspace_bytes
            raw = np.empty(count + 64, np.uint8)
            start = -raw.ctypes.data % 64
            memory = raw[start : start + count]
        if not memory.flags.c_contiguous:
            raise ValueError("workspace: expected contiguous memory")
        self._runtime.call(
            "gdnrt_binding_set_workspace", self._handle, memory.ctypes.data, memory.nbytes
        )
        self._workspace = memory

    def force_variant(self, name: str | None) -> None:
        """Makes launches take a variant whatever its conditions; None: they choose again."""
        names = [variant.name for variant in self._kernel.variants]
        if name is not None and name not in names:
            raise ValueError(f"variant: expected one of {', '.join(names)}, got {name}")
        index = -1 if name is None else names.index(name)
        self._runtime.call("gdnrt_binding_force_variant", self._handle, index)

    @property
    def variant(self) -> str:
        """The variant that a launch takes as things are."""
        lib = self._runtime._lib
        return self._kernel.variants[lib.gdnrt_binding_variant(self._handle)].name

    def symbol(self, name: str) -> int:
        """The value that the arguments' sizes gave to a symbol."""
        value = c.c_int64()
        self._runtime.call("gdnrt_binding_symbol", self._handle, name.encode(), c.byref(value))
        return value.value


def _argument(name: str, value: "np.ndarray | Pool"):
    """The C form of an argument, and what must live as long as the call."""
    null_slot = 0
    array = value
    if isinstance(value, Pool):
        array, null_slot = value.array, value.null_slot
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: expected a NumPy array, got {type(array).__name__}")
    if array.dtype.name not in _DTYPES:
        raise TypeError(f"{name}: expected one of {', '.join(_DTYPES)}, got {array.dtype.name}")
    if any(stride % array.itemsize for stride in array.strides):
        raise ValueError(f"{name}: expected strides in whole elements, got {array.strides} bytes")
    sizes = (c.c_int64 * array.ndim)(*array.shape)
    strides = (c.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
    arg = _abi.Arg(
        array.ctypes.data,
        _DTYPES.index(array.dtype.name),
        array.ndim,
        c.cast(sizes, c.POINTER(c.c_int64)),
        c.cast(strides, c.POINTER(c.c_int64)),
        null_slot,
    )
    return arg, (sizes, strides)
