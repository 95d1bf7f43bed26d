# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of a scheduler as arrays of the host."""

import numpy as np

from ...call_options import refuse_meta


def on_host(
    name: str, value: object, dtype: type = np.int32, rank: int | None = None
) -> np.ndarray | None:
    """A row-major array of `dtype`; None stays None. Anything but integers that `dtype` holds,
    or another rank where there is one, is an error that begins with `name`: what is cut to fit
    names another slot. A tensor of a GPU is copied, which waits for the GPU: engines that have the
    numbers on the host pass those."""
    if value is None:
        return None
    if hasattr(value, "cpu"):
        refuse_meta(name, value)
        value = value.cpu().numpy()
    array = np.asarray(value)
    if rank not in (None, array.ndim):
        raise ValueError(f"{name}: expected rank {rank}, got {array.ndim}")
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    # An empty list is one of floats.
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected integers, got {array.dtype}")
    bounds = np.iinfo(dtype)
    if array.size and (array.min() < bounds.min or array.max() > bounds.max):
        worst = array.max() if array.max() > bounds.max else array.min()
        raise ValueError(f"{name}: expected {np.dtype(dtype).name}, got {worst}")
    return np.ascontiguousarray(array, dtype)


def host_attribute(
    owner: object, name: str, dtype: type = np.int32, rank: int | None = None
) -> np.ndarray | None:
    """`owner.name`, from `owner.name_cpu` where there is one."""
    for each in (f"{name}_cpu", name):
        value = getattr(owner, each, None)
        if value is not None:
            return on_host(each, value, dtype, rank)
    return None
