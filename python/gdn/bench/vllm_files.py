# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's layer, metadata and Triton kernels from a folder with some of its files, on a machine
where vLLM is not installed. All other modules of vLLM are placeholders, whose names do nothing.

    python3 -m gdn.bench.vllm_files VLLM FOLDER     copies the files of a tree or wheel to FOLDER;
                                                    with --library the operators of CUDA, too
"""

import argparse
import sys
from pathlib import Path

import torch

from .placeholders import Finder, copy_files

# What is read from the folder.
FILES = (
    "vllm/model_executor/layers/mamba/checkpoint.py",
    "vllm/model_executor/layers/mamba/gdn/kimi_gdn_linear_attn.py",
    "vllm/model_executor/layers/mamba/gdn/qwen_gdn_linear_attn.py",
    "vllm/model_executor/layers/mamba/ops/causal_conv1d.py",
    "vllm/model_executor/layers/mamba/ops/gather_initial_states.py",
    "vllm/model_executor/warmup/jit_warmup.py",
    "vllm/model_executor/warmup/jit_warmup_triton_helper.py",
    *(
        f"vllm/models/kimi_k3/nvidia/ops/third_party/kda/{name}.py"
        for name in (
            "__init__",
            "chunk",
            "chunk_intra",
            "chunk_intra_token_parallel",
            "fused_recurrent",
        )
    ),
    *(
        f"vllm/third_party/flash_linear_attention/ops/{name}.py"
        for name in (
            "__init__",
            "chunk",
            "chunk_delta_h",
            "chunk_o",
            "chunk_scaled_dot_kkt",
            "cumsum",
            "fused_gdn_decode_post_conv_mtp",
            "fused_gdn_prefill_post_conv",
            "fused_recurrent",
            "fused_sigmoid_gating",
            "index",
            "kda",
            "l2norm",
            "layernorm_guard",
            "op",
            "solve_tril",
            "utils",
            "wy_fast",
        )
    ),
    "vllm/utils/math_utils.py",
    "vllm/v1/attention/backend.py",
    "vllm/v1/attention/backends/gdn_attn.py",
    "vllm/v1/attention/backends/registry.py",
    "vllm/v1/attention/backends/utils.py",
    "vllm/v1/kv_cache_interface.py",
    "vllm/v1/kv_cache_layout.py",
    "vllm/v1/kv_cache_spec_registry.py",
)
# Its operators of CUDA, which are loaded where the folder has them.
LIBRARY = "vllm/_C_stable_libtorch.abi3.so"
# A package of which nothing is called, and one that vLLM's layer of Kimi Delta Attention calls:
# without it only gdn's runs.
_UNCALLED, _CALLED = "transformers", "einops"


class Platform:
    """What the files ask of vLLM's platform."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: False

    def is_cuda(self) -> bool:
        return torch.cuda.is_available()

    is_cuda_alike = is_cuda

    def is_arch_support_pdl(self) -> bool:
        return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)


def async_tensor_h2d(data, device=None, dtype=None, out=None) -> torch.Tensor:
    """A copy on the device that the host does not wait for."""
    tensor = torch.as_tensor(data, dtype=dtype)
    if torch.cuda.is_available():
        tensor = tensor.pin_memory()
    if out is not None:
        return out.copy_(tensor, non_blocking=True)
    return tensor.to(device, non_blocking=True)


def np_to_pinned_tensor(array) -> torch.Tensor:
    """The array as a tensor in memory that a GPU can copy from."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory() if torch.cuda.is_available() else tensor


class Step:
    """The step that layers find as vLLM's context of a forward."""

    attn_metadata: dict[str, object] | None = None


def finder_of(folder: Path, given: dict[str, dict[str, object]]) -> Finder:
    return Finder(folder, given, "vllm", FILES, others=[_UNCALLED], called=[_CALLED])


def install(folder: Path) -> Step:
    """Makes the files importable under vLLM's names."""
    import logging

    import triton
    import triton.language as tl
    import triton.language.extra.libdevice as tldevice

    step = Step()
    processors = (
        torch.cuda.get_device_properties(0).multi_processor_count
        if torch.cuda.is_available()
        else 1
    )
    logger = logging.getLogger("vllm")
    logger.info_once, logger.warning_once = logger.info, logger.warning
    given = {
        "vllm.forward_context": {"get_forward_context": lambda: step},
        "vllm.logger": {"init_logger": lambda name: logger},
        "vllm.model_executor.layers.mamba.mamba_utils": {"is_conv_state_dim_first": lambda: False},
        "vllm.platforms": {"current_platform": Platform()},
        "vllm.triton_utils": {
            "HAS_TRITON": True,
            "LOG2E": 1.4426950408889634,
            "LOGE2": 0.6931471805599453,
            "tl": tl,
            "tldevice": tldevice,
            "triton": triton,
        },
        "vllm.utils.platform_utils": {"num_compute_units": lambda *_: processors},
        "vllm.utils.torch_utils": {
            "PIN_MEMORY": torch.cuda.is_available(),
            "async_tensor_h2d": async_tensor_h2d,
            "np_to_pinned_tensor": np_to_pinned_tensor,
            "get_dtype_size": lambda dtype: torch.empty(0, dtype=dtype).element_size(),
        },
    }
    sys.meta_path.insert(0, finder_of(folder, given))
    if (folder / LIBRARY).is_file():
        torch.ops.load_library(str(folder / LIBRARY))
    return step


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.vllm_files", description=__doc__)
    parser.add_argument("vllm", type=Path, help="the folder that has the folder vllm")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--library", action="store_true", help="93 MB with vLLM 0.33")
    arguments = parser.parse_args()
    files = [*FILES, *[LIBRARY] * arguments.library]
    copy_files(files, arguments.vllm, arguments.folder)


if __name__ == "__main__":
    main()
