# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SGLang's Triton kernels of linear attention, from the package or from the files of its wheel
alone: these need little of what the rest of SGLang imports."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import torch

# Packages whose own __init__ imports what the kernels do not need.
_BARE = ("sglang", "sglang.kernels", "sglang.kernels.ops", "sglang.kernels.ops.attention")


def make_importable() -> None:
    """Afterwards modules of SGLang's kernels can be imported. Raises ImportError where there is no
    folder `sglang` on the path."""
    try:
        import sglang.srt.utils  # noqa: F401
    except ImportError:
        found = next((p for p in sys.path if (Path(p) / "sglang/version.py").is_file()), None)
        if found is None:
            raise ImportError("expected sglang, or the folder of its wheel on the path") from None
    else:
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "sglang"]:
        del sys.modules[name]
    for name in _BARE:
        _add(name).__path__ = [str(Path(found, *name.split(".")))]
    # Facts about the device, as SGLang finds them.
    has_gpu = torch.cuda.is_available()
    major, minor = torch.cuda.get_device_capability() if has_gpu else (0, 0)
    no, yes = (lambda: False), (lambda: has_gpu)
    others = dict.fromkeys(("is_cpu", "is_npu", "is_xpu", "is_hip", "is_gfx95_supported"), no)
    _add(
        "sglang.srt.utils",
        **others,
        is_cuda=yes,
        get_device_sm=lambda: 10 * major + minor,
        is_sm90_supported=lambda: major == 9,
    )
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:3])
    _add("sglang.srt.utils.common", torch_release=release)
    _add("sglang.kernels.jit.utils", is_arch_support_pdl=lambda: major >= 9)


def _add(name: str, **members: object) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(members)
    module.__spec__ = importlib.util.spec_from_loader(name, None)
    sys.modules[name] = module
    return module


def triton_kernel():
    """SGLang's own implementation of its LinearAttnKernelBase."""
    make_importable()
    from sglang.srt.layers.attention.linear.kernels.gdn_triton import TritonGDNKernel

    return TritonGDNKernel()


def triton_kda_kernel():
    """The same for Kimi Delta Attention."""
    make_importable()
    from sglang.srt.layers.attention.linear.kernels.kda_triton import TritonKDAKernel

    return TritonKDAKernel()
