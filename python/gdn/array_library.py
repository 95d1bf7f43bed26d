# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What functions of arrays need of the library that the arrays are of: NumPy, or PyTorch where
a tensor comes in. PyTorch is never imported here."""

import sys
import threading
from functools import cache, cached_property

import numpy as np

from .arrays import view
from .call_options import refuse_negating
from .devices import device_of
from .pool_states import CudaMemory
from .runtime import Runtime

# Constants that calls read, by what they are: making them costs more than a small kernel.
_constants = threading.local()


_MOST_CONSTANTS = 256
_LARGEST = 2**31 - 1
# Below it softplus is exp to f32 accuracy, and their factor may be infinite where it is 0.
SMALL_GATE = -17.0


class NumpyArrays:
    """Arrays of NumPy, on this CPU."""

    device = ("cpu", 0)
    stream = None
    capturing = False
    xp = np

    def check(self, name: str, array) -> None:
        """Raises TypeError for what is no array of this library, ValueError for one on another
        device, and for one that does not hold real numbers."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name}: expected an array of NumPy, got {type(array).__name__}")
        if array.dtype.kind in "cmMOSUT":
            raise ValueError(f"{name}: expected real numbers, got {array.dtype}")

    def copy(self, array):
        return array.copy()

    def empty(self, shape, dtype: str):
        return np.empty(shape, _numpy_type(dtype))

    def zeros(self, shape, dtype: str):
        return np.zeros(shape, _numpy_type(dtype))

    def numbers(self, values: range, dtype: str):
        """An array that nobody writes."""
        return np.asarray(values, _numpy_type(dtype))

    def flags(self, count: int, value: bool):
        """Flags that nobody writes."""
        return np.full(count, value)

    def floats(self, values: tuple[float, ...]):
        """Numbers of f32 that nobody writes."""
        return np.asarray(values, np.float32)

    def cast(self, array, dtype: str):
        with np.errstate(over="ignore"):  # rows of padding may be anything
            return array.astype(_numpy_type(dtype), copy=False)

    def dtype_of(self, array) -> str:
        return _name_of(array.dtype)

    def ids(self, array):
        """Slots as i32. What no i32 holds is no slot, and must not become one."""
        return np.clip(array, -1, _LARGEST).astype(np.int32)

    def has_unit_stride(self, array) -> bool:
        """Whether the last dimension is contiguous."""
        return array.size < 2 or array.shape[-1] < 2 or array.strides[-1] == array.itemsize

    def state_order(self, array) -> str | None:
        """How states [.., dv, dk] lie in memory: "vk" where dk is contiguous, "kv" where dv is, or
        None."""
        if self.has_unit_stride(array):
            return "vk"
        return "kv" if self.has_unit_stride(array.swapaxes(-1, -2)) else None

    def is_apart(self, array) -> bool:
        """Whether no two elements are in one place."""
        return _elements_apart(array.shape, array.strides)

    def can_be_pool(self, array) -> bool:
        """Whether kernels take it as states: it may be written, each element for itself."""
        return array.flags.writeable and self.is_apart(array)

    def unlocked(self, array):
        """States for an entry that only reads them, though its parameter is one that others
        write."""
        return array if array.flags.writeable else view("states", array)._replace(readonly=False)

    def rows_apart(self, array):
        """The array, or a copy whose last dimension is contiguous, as kernels read it."""
        return array if array.strides[-1] == array.itemsize else np.ascontiguousarray(array)

    def ready_gates(self, a, b, a_log, dt_bias, bound: float | None = None):
        """The logarithms of decays, of heads or of channels, and the strengths of raw gates, in
        f32; docs/spec/gates.md has the edge cases."""
        with np.errstate(all="ignore"):  # rows of padding may be anything
            a, b, rate, bias = (x.astype(np.float32) for x in (a, b, a_log, dt_bias))
            u, rate = a + bias, rate[:, None] if a.ndim == 3 else rate
            beta = np.exp(-np.logaddexp(np.float32(0), -b))
            if bound is not None:
                scaled = np.minimum(np.exp(rate), np.finfo(np.float32).max) * u
                return np.float32(bound) * np.exp(-np.logaddexp(np.float32(0), -scaled)), beta
            decay = np.exp(rate) * np.logaddexp(np.float32(0), u)
            return -np.where(u < SMALL_GATE, np.exp(rate + u), decay), beta

    def fill(self, target, source) -> None:
        target[...] = source

    def address(self, array) -> int:
        return array.ctypes.data

    def place(self, array) -> tuple:
        """What two arrays have in common that are the same memory."""
        return array.ctypes.data, array.shape, array.strides

    def as_bytes(self, array):
        return array.view(np.uint8)

    def in_place(self, array):
        """An array of this library on memory of a pool."""
        return array

    def stack(self, arrays: list):
        return np.stack(arrays)


class TorchArrays:
    """Tensors of PyTorch, on the device of one of them and its current stream. For one call."""

    def __init__(self, torch, device, runtime: Runtime | None):
        self.torch, self._device, self._runtime = torch, device, runtime
        self.device = (device.type, device.index or 0)
        if device.type != "cuda":  # asked for in each call
            self.stream, self.capturing = None, False

    @property
    def xp(self):
        """The module with the functions that both libraries have."""
        return self.torch

    def check(self, name: str, array) -> None:
        """As NumpyArrays.check. RuntimeError for a tensor whose gradient would be missing."""
        if not isinstance(array, self.torch.Tensor):
            raise TypeError(f"{name}: expected a tensor of PyTorch, got {type(array).__name__}")
        if array.device != self._device:
            raise ValueError(
                f"{name}: expected a tensor on {self._device}, got one on {array.device}"
            )
        if array.layout is not self.torch.strided or array.is_complex():
            found = array.dtype if array.is_complex() else array.layout
            raise ValueError(f"{name}: expected a dense tensor of real numbers, got one of {found}")
        refuse_negating(name, array)
        if array.requires_grad and self.torch.is_grad_enabled():
            raise RuntimeError(
                f"{name}: expected no gradient (torch.no_grad()), for there is no backward, got a"
                " tensor that requires one"
            )

    def copy(self, array):
        return array.clone()

    @cached_property
    def stream(self):
        if self._device.type != "cuda":
            return None
        return self.torch.cuda.current_stream(self._device).cuda_stream

    @cached_property
    def capturing(self) -> bool:
        return self._device.type == "cuda" and self.torch.cuda.is_current_stream_capturing()

    def _type(self, dtype: str):
        return getattr(self.torch, dtype)

    def empty(self, shape, dtype: str):
        return self.torch.empty(shape, dtype=self._type(dtype), device=self._device)

    def zeros(self, shape, dtype: str):
        return self.torch.zeros(shape, dtype=self._type(dtype), device=self._device)

    def numbers(self, values: range, dtype: str):
        start, stop, step = values.start, values.stop, values.step
        return self._constant(
            (start, stop, step, dtype),
            lambda: np.arange(start, stop, step, dtype),
            lambda: self.torch.arange(
                start, stop, step, dtype=self._type(dtype), device=self._device
            ),
        )

    def flags(self, count: int, value: bool):
        return self._constant(
            ("flags", count, value),
            lambda: np.full(count, value),
            lambda: self.torch.full((count,), value, device=self._device),
        )

    def floats(self, values: tuple[float, ...]):
        return self._constant(
            ("floats", values),
            lambda: np.asarray(values, np.float32),
            lambda: self.torch.cat(
                [
                    self.torch.full((1,), x, dtype=self.torch.float32, device=self._device)
                    for x in values
                ]
            ),
        )

    def _constant(self, key, values, kernels):
        """`values` on the device, kept for this thread. On a GPU they are in memory of the
        runtime: PyTorch may be taking its own from the pool of a graph that it is about to
        capture, whose owner knows all that is in it. A capture refuses copies from the host;
        there `kernels` make them, in memory that is the graph's."""
        if self.capturing:
            return kernels()
        known = _constants.__dict__.setdefault("known", {})
        key = (self._device, *key)
        if key not in known:
            if len(known) >= _MOST_CONSTANTS:
                known.clear()
            known[key] = self._on_device(values())
        return known[key]

    def _on_device(self, values: np.ndarray):
        if self._device.type != "cuda" or values.size == 0:
            return self.torch.as_tensor(values, device=self._device)
        memory = device_of(self.device, self._runtime).array(values)
        return self.torch.as_tensor(memory, device=self._device)

    def cast(self, array, dtype: str):
        return array.to(self._type(dtype))

    def dtype_of(self, array) -> str:
        return str(array.dtype).removeprefix("torch.")

    def ids(self, array):
        if array.dtype == self.torch.int32:
            return array
        # Types of 8 and 16 bits have no number to clamp to.
        return array.long().clamp(-1, _LARGEST).to(self.torch.int32)

    def has_unit_stride(self, array) -> bool:
        return array.numel() < 2 or array.shape[-1] < 2 or array.stride(-1) == 1

    def state_order(self, array) -> str | None:
        if self.has_unit_stride(array):
            return "vk"
        return "kv" if self.has_unit_stride(array.mT) else None

    def is_apart(self, array) -> bool:
        return _elements_apart(array.shape, array.stride())

    def can_be_pool(self, array) -> bool:
        return self.is_apart(array)

    def unlocked(self, array):
        return array

    def rows_apart(self, array):
        return array if array.stride(-1) == 1 else array.contiguous()

    def ready_gates(self, a, b, a_log, dt_bias, bound: float | None = None):
        a, b, rate, bias = (x.float() for x in (a, b, a_log, dt_bias))
        u, rate = a + bias, rate[:, None] if a.dim() == 3 else rate
        if bound is not None:
            most = self.torch.finfo(self.torch.float32).max
            return bound * (rate.exp().clamp(max=most) * u).sigmoid(), b.sigmoid()
        softplus = self.torch.nn.functional.softplus
        small = (rate + u).exp_()
        decay = self.torch.where(u < SMALL_GATE, small, softplus(u).mul_(rate.exp()))
        return decay.neg_(), b.sigmoid()

    def fill(self, target, source) -> None:
        target.copy_(source)

    def address(self, array) -> int:
        return array.data_ptr()

    def place(self, array) -> tuple:
        return array.data_ptr(), tuple(array.shape), array.stride()

    def as_bytes(self, array):
        return array.view(self.torch.uint8)

    def in_place(self, array):
        if isinstance(array, self.torch.Tensor):
            return array
        is_bfloat16 = str(array.dtype) == "bfloat16"
        if isinstance(array, np.ndarray):
            tensor = self.torch.from_numpy(array.view(np.int16) if is_bfloat16 else array)
        else:
            dtype = np.dtype("int16" if is_bfloat16 else array.dtype)
            memory = CudaMemory(array, dtype.str, dtype.itemsize)
            tensor = self.torch.as_tensor(memory, device=self._device)
        return tensor.view(self.torch.bfloat16) if is_bfloat16 else tensor

    def stack(self, arrays: list):
        return self.torch.stack(arrays)


def _elements_apart(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether no two elements are in one place, as views that repeat some have it."""
    if 0 in shape:
        return True
    reach = 0
    pairs = zip(map(abs, strides), shape, strict=True)
    for stride, size in sorted(pair for pair in pairs if pair[1] > 1):
        if stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


def library_of(
    array, runtime: Runtime | None = None, name: str = "array"
) -> NumpyArrays | TorchArrays:
    """The library of an array, and its device, which is that of `runtime` where kernels of it
    run. Raises TypeError for what is neither, ValueError for a device that runs no kernels."""
    if isinstance(array, np.ndarray):
        return NumpyArrays()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        if array.device.type not in ("cpu", "cuda"):
            raise ValueError(
                f"{name}: expected a tensor of a CPU or of CUDA, got one on {array.device}"
            )
        return TorchArrays(torch, array.device, runtime)
    raise TypeError(
        f"{name}: expected an array of NumPy or a tensor of PyTorch, got {type(array).__name__}"
    )


def array_of(arrays, values, dtype: str):
    """Values of the host in a new array of a library."""
    values = np.array(values, _numpy_type(dtype))
    made = arrays.empty(values.shape, dtype)
    arrays.fill(made, arrays.xp.asarray(values))
    return made


def check_array(arrays, name: str, array, shape: list[int], types: tuple[str, ...] = ()) -> None:
    """Raises ValueError for another shape, or for a type that `types` lack, if there are some, and
    as the library's own check does."""
    arrays.check(name, array)
    check_form(arrays, name, array, shape, types)


def check_form(arrays, name: str, array, shape: list[int], types: tuple[str, ...] = ()) -> None:
    """The same of an array that the library has checked."""
    if list(array.shape) != shape:
        raise ValueError(f"{name}: expected the shape {shape}, got {list(array.shape)}")
    if types and (found := arrays.dtype_of(array)) not in types:
        raise ValueError(f"{name}: expected {' or '.join(types)}, got {found}")


def check_written(arrays, name: str, array) -> None:
    """Raises ValueError for an array that a kernel cannot write."""
    if not arrays.can_be_pool(array):
        raise ValueError(
            f"{name}: expected an array that can be written, each element for itself, got one"
            " that is read-only or repeats some"
        )


def check_starts(arrays, cu_seqlens, tokens: int) -> int:
    """How many sequences starts [N + 1] are of. Raises ValueError for another shape or type and, on
    a CPU, for starts that are out of order or behind the tokens."""
    check_count(tokens)
    arrays.check("cu_seqlens", cu_seqlens)
    if len(cu_seqlens.shape) != 1 or cu_seqlens.shape[0] < 1:
        raise ValueError(f"cu_seqlens: expected the shape [N + 1], got {list(cu_seqlens.shape)}")
    if "int" not in (found := arrays.dtype_of(cu_seqlens)):
        raise ValueError(f"cu_seqlens: expected integers, got {found}")
    check_order(arrays, cu_seqlens, tokens)
    return int(cu_seqlens.shape[0]) - 1


def check_count(tokens: int) -> None:
    """Raises ValueError for more tokens than starts of i32, which kernels read, can say."""
    if tokens > _LARGEST:
        raise ValueError(f"tokens: expected at most {_LARGEST} in a call, got {tokens}")


def check_order(arrays, cu_seqlens, tokens: int) -> None:
    """As check_starts, of starts whose shape and type are right."""
    if arrays.device[0] != "cpu":
        return
    starts = np.asarray(cu_seqlens)
    if starts[0] < 0 or starts[-1] > tokens or (starts[1:] < starts[:-1]).any():
        least = 0
        for n, start in enumerate(starts.tolist()):
            if not least <= start <= tokens:
                raise ValueError(
                    f"cu_seqlens: expected element {n} from {least} to {tokens}, got {start}"
                )
            least = start


# NumPy makes the names of its types in Python, and finds types by names that way.
_name_of = cache(str)


@cache
def _numpy_type(dtype: str):
    if dtype == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(dtype)
