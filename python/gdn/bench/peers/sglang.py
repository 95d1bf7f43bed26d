# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SGLang's kernels of linear attention, in Triton and, for decode of Kimi Delta Attention, in CUDA
(which takes nvcc and the package apache-tvm-ffi), from the package or from the files of its wheel
alone: these need little of what the rest of SGLang imports."""

from __future__ import annotations

import functools
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
    for name, members in modules_of(found).items():
        _add(name, **members)


def modules_of(folder: str | Path) -> dict[str, dict[str, object]]:
    """What kernels ask of other modules of SGLang, whose folder is in `folder`: facts about the
    device, as SGLang finds them."""
    has_gpu = torch.cuda.is_available()
    major, minor = torch.cuda.get_device_capability() if has_gpu else (0, 0)
    no, yes = (lambda: False), (lambda: has_gpu)
    others = ("is_cpu", "is_npu", "is_xpu", "is_hip", "is_gfx95_supported", "cpu_has_amx_support")
    utils = dict.fromkeys(others, no) | {
        "cdiv": lambda a, b: -(a // -b),
        "next_power_of_2": lambda n: 1 << max(n - 1, 0).bit_length(),
        "is_cuda": yes,
        "get_device_sm": lambda: 10 * major + minor,
        "is_sm90_supported": lambda: major == 9,
    }
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:3])
    jit = {
        "is_arch_support_pdl": lambda: major >= 9,
        "is_hip_runtime": no,
        "get_jit_cuda_arch": lambda: types.SimpleNamespace(major=major, minor=minor),
        "cache_once": functools.cache,
        "make_cpp_args": lambda *values: _CppArguments(str(value).lower() for value in values),
        "load_jit": functools.partial(_load_jit, Path(folder, "sglang", "kernels", "jit")),
    }
    return {
        "sglang.srt.utils": utils,
        "sglang.srt.utils.common": {"torch_release": release},
        "sglang.kernels.jit.utils": jit,
    }


class _CppArguments(list):
    """Of a template."""

    def __str__(self) -> str:
        return ", ".join(self)


def _load_jit(
    folder: Path,
    name: str,
    *_arguments: str,
    cuda_files: list[str],
    cuda_wrappers: list[tuple[str, str]],
    extra_cuda_cflags: list[str],
):
    """A module of kernels in CUDA, as SGLang compiles it."""
    import tvm_ffi.cpp

    headers = ["tvm/ffi/container/tensor.h", "tvm/ffi/function.h"]
    lines = [f"#include <{header}>" for header in headers]
    lines += [f'#include "{folder / "csrc" / file}"' for file in cuda_files]
    lines += [
        f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({export}, (sglang::{function}));"
        for export, function in cuda_wrappers
    ]
    major, minor = torch.cuda.get_device_capability()
    flags = ["-std=c++20", f"-DSGL_CUDA_ARCH={100 * major + 10 * minor}"]
    return tvm_ffi.cpp.load_inline(
        name,
        cuda_sources="\n".join(lines),
        extra_cuda_cflags=[*flags, "--expt-relaxed-constexpr", *extra_cuda_cflags],
        extra_include_paths=[str(folder / "include")],
    )


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
