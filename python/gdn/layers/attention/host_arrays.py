# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of a scheduler as arrays of the host."""

import numpy as np


def on_host(value: object, dtype: type = np.int32) -> np.ndarray | None:
    """A row-major array of `dtype`; None stays None. A tensor of a GPU is copied, which
    waits for the GPU: engines that have the numbers on the host pass those."""
    if value is None:
        return None
    if hasattr(value, "cpu"):
        value = value.cpu().numpy()
    return np.ascontiguousarray(value, dtype)


def host_attribute(owner: object, name: str, dtype: type = np.int32) -> np.ndarray | None:
    """`owner.name`, from `owner.name_cpu` where there is one."""
    for each in (f"{name}_cpu", name):
        value = getattr(owner, each, None)
        if value is not None:
            return on_host(value, dtype)
    return None
