# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What functions of arrays need of the library that the arrays are of: NumPy, or PyTorch where
a tensor comes in. PyTorch is never imported here."""

import sys
import threading
from functools import cached_property

import numpy as np

# Constants that calls read, by what they are: making them costs more than a small kernel.
_constants = threading.local()


_MOST_CONSTANTS = 256
_LARGEST = 2**31 - 1


class NumpyArrays:
    """Arrays of NumPy, on this CPU."""

    device = ("cpu", 0)
    stream = None
    capturing = False

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
        return array.astype(_numpy_type(dtype), copy=False)

    def dtype_of(self, array) -> str:
        return str(array.dtype)

    def ids(self, array):
        """Slots as i32. What no i32 holds is no slot, and must not become one."""
        return np.clip(array, -1, _LARGEST).astype(np.int32)

    def has_unit_stride(self, array) -> bool:
        """Whether the last dimension is contiguous."""
        return array.size < 2 or array.shape[-1] < 2 or array.strides[-1] == array.itemsize

    def rows_apart(self, array):
        """The array, or a copy whose last dimension is contiguous, as kernels read it."""
        return array if array.strides[-1] == array.itemsize else np.ascontiguousarray(array)

    def ready_gates(self, a, b, a_log, dt_bias):
        """The logarithms of decays and the strengths of raw gates, in f32."""
        a, b, rate, bias = (x.astype(np.float32) for x in (a, b, a_log, dt_bias))
        beta = np.exp(-np.logaddexp(np.float32(0), -b))
        return -np.exp(rate) * np.logaddexp(np.float32(0), a + bias), beta

    def fill(self, target, source) -> None:
        target[...] = source


class TorchArrays:
    """Tensors of PyTorch, on the device of one of them and its current stream. For one call."""

    def __init__(self, torch, device):
        self.torch, self._device = torch, device
        self.device = (device.type, device.index or 0)

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
            lambda options: self.torch.arange(
                start, stop, step, dtype=self._type(dtype), **options
            ),
        )

    def flags(self, count: int, value: bool):
        return self._constant(
            ("flags", count, value),
            lambda options: self.torch.full((count,), value, **options),
        )

    def floats(self, values: tuple[float, ...]):
        return self._constant(
            ("floats", values),
            # Nothing is copied from the host, which a capture refuses.
            lambda options: self.torch.cat(
                [self.torch.full((1,), x, dtype=self.torch.float32, **options) for x in values]
            ),
        )

    def _constant(self, key, make):
        """What `make` gives, kept for this thread and stream. The memory of what is made while a
        graph is captured is the graph's."""
        options = {"device": self._device}
        if self.capturing:
            return make(options)
        known = _constants.__dict__.setdefault("known", {})
        key = (self._device, self.stream, *key)
        if key not in known:
            if len(known) >= _MOST_CONSTANTS:
                known.clear()
            known[key] = make(options)
        return known[key]

    def cast(self, array, dtype: str):
        return array.to(self._type(dtype))

    def dtype_of(self, array) -> str:
        return str(array.dtype).removeprefix("torch.")

    def ids(self, array):
        if array.dtype == self.torch.int32:
            return array
        return array.clamp(-1, _LARGEST).to(self.torch.int32)

    def has_unit_stride(self, array) -> bool:
        return array.numel() < 2 or array.shape[-1] < 2 or array.stride(-1) == 1

    def rows_apart(self, array):
        return array if array.stride(-1) == 1 else array.contiguous()

    def ready_gates(self, a, b, a_log, dt_bias):
        a, b, rate, bias = (x.float() for x in (a, b, a_log, dt_bias))
        softplus = self.torch.nn.functional.softplus
        return -rate.exp() * softplus(a + bias), b.sigmoid()

    def fill(self, target, source) -> None:
        target.copy_(source)


def library_of(array) -> NumpyArrays | TorchArrays:
    """Raises TypeError for what is neither."""
    if isinstance(array, np.ndarray):
        return NumpyArrays()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return TorchArrays(torch, array.device)
    raise TypeError(
        f"expected an array of NumPy or a tensor of PyTorch, got {type(array).__name__}"
    )


def check_array(arrays, name: str, array, shape: list[int], types: tuple[str, ...] = ()) -> None:
    """Raises ValueError for another shape, or for a type that `types` lack, if there are some."""
    if list(array.shape) != shape:
        raise ValueError(f"{name}: expected the shape {shape}, got {list(array.shape)}")
    if types and (found := arrays.dtype_of(array)) not in types:
        raise ValueError(f"{name}: expected {' or '.join(types)}, got {found}")


def _numpy_type(dtype: str):
    if dtype == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(dtype)
