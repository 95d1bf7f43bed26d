# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks gdn.integrations.transformers: small models with random weights give the tokens and the
logits of the stock functions, with padding and with beams, and train as before.

    python3 -m gdn.transformers_check --device cpu

Kernels are those of the prebuilt images, or of gdn-compile where it is installed.
"""

import argparse
import sys

import torch
from transformers import AutoModelForCausalLM, OlmoHybridConfig, Qwen3NextConfig
from transformers.models.qwen3_5 import Qwen3_5TextConfig

from .integrations import transformers as integration
from .ops_check import Check

SIZES = {
    "vocab_size": 200,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "pad_token_id": 0,
    "eos_token_id": None,
    "bos_token_id": 1,
}
EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
}


def configurations():
    return {
        "Qwen3.5": Qwen3_5TextConfig(**SIZES),
        "Qwen3-Next": Qwen3NextConfig(**SIZES, **EXPERTS),
        "OLMo-Hybrid": OlmoHybridConfig(**SIZES, linear_allow_neg_eigval=True),
    }


def run(model, tokens, mask) -> list[torch.Tensor]:
    """Logits of a prompt, greedy tokens, those of beams, and the logits of a prompt in pieces."""
    options = {"attention_mask": mask, "do_sample": False}
    with torch.no_grad():
        logits = model(tokens, attention_mask=mask).logits
        greedy = model.generate(tokens, max_new_tokens=24, **options)
        beams = model.generate(tokens, max_new_tokens=12, num_beams=3, **options)
        first = model(tokens[:1, :40], use_cache=True)
        rest = model(tokens[:1, 40:], past_key_values=first.past_key_values, use_cache=True)
    return [logits, greedy, beams, rest.logits]


def gradients_of(model, tokens, mask) -> list[torch.Tensor]:
    model.zero_grad()
    model(tokens, attention_mask=mask, labels=tokens).loss.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def check_model(check: Check, name: str, config, device: str) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval().to(device)
    tokens = torch.randint(2, 200, (2, 70), device=device)
    mask = torch.ones_like(tokens)
    mask[1, :9] = 0
    stock = run(model, tokens, mask)
    layers = integration.patch(model)
    ours = run(model, tokens, mask)
    errors = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, stock, strict=True)]
    detail = f"{layers} layers, logits apart by {errors[0]:.1e}, in pieces {errors[3]:.1e}"
    check.that(name, layers == 3 and max(errors[0], errors[3]) < 1e-4, detail)
    check.that(f"{name}: tokens", torch.equal(ours[1], stock[1]))
    check.that(f"{name}: tokens of beams", torch.equal(ours[2], stock[2]))
    gradients = gradients_of(model, tokens, mask)
    integration.unpatch(model)
    pairs = zip(gradients, gradients_of(model, tokens, mask), strict=True)
    check.that(f"{name}: gradients", all(torch.equal(a, b) for a, b in pairs))


def check_two_models(check: Check) -> None:
    """Models of one module whose strengths differ are not served by the same functions."""
    first, second = (
        AutoModelForCausalLM.from_config(OlmoHybridConfig(**SIZES, linear_allow_neg_eigval=doubled))
        for doubled in (False, True)
    )
    integration.patch(first)
    try:
        integration.patch(second)
        refusal = "nothing"
    except ValueError as error:
        refusal = str(error)
    integration.unpatch(first)
    integration.patch(second)
    integration.unpatch(second)
    check.that("two models", "linear_allow_neg_eigval False" in refusal, refusal)


def main() -> int:
    parser = argparse.ArgumentParser(prog="transformers_check", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    device = parser.parse_args().device
    check = Check()
    for name, config in configurations().items():
        check_model(check, name, config, device)
    check_two_models(check)
    print(f"{check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
