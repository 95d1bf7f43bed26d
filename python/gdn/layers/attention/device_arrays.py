# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New arrays beside arrays of the caller, and the stream that they are on: NumPy's, or
PyTorch's where a tensor comes in. PyTorch is never imported here."""

import sys

import numpy as np


def empty_like_rows(array, shape: tuple[int, ...]):
    """An array of the type and the device of `array`."""
    return np.empty(shape, array.dtype) if _is_numpy(array) else array.new_empty(shape)


def zeros_like_rows(array, shape: tuple[int, ...]):
    """The same, of zeros."""
    return np.zeros(shape, array.dtype) if _is_numpy(array) else array.new_zeros(shape)


def floats_beside(array, values):
    """Numbers as an array of f32 on the device of `array`."""
    if _is_numpy(array):
        return np.array(values, np.float32)
    return array.new_tensor(values, dtype=sys.modules["torch"].float32)


def as_dtype(array, dtype: str):
    """The array in a type by its name, a copy if it has another."""
    if not _is_numpy(array):
        return array.to(getattr(sys.modules["torch"], dtype))
    if dtype == "bfloat16":
        import ml_dtypes

        return array.astype(ml_dtypes.bfloat16, copy=False)
    return array.astype(dtype, copy=False)


def stream_of(array, stream: object = None) -> object:
    """`stream`, or else the one that PyTorch would use for a tensor of a GPU."""
    if stream is not None or not getattr(array, "is_cuda", False):
        return stream
    return sys.modules["torch"].cuda.current_stream(array.device)


def current_stream(stream: object = None) -> object:
    """`stream`, or else PyTorch's current one where PyTorch uses a GPU."""
    torch = sys.modules.get("torch")
    if stream is not None or torch is None or not torch.cuda.is_initialized():
        return stream
    return torch.cuda.current_stream()


def _is_numpy(array) -> bool:
    return isinstance(array, np.ndarray)
