# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small layers of vLLM's, and their kernels for this CPU."""

import json

from gdn import Runtime
from gdn.integrations.vllm.layer_core import LayerKernels
from gdn.integrations.vllm.layer_kind import LayerKind

KIND = LayerKind(
    platform="cuda",
    key_dim=16,
    value_dim=16,
    conv_width=4,
    activation="silu",
    gate="silu",
    norm_eps=1e-6,
    layout="flat",
    io="float32",
    conv_state="float32",
    state="float32",
    norm_weight="float32",
)

#: Kimi Delta Attention.
KDA = KIND._replace(gate="sigmoid", layout="separate", norm_eps=1e-5, per_channel=True)

#: Rows of steps: (tokens before, tokens, drafts; -1 for none), see gdn.bench.vllm_setup.
STEPS = {
    "decode": [(9, 1, -1)] * 3,
    "mixed": [(9, 1, -1), (5, 1, -1), (0, 70, -1), (64, 3, -1)],
    "drafts": [(9, 3, 2), (8, 1, 0)],
    "drafts and prompts": [(9, 3, 2), (8, 2, 1), (0, 20, -1)],
    "drafts between prompts": [(0, 5, -1), (9, 3, 2), (7, 6, -1)],
}


#: Layers without kernels, of every kind: what differs, and what is said of it.
REFUSED = {
    "window": ({"conv_state": "bfloat16"}, "conv_state: expected float32, found bfloat16"),
    "weight": ({"norm_weight": "float16"}, "norm.weight: expected float32, found float16"),
    "replays": ({"replays": True}, "use_replayssm: expected False, found True"),
    "state": ({"state": "float8_e4m3fn"}, "mamba_ssm_cache_dtype: expected float32, bfloat16"),
    "drafts": ({"num_speculative_tokens": 8}, "num_speculative_tokens: expected at most 7"),
    "blocks": ({"cache_mode": "all"}, "mamba_cache_mode: expected none or align, found all"),
}


def check_refusal(kind: LayerKind, fields: dict[str, object], message: str) -> None:
    """The kind has kernels, and with other fields none."""
    assert kind.find_refusal() is None
    assert message in kind._replace(**fields).find_refusal()


def make_kernels(kind: LayerKind, build_dir, tool, folder) -> LayerKernels:
    """Compiled into `folder`; `tool` is the fixture."""
    config, path = folder / "config.json", folder / "layer.gdnk"
    config.write_text(json.dumps(kind.config()))
    names = {"deferred_writes": "defer-writes", "conv_weight": "conv-weight"}
    options = [f"--{names.get(name, name)}={value}" for name, value in kind.options().items()]
    options += [*kind.compile_options, "--for=vllm", "--target=native", "-o", path]
    done = tool("gdn-compile", "--config", config, *options)
    assert done.returncode == 0, done.stderr
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    return LayerKernels(runtime.device(), runtime.image(path), kind.entries)
