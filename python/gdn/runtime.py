# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images, devices and kernels for NumPy arrays and whatever speaks DLPack.

    runtime = Runtime()
    kernel = runtime.device().kernel(runtime.image("layer.gdnk"), "decode")
    kernel.bind(qkvz=..., state_pool=Pool(states, null_slot=0), ...).launch()

Arrays are used in place, with their strides; outputs are arrays of the caller.
bfloat16 arrays of NumPy are those of ml_dtypes. A GPU (`runtime.cuda()`) takes
CUDA tensors of PyTorch and others, and launches on the stream that it is given.

What is made with a device (code and how long it took to load, memory) goes to the
logger "gdn" of Python's logging.
"""

import ctypes as c
import logging
import os
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from . import _abi, paths
from .arrays import DTYPES, DeviceArray, argument
from .call_options import flag, integer

_KINDS = ("tensor", "pool")
_MARKS: list[_abi.Ranges | None] = []
_ACCESS = ("read", "write", "read_write")


@_abi.LogFunction
def _log(user: int | None, level: int, message: bytes):
    """A message of the runtime, of a level of gdnrt_log_level."""
    levels = (logging.INFO, logging.WARNING)
    logging.getLogger("gdn").log(levels[level], "%s", message.decode(errors="replace"))


class GdnError(RuntimeError):
    """A call of the runtime failed. `status` is the name of the status."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Pool:
    """A pool argument: states of many sequences, slot axis first.

    Sequences whose slot is negative, `null_slot` or past the end are skipped. -1
    means that no slot is null.
    """

    array: object
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
    bits: str = "rows"  # variants with the same text give a sequence the same bits


@dataclass(frozen=True)
class Code:
    """Code of an entry for one target."""

    target: str
    format: str
    features: str


class Runtime:
    """The runtime library at `path`, by default gdn.library(): that of the installed package, or
    the one that was built in the sources. Functions of arrays that get it run on devices with
    `debug_checks`; see gdnrt_cpu_options."""

    def __init__(self, path: str | Path | None = None, *, debug_checks: bool = False):
        self.path = Path(path or paths.library()).resolve()
        self.debug_checks = flag("debug_checks", debug_checks)
        self._lib = _abi.load(self.path)

    @property
    def version(self) -> str:
        return self._lib.gdnrt_version_string().decode()

    def image(self, source: str | Path | bytes) -> "Image":
        """The image in a file, or in bytes."""
        return Image(self, source)

    def device(self, num_workers: int = 1, debug_checks: bool = False) -> "Device":
        """This CPU; `num_workers` 0 means one for each hardware thread."""
        options = _abi.CpuOptions(num_workers, int(debug_checks), _log)
        return Device(self, self.create("gdnrt_device_create_cpu", c.byref(options)))

    def cuda(
        self, ordinal: int = 0, debug_checks: bool = False, driver: str | Path | None = None
    ) -> "Device":
        """GPU `ordinal`, in the context that is current, or its primary one, which is
        PyTorch's. UNSUPPORTED where there is none. `driver` is a library other than the
        system's, for tests."""
        options = _abi.CudaOptions(
            ordinal,
            int(debug_checks),
            str(driver).encode() if driver else None,
            _log,
        )
        handle = self.create("gdnrt_device_create_cuda", c.byref(options))
        return Device(self, handle, ordinal)

    def call(self, name: str, *arguments):
        """Calls a function that can fail, with an error record behind."""
        error = _abi.Error()
        try:
            status = getattr(self._lib, name)(*arguments, c.byref(error))
        except c.ArgumentError as wrong:
            raise _abi.wrong_argument(name, str(wrong)) from None
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
        if isinstance(source, (bytearray, memoryview)):
            source = bytes(source)
        if isinstance(source, bytes):
            self._bytes = source  # the image points into it
            handle = runtime.create("gdnrt_image_load_memory", source, len(source))
        else:
            path = os.fsencode(source)
            if b"\0" in path:  # where C would end it
                raise ValueError(f"image: expected a path without null characters, got {source!r}")
            handle = runtime.create("gdnrt_image_load_file", path)
        super().__init__(runtime, handle, "gdnrt_image_destroy")

    @property
    def entries(self) -> list[str]:
        lib = self._runtime._lib
        count = lib.gdnrt_image_entry_count(self._handle)
        return [
            lib.gdnrt_entry_name(lib.gdnrt_image_entry(self._handle, i)).decode()
            for i in range(count)
        ]

    def find(self, kind: str, io: str | None = None, state: str | None = None) -> str:
        """The name of the entry of a kind ("decode", ..) for a type of inputs and outputs and
        one of states ("bfloat16", ..), by default whichever there is; see gdnrt_image_find_kind."""
        for what, dtype in (("io", io), ("state", state)):
            if dtype not in (None, *DTYPES):
                raise ValueError(f"{what}: expected one of {', '.join(DTYPES)}, got {dtype!r}")
        wanted = [-1 if dtype is None else DTYPES.index(dtype) for dtype in (io, state)]
        found = self._runtime.create("gdnrt_image_find_kind", self._handle, kind.encode(), *wanted)
        return self._runtime._lib.gdnrt_entry_name(found).decode()

    def codes(self, entry: str) -> list[Code]:
        """The codes of an entry, in the order in which devices look at them."""
        lib = self._runtime._lib
        found = self._runtime.create("gdnrt_image_find_entry", self._handle, entry.encode())
        count = lib.gdnrt_entry_code_count(found)
        return [_code(self._runtime, found, i) for i in range(count)]

    def params(self, entry: str) -> list[Param]:
        """What an entry takes and gives."""
        found = self._runtime.create("gdnrt_image_find_entry", self._handle, entry.encode())
        return _params(self._runtime, found)

    def attributes(self, entry: str) -> dict[str, str]:
        """Facts that the image states about an entry."""
        lib = self._runtime._lib
        found = self._runtime.create("gdnrt_image_find_entry", self._handle, entry.encode())
        return {
            lib.gdnrt_entry_attribute_key(found, i).decode(): lib.gdnrt_entry_attribute_value(
                found, i
            ).decode()
            for i in range(lib.gdnrt_entry_attribute_count(found))
        }


class Device(_Handle):
    """A device that runs kernels."""

    def __init__(self, runtime: Runtime, handle: c.c_void_p, ordinal: int = 0):
        super().__init__(runtime, handle, "gdnrt_device_destroy")
        self.ordinal = ordinal
        info = _abi.DeviceInfo()
        runtime.call("gdnrt_device_describe", handle, c.byref(info))
        self.kind = info.kind.decode()
        """"cpu" or "cuda"."""
        self.name = info.name.decode()
        self.features = tuple(filter(None, info.features.decode().split(", ")))
        """What code may need of a CPU: "x86-64-v3", "avx512f", .."""
        self.num_workers = info.num_workers

    def kernel(self, image: Image, entry: str, code: int | None = None) -> "Kernel":
        """The kernel of an entry, ready to be bound; `code` forces one of its codes."""
        return Kernel(self, image, entry, code)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype = np.float32) -> DeviceArray:
        """Memory of the device that holds anything."""
        return DeviceArray(self, shape, dtype)

    def array(self, array: np.ndarray) -> DeviceArray:
        """A copy of an array on the device."""
        copy = DeviceArray(self, array.shape, array.dtype)
        copy.write(array)
        return copy

    def mark_ranges(
        self, push: Callable[[str], object] | None, pop: Callable[[], object] | None = None
    ) -> None:
        """Marks what is launched with the device for a profiler, from here on: for NVTX
        `device.mark_ranges(torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop)`. The names
        are those of gdnrt_device_set_ranges. None ends that."""
        ranges = None
        if push is not None:
            ranges = _abi.Ranges(
                _abi.PushFunction(lambda _, name: push(name.decode()) and None),
                _abi.PopFunction(lambda _: pop() and None),
            )
        given = None if ranges is None else c.byref(ranges)
        self._runtime.call("gdnrt_device_set_ranges", self._handle, given)
        # Kernels may outlive the device that they are of.
        _MARKS.append(ranges)

    def synchronize(self, stream: object = None) -> None:
        """Waits for what was launched on `stream`."""
        self._runtime.call("gdnrt_device_synchronize", self._handle, _stream(stream))


class Kernel(_Handle):
    """An entry on a device."""

    def __init__(self, device: Device, image: Image, entry: str, code: int | None = None):
        runtime = device._runtime
        call = "gdnrt_kernel_create" if code is None else "gdnrt_kernel_create_from_code"
        which = [] if code is None else [code]
        handle = runtime.create(call, device._handle, image._handle, entry.encode(), *which)
        super().__init__(runtime, handle, "gdnrt_kernel_destroy")
        self._image = image
        self._device = device
        #: The variant that calls take whatever its conditions; None: they choose.
        self.variant: str | None = None
        #: Whether calls give a sequence the same bits in any batch:
        #: gdnrt_binding_set_batch_invariant.
        self.batch_invariant = False

    @property
    def name(self) -> str:
        lib = self._runtime._lib
        return lib.gdnrt_entry_name(lib.gdnrt_kernel_entry(self._handle)).decode()

    @cached_property
    def params(self) -> list[Param]:
        lib = self._runtime._lib
        return _params(self._runtime, lib.gdnrt_kernel_entry(self._handle))

    @property
    def code(self) -> Code:
        """The code that the device chose."""
        lib = self._runtime._lib
        entry = lib.gdnrt_kernel_entry(self._handle)
        return _code(self._runtime, entry, lib.gdnrt_kernel_code(self._handle))

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
                    info.bits.decode(),
                )
            )
        return variants

    def bind(self, **arguments: object) -> "Binding":
        """Checks the arguments, arrays and Pools, against the entry; see
        gdnrt_kernel_bind."""
        binding = Binding(self, arguments)
        if self.variant is not None:
            binding.force_variant(self.variant)
        if self.batch_invariant:
            binding.set_batch_invariant()
        return binding

    def __call__(self, **arguments: object) -> None:
        """Binds and launches."""
        self.bind(**arguments).launch()


class Binding(_Handle):
    """Arguments of a kernel; keeps them alive. Used by one thread at a time; threads may share
    the kernel, its device and its image."""

    def __init__(self, kernel: Kernel, arguments: dict[str, object]):
        self._kernel = kernel
        self._arguments = arguments
        written = {param.name for param in kernel.params if param.access != "read"}
        named, keep = named_arguments(arguments, kernel._device, written)
        handle = kernel._runtime.create(
            "gdnrt_kernel_bind_named", kernel._handle, named, len(arguments)
        )
        super().__init__(kernel._runtime, handle, "gdnrt_binding_destroy")
        self._views = keep

    def launch(self, stream: object = None) -> None:
        """Runs the kernel: a CPU returns when it has run, a GPU earlier. `stream` is an
        address, or what has one as `cuda_stream` (PyTorch) or `ptr` (CuPy); None is the
        legacy default stream."""
        self._runtime.call("gdnrt_launch", self._handle, _stream(stream))

    def forget_arguments(self) -> None:
        """Lets go of the arrays: whoever launches sees to it that they are there."""
        self._arguments, self._views, self._workspace = {}, None, None

    def allow_dependent_launch(self, allowed: bool = True) -> None:
        """See gdnrt_binding_allow_dependent_launch, which says when this is legal."""
        self._runtime.call("gdnrt_binding_allow_dependent_launch", self._handle, int(allowed))

    @property
    def workspace_bytes(self) -> int:
        """What set_workspace has to give for the variant that suits the arguments."""
        count = c.c_uint64()
        self._runtime.call("gdnrt_binding_workspace_bytes", self._handle, c.byref(count))
        return count.value

    def set_workspace(self, memory: object = None, stream: object = None) -> None:
        """Gives launches memory to work in, bytes that are 64-byte aligned; by default new
        memory of the size they want. One launch at a time may use it. Launches follow on
        `stream`."""
        if memory is None:
            memory = self._kernel._device.empty((self.workspace_bytes,), np.uint8)
        device = self._kernel._device
        space = argument("workspace", memory, device, written=True, dtypes=("uint8",))
        if not space.is_contiguous:
            raise ValueError("workspace: expected contiguous memory")
        self._runtime.call(
            "gdnrt_binding_set_workspace",
            self._handle,
            space.data,
            space.nbytes,
            _stream(stream),
        )
        self._workspace = memory

    def force_variant(self, name: str | None) -> None:
        """Makes launches take a variant whatever its conditions; None: they choose again."""
        names = [variant.name for variant in self._kernel.variants]
        if name is not None and name not in names:
            raise ValueError(f"variant: expected one of {', '.join(names)}, got {name}")
        index = -1 if name is None else names.index(name)
        self._runtime.call("gdnrt_binding_force_variant", self._handle, index)

    def force_stage(self, index: int | None) -> None:
        """Makes launches run one stage of their variant alone; None: all. For measurements:
        see gdnrt_binding_force_stage."""
        self._runtime.call(
            "gdnrt_binding_force_stage", self._handle, -1 if index is None else index
        )

    def set_batch_invariant(self, wanted: bool = True) -> None:
        """Makes launches give a sequence the same bits in any batch, or, by default, take what is
        fastest; see gdnrt_binding_set_batch_invariant, which says what it costs."""
        self._runtime.call("gdnrt_binding_set_batch_invariant", self._handle, int(wanted))

    def expect_sequences(self, sequences: int) -> None:
        """Makes launches take the variant for so many sequences of those that `is_prefill` leaves
        to the entry; 0: for all. See gdnrt_binding_expect_sequences."""
        self._runtime.call("gdnrt_binding_expect_sequences", self._handle, sequences)

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


def named_arguments(arguments: Mapping[str, object], device: Device, written: Container[str]):
    """The C form of arguments by name, and what must live as long as they are used."""
    named = (_abi.NamedArg * max(len(arguments), 1))()
    keep = []
    for slot, (name, value) in zip(named, arguments.items(), strict=False):
        slot.name = name.encode()
        keep.append(_fill(slot.arg, name, value, device, name in written))
    return named, keep


def _params(runtime: Runtime, entry: int) -> list[Param]:
    params = []
    for i in range(runtime._lib.gdnrt_entry_param_count(entry)):
        info = _abi.ParamInfo()
        runtime.call("gdnrt_entry_param", entry, i, c.byref(info))
        params.append(
            Param(
                info.name.decode(),
                _KINDS[info.kind],
                _ACCESS[info.access],
                DTYPES[info.dtype],
                tuple(info.dims[d].decode() for d in range(info.rank)),
            )
        )
    return params


def _code(runtime: Runtime, entry: int, index: int) -> Code:
    info = _abi.CodeInfo()
    runtime.call("gdnrt_entry_code", entry, index, c.byref(info))
    return Code(info.target.decode(), info.format.decode(), info.features.decode())


def _stream(stream: object) -> int | None:
    """The address of a stream; None is the null stream."""
    for attribute in ("cuda_stream", "ptr"):
        stream = getattr(stream, attribute, stream)
    if isinstance(stream, c.c_void_p):
        stream = stream.value
    # ctypes would take a text for the address of its letters.
    return None if stream is None else integer("stream", stream) or None


def _argument(name: str, value: object, device: "Device", written: bool):
    """The C form of an argument, and what must live as long as the binding."""
    arg = _abi.Arg()
    return arg, _fill(arg, name, value, device, written)


_CODES = {name: code for code, name in enumerate(DTYPES)}


def _fill(arg: _abi.Arg, name: str, value: object, device: "Device", written: bool):
    """Sets the C form of an argument; returns what must live as long as it is used."""
    if isinstance(value, Pool):
        arg.null_slot = integer(f"{name}: null_slot", value.null_slot)
        value = value.array
    array = argument(name, value, device, written)
    rank = len(array.shape)
    dims = (c.c_int64 * (2 * rank))(*array.shape, *array.strides)
    arg.data, arg.dtype, arg.rank = array.data, _CODES[array.dtype], rank
    arg.sizes = address = c.addressof(dims)
    arg.strides = address + 8 * rank
    return array.owner, dims
