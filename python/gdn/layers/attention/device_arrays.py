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


def stream_of(array, stream: object = None) -> object:
    """`stream`, or else the one that PyTorch would use for a tensor of a GPU."""
    if stream is not None or not getattr(array, "is_cuda", False):
        return stream
    return sys.modules["torch"].cuda.current_stream(array.device)


def _is_numpy(array) -> bool:
    return isinstance(array, np.ndarray)
