# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a kernel through tvm-ffi, for arguments that change from call to call.

    step = Call(kernel)
    step(qkvz, ba, ..., state_pool, out)        # in the order of kernel.params
    step(qkvz=qkvz, state_pool=states, ...)     # or by name

Tensors of PyTorch and of anything else that speaks DLPack are read in C++
(python/ffi), and the launch goes to the stream that tvm-ffi holds for the device:
with tensors of PyTorch among the arguments, PyTorch's current stream, also while it
captures a graph. Needs the package apache-tvm-ffi, and not PyTorch.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np

from .arrays import DeviceArray
from .call_options import integer, refuse_meta, refuse_negating
from .runtime import GdnError, Kernel, Pool

_DLPACK_DEVICES = {"cpu": 1, "cuda": 2}
LIBRARY = "libgdn_tvm_ffi.so"


@cache
def _functions(folder: Path):
    """The functions of python/ffi/exports.cpp, from the library beside libgdnrt."""
    import tvm_ffi

    path = folder / LIBRARY
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is not there: gdn.Call needs it. In the sources tools/scripts/build.sh release"
            " gdn_tvm_ffi builds it, where the Python of the build has the package apache-tvm-ffi"
        )
    module = tvm_ffi.load_module(str(path))
    names = ("create", "destroy", "launch", "workspace_bytes")
    return {name: module[name] for name in names}


class Call:
    """A kernel that is called with tensors on its device. Not for two threads or two
    streams at once: it holds the memory that the kernel works in. A thread that calls it while
    another one launches gets INVALID_ARGUMENT. The memory is taken in the first call, and in one
    whose sizes outgrow it; make one before a graph is captured. Graphs keep the memory, so a graph
    and other calls must not run at the same time.

    Slot `null_slot` of every pool is no slot (-1: there is none). `may_overlap` allows
    dependent launches: see gdnrt_binding_allow_dependent_launch, which says when.
    Results of a sequence are the same bits in any batch if the kernel is `batch_invariant` when
    the call is made.
    Errors are GdnError with the runtime's status, TypeError for what is no tensor, and
    ValueError for memory of another device.
    """

    def __init__(self, kernel: Kernel, null_slot: int = 0, may_overlap: bool = False):
        device, null_slot = kernel._device, integer("null_slot", null_slot)
        self._ffi = _functions(device._runtime.path.parent)
        self._kernel = kernel
        self._null_slot = null_slot
        self._may_overlap = may_overlap
        self._params = kernel.params
        self._names = [param.name for param in self._params]
        self._handle = self._ffi["create"](
            device._handle.value,
            kernel._handle.value,
            _DLPACK_DEVICES[device.kind],
            device.ordinal,
            null_slot,
            may_overlap,
            kernel.batch_invariant,
        )
        self._launch = self._ffi["launch"]

    def __del__(self):
        if getattr(self, "_handle", None):
            self._ffi["destroy"](self._handle)
            self._handle = None

    def __call__(self, *tensors: object, **named: object) -> None:
        """Launches; a CPU has run when this returns. Tensors stay valid until then, or
        until the GPU has run. Arrays of NumPy and of Device.array go a slower way, and
        to the default stream."""
        if named:
            tensors = self._in_order(tensors, named)
        if len(tensors) != len(self._names):
            raise TypeError(
                f"{self._kernel.name}: expected {len(self._names)} arguments, got {len(tensors)};"
                f" they are {', '.join(self._names)}"
            )
        if "torch" in sys.modules:
            try:
                for tensor in tensors:
                    if tensor is not None and tensor.is_neg():
                        raise AttributeError
            except AttributeError:  # or some are no tensors of PyTorch
                for name, tensor in zip(self._names, tensors, strict=True):
                    refuse_negating(name, tensor)
        try:
            self._launch(self._handle, *tensors)
        except Exception as error:
            self._launch_slowly(tensors, error)

    def launch(self, *tensors: object) -> None:
        """As a call of all tensors in order, of which none is a view of PyTorch that negates:
        tvm-ffi does not say so."""
        try:
            self._launch(self._handle, *tensors)
        except Exception as error:
            self._launch_slowly(tensors, error)

    def _launch_slowly(self, tensors, error: Exception) -> None:
        """Launches what tvm-ffi does not take, or raises what `error` says."""
        if isinstance(error, RuntimeError):
            cause = getattr(error, "__tvm_ffi_error__", None)
            if cause is None:
                for name, value in zip(self._names, tensors, strict=True):
                    refuse_meta(name, value)
                raise error
            raise GdnError(cause.kind, str(error)) from None
        if not isinstance(error, TypeError | ValueError | BufferError):
            raise error
        # NumPy lends no bfloat16 through DLPack, and tvm-ffi takes nothing read-only.
        is_locked = isinstance(error, BufferError) and self._kernel._device.kind == "cpu"
        own = np.ndarray | DeviceArray
        if not is_locked and not any(isinstance(value, own) for value in tensors):
            raise error
        self._bind(tensors).launch()

    def _in_order(self, tensors: tuple, named: dict[str, object]) -> list:
        unknown = [name for name in named if name not in self._names[len(tensors) :]]
        if unknown:
            raise TypeError(f"{unknown[0]}: not a parameter, or given twice")
        return [*tensors, *(named.get(name) for name in self._names[len(tensors) :])]

    def _bind(self, tensors):
        arguments = {
            param.name: Pool(value, self._null_slot) if param.kind == "pool" else value
            for param, value in zip(self._params, tensors, strict=True)
            if value is not None
        }
        binding = self._kernel.bind(**arguments)
        binding.allow_dependent_launch(self._may_overlap)
        if binding.workspace_bytes:
            binding.set_workspace()
        return binding

    @property
    def names(self) -> list[str]:
        """Those of the kernel's parameters, in order."""
        return list(self._names)

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the device that are held for the kernel to work in."""
        return self._ffi["workspace_bytes"](self._handle)
