# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records activations of layers with a decay per channel from transformers' own modules, for
`gdn-run --replay` and the demo: test/data/*.safetensors. Needs PyTorch and transformers 5.24.

    python tools/scripts/record_activations.py kimi_linear test/data/kimi_linear_tiny.safetensors

A small layer with seeded weights, float32, on the CPU; a prompt, then steps of one token.
transformers has no class for Kimi K3: its layer is Kimi-Linear's with the forget gate of
GLM-5.3-Flash, which has the same bound, and an output gate of full rank.
"""

import argparse
import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from transformers import DynamicCache
from transformers.models.glm5_next import modeling_glm5_next as glm
from transformers.models.glm5_next.configuration_glm5_next import Glm5NextTextConfig
from transformers.models.kimi_linear import modeling_kimi_linear as kimi
from transformers.models.kimi_linear.configuration_kimi_linear import KimiLinearConfig

HEADS, DIM, WIDTH, HIDDEN, BOUND = 2, 128, 4, 256, -5.0
PROMPT, STEPS = 90, 6  # a whole chunk of 64 tokens and a part of one
DECODED = {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}
#: Of each model: the configuration that goes into the file, and the number that weights begin at.
CONFIGS = {
    "kimi_linear": (
        4,
        {
            "model_type": "kimi_linear",
            "linear_num_heads": HEADS,
            "linear_head_dim": DIM,
            "linear_conv_kernel_dim": WIDTH,
            **DECODED,
        },
    ),
    "kimi_k3": (
        5,
        {
            "model_type": "kimi_linear",
            "linear_attn_config": {
                "num_heads": HEADS,
                "head_dim": DIM,
                "short_conv_kernel_size": WIDTH,
                "gate_lower_bound": BOUND,
                "use_full_rank_gate": True,
                "kda_layers": [1],
                "full_attn_layers": [2],
            },
            "num_hidden_layers": 2,
        },
    ),
    "glm5_next": (
        6,
        {
            "model_type": "glm5_next_text",
            "linear_num_heads": HEADS,
            "linear_head_dim": DIM,
            "linear_conv_kernel_dim": WIDTH,
            "linear_lower_bound": BOUND,
            **DECODED,
        },
    ),
}
SHARED = {"hidden_size": HIDDEN, "hidden_act": "silu", "rms_norm_eps": 1e-5}


def glm_config() -> Glm5NextTextConfig:
    kinds = ["linear_attention", "indexed_attention"]
    sizes = {"linear_num_heads": HEADS, "linear_head_dim": DIM, "num_hidden_layers": 2}
    bound = {"linear_lower_bound": BOUND, "layer_types": kinds}
    return Glm5NextTextConfig(**SHARED, **sizes, **bound)


def make_layer(name: str) -> nn.Module:
    if name == "glm5_next":
        return glm.Glm5NextTextLinearAttention(glm_config(), 0)
    config = KimiLinearConfig(**SHARED, linear_num_heads=HEADS, linear_head_dim=DIM, **DECODED)
    layer = kimi.KimiLinearDeltaAttention(config, 0)
    if name == "kimi_k3":
        layer.forget_gate = glm.Glm5NextTextForgetGate(glm_config())
        layer.g_a_proj = nn.Identity()
        layer.g_b_proj = nn.Linear(HIDDEN, HEADS * DIM, bias=False)
    return layer


def draw_weights(layer: nn.Module, is_bounded: bool) -> None:
    """Numbers as in a trained layer: decays near one and far from it, gates that move."""
    for module in layer.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
    nn.init.normal_(layer.conv1d.weight, std=WIDTH**-0.5)
    nn.init.uniform_(layer.o_norm.weight, 0.5, 1.5)
    gate = layer.forget_gate
    nn.init.uniform_(gate.A_log, 0.0, 2.0 if not is_bounded else 1.0)
    nn.init.uniform_(gate.dt_bias, -6.0, 1.0)


class Recorder:
    """Puts what modules give into `tensors`, under the phase."""

    def __init__(self, layer: nn.Module, gate_name: str):
        self.tensors: dict[str, torch.Tensor] = {}
        self.phase = ""
        modules = {f"{n}_proj": getattr(layer, f"{n}_proj") for n in "qkvb"}
        modules |= {"f_b_proj": layer.forget_gate.f_b_proj, gate_name: layer.g_b_proj}
        for name, module in modules.items():
            module.register_forward_hook(lambda _, __, out, name=name: self.keep(name, out))
        layer.o_norm.register_forward_hook(self.keep_norm)

    def keep(self, name: str, value: torch.Tensor) -> None:
        self.tensors[f"{self.phase}.layer0.{name}"] = value.detach().clone().contiguous()

    def keep_norm(self, _, inputs, output) -> None:
        self.keep("core_pre_norm", inputs[0].reshape(-1, DIM))
        self.keep("post_norm", output.reshape(-1, DIM))

    def keep_states(self, cache) -> None:
        self.keep("conv_states", cache.get_conv_state(0, state_idx=0))
        self.keep("recurrent_states", cache.get_recurrent_state(0, state_idx=0))


@torch.no_grad()
def record(name: str) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors of a recording, and its metadata."""
    seed, config = CONFIGS[name]
    torch.manual_seed(seed)
    layer = make_layer(name).float().eval()
    draw_weights(layer, is_bounded=name != "kimi_linear")
    recorder = Recorder(layer, "g_proj" if name == "kimi_k3" else "g_b_proj")
    kinds = {"num_hidden_layers": 1, "layer_types": ["linear_attention"]}
    cache = DynamicCache(config=KimiLinearConfig(**SHARED, **kinds))
    for step in range(-1, STEPS):
        recorder.phase = "prefill" if step < 0 else f"decode{step}"
        x = torch.randn(1, PROMPT if step < 0 else 1, HIDDEN)
        layer(x, cache=cache)
        if step in (-1, 0, STEPS - 1):
            recorder.keep_states(cache)
    tensors = recorder.tensors
    for key, value in {
        "conv1d.weight": layer.conv1d.weight,
        "A_log": layer.forget_gate.A_log,
        "dt_bias": layer.forget_gate.dt_bias,
        "o_norm.weight": layer.o_norm.weight,
    }.items():
        tensors[f"weights.layer0.{key}"] = value.detach().clone()
    version = {"transformers_version": transformers.__version__}
    return tensors, {"seed": str(seed), "config": json.dumps(version | SHARED | config)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=list(CONFIGS))
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    tensors, metadata = record(arguments.model)
    save_file(tensors, arguments.output, metadata)


if __name__ == "__main__":
    main()
