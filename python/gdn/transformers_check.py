# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks gdn.integrations.transformers: small models with random weights give the tokens and the
logits of the stock layers, with padding, beams, prompts in pieces, static caches and graphs, and
train as before.

    python3 -m gdn.transformers_check --device cpu

Kernels are those of the prebuilt images, or of gdn-compile where it is installed.
"""

import argparse
import sys
from functools import partial

import torch
import transformers
from transformers import AutoModelForCausalLM, OlmoHybridConfig, Qwen3NextConfig, StaticCache
from transformers.models.qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5_moe import Qwen3_5MoeTextConfig

from .integrations import kernels_layers
from .integrations import transformers as integration
from .ops import layer as operator
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
LAYERS = 3


def configurations():
    found = {
        "Qwen3.5": Qwen3_5TextConfig(**SIZES),
        "Qwen3.5-MoE": Qwen3_5MoeTextConfig(**SIZES, **EXPERTS),
        "Qwen3-Next": Qwen3NextConfig(**SIZES, **EXPERTS),
        "OLMo-Hybrid": OlmoHybridConfig(**SIZES, linear_allow_neg_eigval=True),
    }
    if hasattr(transformers, "KimiLinearConfig"):
        found["Kimi-Linear"] = kimi_configuration()
    return found


def kimi_configuration():
    """Its names of sizes are its own."""
    others = ("linear_", "head_dim", "num_key_value_heads")
    common = {name: size for name, size in SIZES.items() if not name.startswith(others)}
    return transformers.KimiLinearConfig(
        **common,
        linear_num_heads=4,
        linear_head_dim=32,
        kv_lora_rank=32,
        qk_nope_head_dim=32,
        qk_rope_head_dim=16,
        v_head_dim=32,
        num_local_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=64,
    )


class Counter:
    """How many layers have run as a whole."""

    def __init__(self):
        self.count, self._run = 0, operator.run_layer
        operator.run_layer = self._counted

    def _counted(self, *arguments, **options):
        self.count += 1
        return self._run(*arguments, **options)

    def end(self) -> int:
        operator.run_layer = self._run
        return self.count


@torch.no_grad()
def tokens_of(model, tokens, mask) -> dict[str, torch.Tensor]:
    """Greedy tokens, by how they are made."""
    generate = partial(model.generate, tokens, attention_mask=mask, do_sample=False)
    return {
        "tokens": generate(max_new_tokens=16),
        "tokens of beams": generate(max_new_tokens=8, num_beams=3),
        "tokens with a static cache": generate(max_new_tokens=8, cache_implementation="static"),
    }


@torch.no_grad()
def logits_of(model, tokens, mask) -> dict[str, torch.Tensor]:
    """Logits of prompts that are padded, and of one in pieces, the last of a token."""
    found = {"padded": model(tokens, attention_mask=mask).logits}
    cache = model(tokens[:1, :40], use_cache=True).past_key_values
    for first, last in ((40, 43), (43, 69), (69, 70)):
        piece = model(tokens[:1, first:last], past_key_values=cache, use_cache=True)
        found[f"piece from {first}"] = piece.logits
    # Padding within: what comes behind a cached prompt is padded on the left.
    cache = model(tokens[:, :20], attention_mask=mask[:, :20], use_cache=True).past_key_values
    inner = mask[:, :50].clone()
    inner[0, 20:26] = 0
    behind = model(tokens[:, 20:50], attention_mask=inner, past_key_values=cache)
    found["padded behind a prompt"] = behind.logits
    return found


def gradients_of(model, tokens, mask) -> list[torch.Tensor]:
    model.zero_grad()
    model(tokens, attention_mask=mask, labels=tokens).loss.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def apart(got: torch.Tensor, want: torch.Tensor) -> float:
    return float((got - want).abs().max() / want.abs().max())


def check_model(check: Check, name: str, model, tokens, mask) -> None:
    integration.unpatch(model)
    stock_tokens, stock_logits = tokens_of(model, tokens, mask), logits_of(model, tokens, mask)
    check.that(f"{name}: {LAYERS} layers", integration.patch(model) == LAYERS)
    counter = Counter()
    for case, found in logits_of(model, tokens, mask).items():
        error = apart(found, stock_logits[case])
        check.that(f"{name}: {case}", error < 1e-4, f"apart by {error:.1e}")
    for case, found in tokens_of(model, tokens, mask).items():
        check.that(f"{name}: {case}", torch.equal(found, stock_tokens[case]))
    check.that(f"{name}: as whole layers", counter.end() > 0)


@torch.no_grad()
def check_changes_of_hands(check: Check, name: str, model, tokens) -> None:
    """A cache that one of both has made is gone on with by the other."""
    integration.unpatch(model)
    stock = model(tokens[:, :41]).logits[:, -1]
    ours, theirs = integration.patch, integration.unpatch
    for order, first, second in (
        ("gdn, then stock", ours, theirs),
        ("stock, then gdn", theirs, ours),
    ):
        first(model)
        cache = model(tokens[:, :40], use_cache=True).past_key_values
        second(model)
        error = apart(model(tokens[:, 40:41], past_key_values=cache).logits[:, -1], stock)
        check.that(f"{name}: {order}", error < 1e-4, f"apart by {error:.1e}")


@torch.no_grad()
def check_graph(check: Check, name: str, model, tokens) -> None:
    """A step of one token traces without a break, and gives what it gives without a graph."""
    how = {} if tokens.is_cuda else {"backend": "aot_eager"}
    # transformers' experts of f32 wait for the device, which no capture of a graph allows.
    if tokens.is_cuda and not EXPERTS.keys() & model.config.to_dict().keys():
        how = {"mode": "reduce-overhead"}
    integration.patch(model)
    found = []
    for compiled in (False, True):
        torch.compiler.reset()
        step = torch.compile(model.forward, fullgraph=True, **how) if compiled else model.forward
        cache = StaticCache(config=model.config, max_cache_len=64)
        model(tokens[:, :40], past_key_values=cache, use_cache=True)
        counter = Counter()
        for i in range(40, 46):
            out = step(tokens[:, i : i + 1].clone(), past_key_values=cache, use_cache=True)
        found.append(out.logits.clone())
        count = counter.end()
    error = apart(found[1], found[0])
    detail = f"apart by {error:.1e}, {count} layers ran outside of a graph"
    check.that(f"{name}: a compiled step", error < 1e-4 and count > 0, detail)


@torch.no_grad()
def check_kernels(check: Check, name: str, model, tokens) -> None:
    """Layers that the library kernels puts there, if transformers takes the version that is
    installed."""
    if not transformers.utils.is_kernels_available():
        return
    import kernels

    integration.unpatch(model)
    stock = model(tokens).logits
    with kernels.use_kernel_mapping(kernels_layers.mapping(), inherit_mapping=False):
        kernels.kernelize(model, mode=kernels.Mode.INFERENCE, device=tokens.device.type)
    counter = Counter()
    error = apart(model(tokens).logits, stock)
    count = counter.end()
    integration.unpatch(model)
    check.that(f"{name}: by kernels", error < 1e-4 and count == LAYERS, f"apart by {error:.1e}")


def check_training(check: Check, name: str, model, tokens, mask) -> None:
    """Gradients are those of the stock layers, and nothing of ours is left behind."""
    integration.patch(model)
    gradients = gradients_of(model, tokens, mask)
    integration.unpatch(model)
    pairs = zip(gradients, gradients_of(model, tokens, mask), strict=True)
    check.that(f"{name}: gradients", all(torch.equal(a, b) for a, b in pairs))
    ours = [key for m in model.modules() for key in vars(m) if key in ("forward", "_gdn_setup")]
    check.that(f"{name}: unpatched", not ours, " ".join(ours))


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


def check_changed_weights(check: Check, model, tokens) -> None:
    """Weights that are written after a call, or are others, are seen."""
    with torch.no_grad():
        integration.patch(model)
        model(tokens)
        for layer in model.modules():
            if hasattr(layer, "A_log"):
                layer.A_log.add_(0.5)
                layer.dt_bias = torch.nn.Parameter(layer.dt_bias + 0.25)
        ours = model(tokens).logits
        integration.unpatch(model)
        error = apart(ours, model(tokens).logits)
    check.that("changed weights", error < 1e-4, f"apart by {error:.1e}")


@torch.no_grad()
def check_epsilons(check: Check, tokens) -> None:
    """Compiled models whose norms have other epsilons, one after another."""
    torch.compiler.reset()
    how = {} if tokens.is_cuda else {"backend": "aot_eager"}
    worst = 0.0
    for epsilon in (1e-6, 1e-5, 3e-6):
        config = Qwen3_5TextConfig(**SIZES, rms_norm_eps=epsilon)
        model = AutoModelForCausalLM.from_config(config).eval().to(tokens.device)
        integration.patch(model)
        found = []
        for step in (model.forward, torch.compile(model.forward, fullgraph=True, **how)):
            cache = StaticCache(config=config, max_cache_len=64)
            model(tokens[:, :40], past_key_values=cache, use_cache=True)
            found.append(step(tokens[:, 40:41].clone(), past_key_values=cache).logits)
        worst = max(worst, apart(found[1], found[0]))
    check.that("compiled models with other epsilons", worst < 1e-4, f"apart by {worst:.1e}")


@torch.no_grad()
def check_bounded(check: Check, device: str) -> None:
    """A layer of GLM-5.3-Flash, whose decays have a bound, alone: its model is one of images too.
    Weights of the convolution stay f32, as its models have them, whatever the type of the rest."""
    if not hasattr(transformers, "Glm5NextTextConfig"):
        return
    from transformers.models.glm5_next.modeling_glm5_next import Glm5NextTextLinearAttention

    for bound, dtype, limit in (
        (-5.0, torch.float32, 1e-4),
        (None, torch.float32, 1e-4),
        (-5.0, torch.bfloat16, 3e-2),
    ):
        config = transformers.Glm5NextTextConfig(
            hidden_size=128, linear_num_heads=4, linear_head_dim=32, linear_lower_bound=bound
        )
        torch.manual_seed(0)
        model = torch.nn.Module()
        model.config = config
        layer = model.layer = Glm5NextTextLinearAttention(config, 0)
        for name, weight in layer.named_parameters():
            torch.nn.init.normal_(weight, 1.0 if "o_norm" in name else 0.0, 0.1)
        torch.nn.init.uniform_(layer.forget_gate.dt_bias, -6, 1)
        model = model.eval().to(device, dtype)
        for weight in (layer.conv1d.weight, layer.forget_gate.dt_bias, layer.forget_gate.A_log):
            weight.data = weight.data.float()
        x = torch.randn((2, 50, 128), device=device).to(dtype)

        def run(layer=layer, config=config, x=x) -> torch.Tensor:
            cache = transformers.DynamicCache(config=config)
            parts = [x[:, :40], x[:, 40:47], x[:, 47:48], x[:, 48:49], x[:, 49:]]
            return torch.cat([layer(part, cache_params=cache) for part in parts], dim=1)

        stock, patched = run(), integration.patch(model)
        counter = Counter()
        error = apart(run().float(), stock.float())
        is_whole = counter.end() == 5 and patched == 1
        check.that(f"bounded by {bound}, {dtype}", is_whole and error < limit, f"{error:.1e}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="transformers_check", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--model", help="one of the configurations alone")
    arguments = parser.parse_args()
    device, check = arguments.device, Check()
    tokens = torch.randint(2, 200, (2, 70), generator=torch.Generator().manual_seed(0)).to(device)
    mask = torch.ones_like(tokens)
    mask[1, :9] = 0
    for name, config in configurations().items():
        if arguments.model not in (None, name):
            continue
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval().to(device)
        check_model(check, name, model, tokens, mask)
        check_graph(check, name, model, tokens)
        check_changes_of_hands(check, name, model, tokens)
        if name.startswith("Qwen3.5"):
            check_kernels(check, name, model, tokens)
        check_training(check, name, model, tokens, mask)
        check_changed_weights(check, model, tokens)
    check_bounded(check, device)
    check_two_models(check)
    check_epsilons(check, tokens)
    print(f"{check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
