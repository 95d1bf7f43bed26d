# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn's functions in causal-conv1d's package. Its references are the suite's own; its compiled
functions and Triton are not needed."""

import importlib

from .modules import module, without_cuda


def install(device: str) -> None:
    from gdn.ops import causal_conv1d as ours

    compiled = ("causal_conv1d_fwd_function", "causal_conv1d_bwd_function")
    compiled += ("causal_conv1d_update_function",)
    package = module("causal_conv1d")
    package.__path__ = [str(_folder())]
    module("causal_conv1d.cpp_functions", **dict.fromkeys(compiled))
    interface = importlib.import_module("causal_conv1d.causal_conv1d_interface")
    states = importlib.import_module("causal_conv1d.causal_conv1d_varlen")
    interface.causal_conv1d_fn = ours.causal_conv1d_fn
    interface.causal_conv1d_update = ours.causal_conv1d_update
    states.causal_conv1d_varlen_states = ours.causal_conv1d_varlen_states
    if device == "cpu":
        without_cuda()


def _folder():
    """Where the package lies, on sys.path."""
    import sys
    from pathlib import Path

    places = [Path(entry) / "causal_conv1d" for entry in sys.path]
    return next(place for place in places if (place / "causal_conv1d_interface.py").exists())
