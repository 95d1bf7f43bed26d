# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of a library that is not there, with the few names that a suite imports."""

from __future__ import annotations

import sys
import types


def module(name: str, **contents: object) -> types.ModuleType:
    """sys.modules[name] with these contents, in its package, which is made too."""
    made = sys.modules.get(name)
    if made is None:
        made = sys.modules[name] = types.ModuleType(name)
        made.__path__ = []
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(module(parent), last, made)
    for key, value in contents.items():
        setattr(made, key, value)
    return made


def without_cuda() -> None:
    """torch.cuda.synchronize and the like, of tests that run on a CPU instead."""
    import torch

    torch.cuda.synchronize = lambda *arguments: None
    torch.cuda.empty_cache = torch.accelerator.empty_cache = lambda: None
    # No room for tests of what does not fit into 31 bits.
    torch.cuda.mem_get_info = lambda: (0, 0)
