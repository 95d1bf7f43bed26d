# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SGLang's layer of linear attention, its backend, metadata and Triton kernels from a folder with
some of its files, on a machine where SGLang is not installed. Its other modules are placeholders,
whose names do nothing.

    python3 -m gdn.bench.sglang_files SGLANG FOLDER     copies the files of an unpacked wheel to
                                                        FOLDER
"""

import argparse
import sys
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace

import torch

from .peers.sglang import modules_of
from .placeholders import Finder, copy_files

#: Of the files.
VERSION = "0.5.23"
_ATTENTION = "sglang/srt/layers/attention"
# What is read from the folder.
FILES = (
    *(
        f"sglang/kernels/ops/attention/fla/{name}.py"
        for name in (
            "chunk_delta_h",
            "chunk_intra",
            "chunk_intra_token_parallel",
            "cumsum",
            "fused_norm_gate",
            "fused_recurrent",
            "index",
            "kda",
            "l2norm",
            "op",
            "utils",
            "wy_fast",
        )
    ),
    *(
        f"sglang/kernels/ops/attention/linear/{name}.py"
        for name in (
            "fused_kda_conv_recurrent_verify",
            "fused_recurrent_linear_replayssm",
            "fused_sigmoid_gating_recurrent",
        )
    ),
    "sglang/kernels/ops/mamba/causal_conv1d_triton.py",
    f"{_ATTENTION}/base_attn_backend.py",
    f"{_ATTENTION}/hybrid_linear_attn_backend.py",
    f"{_ATTENTION}/linear/kda_backend.py",
    f"{_ATTENTION}/linear/kernels/kda_triton.py",
    f"{_ATTENTION}/linear/kernels/kernel_backend.py",
    f"{_ATTENTION}/linear/utils.py",
    f"{_ATTENTION}/mamba/mamba2_metadata.py",
    f"{_ATTENTION}/mamba/prefill_track_metadata.py",
    "sglang/srt/layers/radix_linear_attention.py",
    "sglang/srt/model_executor/forward_batch_info.py",
)


class Server:
    """What SGLang's processes ask for: options, and the backend of a step."""

    def __init__(self):
        #: Of --linear-attn-backend.
        self.backend = "triton"
        #: Whether its kernel for drafts that has the convolution, too, may run
        #: (SGLANG_OPT_FUSED_KDA_VERIFY).
        self.fused_verify = False
        #: Of layers (get_attn_backend).
        self.attention = None

    def execution(self) -> SimpleNamespace:
        mamba = SimpleNamespace(
            linear_attn_backend=self.backend,
            linear_attn_decode_backend=None,
            linear_attn_prefill_backend=None,
            linear_attn_verify_backend=None,
            enable_mamba_extra_buffer=True,
            enable_linear_replayssm_spec=False,
            mamba_track_interval=64,
        )
        return SimpleNamespace(
            mamba=mamba,
            deterministic=SimpleNamespace(enable_deterministic_inference=False),
            overlap=SimpleNamespace(enable_two_batch_overlap=False),
        )

    def __getattr__(self, name: str) -> SimpleNamespace:
        """Of environ.envs: variables that are not set."""
        if not name.startswith("SGLANG_"):
            raise AttributeError(name)
        known = {
            "SGLANG_OPT_FUSED_KDA_VERIFY": lambda: self.fused_verify,
            "SGLANG_KDA_PREFILL_GRAPH_MAX_SEQS": lambda: 128,
        }
        return SimpleNamespace(get=known.get(name, lambda: False))


def modules_for(server: Server, folder: Path) -> dict[str, dict[str, object]]:
    """What stands in for modules that are asked for more than a name."""
    given = modules_of(folder)
    common = given["sglang.srt.utils.common"]
    common |= {name: given["sglang.srt.utils"][name] for name in ("is_npu", "is_gfx95_supported")}
    common["get_eager_max_batch_size"] = lambda size: size
    given["sglang.srt.utils"]["is_pin_memory_available"] = lambda *_: torch.cuda.is_available()
    memory = SimpleNamespace(disable_radix_cache=False, enable_unified_memory=False)
    speculation = SimpleNamespace(speculative_eagle_topk=1, speculative_algorithm="EAGLE")
    context = {
        "get_exec": server.execution,
        "get_memory": lambda: memory,
        "get_spec": lambda: speculation,
        "get_disagg": lambda: SimpleNamespace(disaggregation_mode="null"),
        "get_platform": lambda: SimpleNamespace(is_sm90=True, is_sm100=False),
        "mamba_cache_chunk_size": lambda: 64,
    }
    return given | {
        "sglang.srt.environ": {"envs": server},
        "sglang.srt.runtime_context": context,
        "sglang.srt.model_executor.forward_context": {"get_attn_backend": lambda: server.attention},
        # A base of classes, which takes options.
        "msgspec": {"Struct": _Struct},
        "sglang.srt.speculative.spec_info": {"SpecInputType": IntEnum("SpecInputType", "NONE")},
    }


class _Struct:
    def __init_subclass__(cls, **options):
        super().__init_subclass__()

    def __init__(self, **members):
        self.__dict__.update(members)


def finder_of(server: Server, folder: Path) -> Finder:
    given = modules_for(server, folder)
    return Finder(folder, given, "sglang", FILES, called=["msgspec"])


def install(folder: Path) -> Server:
    """Makes the files importable under SGLang's names."""
    server = Server()
    sys.meta_path.insert(0, finder_of(server, folder))
    return server


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.sglang_files", description=__doc__)
    parser.add_argument("sglang", type=Path, help="the folder that has the folder sglang")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    copy_files(FILES, arguments.sglang, arguments.folder)


if __name__ == "__main__":
    main()
