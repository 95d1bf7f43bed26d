# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers with their own functions of the gated delta rule, which are FLA's where it
is installed, and with gdn's: tokens per second and the time of the linear attention.

    python3 -m gdn.bench.transformers --output transformers.json

The stack has the sizes of Qwen3.5-4B with fewer layers and random weights, in bf16.
"""

import argparse
import datetime
import importlib.util
import json
import statistics
from functools import partial
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM
from transformers.models.qwen3_5 import Qwen3_5TextConfig

from ..integrations import transformers as integration

LAYERS = ["linear_attention"] * 3 + ["full_attention"]
PREFILLS = ((1, 4096), (8, 1024))
DECODES = (1, 16, 64)
REPEATS = 12


def make_model(blocks: int) -> torch.nn.Module:
    config = Qwen3_5TextConfig(
        vocab_size=1024,
        hidden_size=2560,
        intermediate_size=9216,
        num_hidden_layers=4 * blocks,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=256,
        linear_num_key_heads=16,
        linear_num_value_heads=32,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        layer_types=LAYERS * blocks,
    )
    torch.manual_seed(0)
    with torch.device("cuda"):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


class LayerTimer:
    """Milliseconds that the linear attention takes of a forward, by events around its layers."""

    def __init__(self, model):
        self.pairs, self.hooks = [], []
        for layer in model.modules():
            if type(layer).__name__ == "Qwen3_5GatedDeltaNet":
                self.hooks.append(layer.register_forward_pre_hook(lambda *_: self._mark(True)))
                self.hooks.append(layer.register_forward_hook(lambda *_: self._mark(False)))

    def _mark(self, begins: bool) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        if begins:
            self.pairs.append([event])
        else:
            self.pairs[-1].append(event)

    def take(self) -> float:
        torch.cuda.synchronize()
        total = sum(start.elapsed_time(end) for start, end in self.pairs)
        self.pairs.clear()
        return total

    def remove(self) -> None:
        for hook in self.hooks:
            hook.remove()


def medians(model, run) -> tuple[float, float]:
    """Milliseconds of a forward, and of its linear attention."""
    timer = LayerTimer(model)
    whole, linear = [], []
    for repeat in range(REPEATS + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        found = timer.take()
        if repeat >= 3:
            whole.append(start.elapsed_time(end))
            linear.append(found)
    timer.remove()
    return statistics.median(whole), statistics.median(linear)


def cases(model):
    """Steps, as what makes a function that gives logits: prompts, and tokens behind prompts of 64,
    whose states are in a cache of the functions that are there when it is made."""
    for batch, length in PREFILLS:
        tokens = torch.arange(batch * length, device="cuda").reshape(batch, length) * 7 % 1024
        yield "prefill", batch, batch * length, lambda x=tokens: partial(model, x, use_cache=True)
    for batch in DECODES:
        tokens = torch.arange(batch * 64, device="cuda").reshape(batch, 64) * 11 % 1024
        yield "decode", batch, batch, lambda x=tokens: decode_of(model, x)


def decode_of(model, tokens):
    cache = model(tokens, use_cache=True).past_key_values
    return partial(model, tokens[:, :1], past_key_values=cache, use_cache=True)


@torch.no_grad()
def measure(model, stock: str) -> list[dict]:
    """Both in turns, twice: the lower median counts."""
    rows = []
    for step, batch, tokens, begin in cases(model):
        best: dict[str, tuple[float, float]] = {}
        logits = {}
        for impl in (stock, "gdn", stock, "gdn"):
            if impl == "gdn":
                integration.patch(model)
            run = begin()
            found = medians(model, run)
            best[impl] = min(found, best.get(impl, found))
            if step == "prefill":
                logits[impl] = run().logits[:, -1].float()
            integration.unpatch(model)
        config = {"step": step, "N": batch, "T": tokens, "layers": len(model.model.layers)}
        for impl, (ms, linear) in best.items():
            row = {"suite": "transformers", "impl": impl, "config": config, "ms": ms}
            rows.append(row | {"linear_ms": linear, "tokens_per_s": tokens / ms * 1e3})
            print(f"{step:8} N={batch:3} T={tokens:5} {impl:22} {ms:8.2f} ms, linear {linear:.2f}")
        if logits:
            apart = (logits["gdn"] - logits[stock]).norm() / logits[stock].norm()
            rows[-1]["apart"] = float(apart)
            print(f"{'':8} logits are apart by {apart:.1e}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.transformers", description=__doc__)
    parser.add_argument("--blocks", type=int, default=2, help="of four layers each")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    model = make_model(arguments.blocks)
    name = "transformers with FLA" if importlib.util.find_spec("fla") else "transformers"
    rows = measure(model, name)
    if arguments.output:
        record = {
            "device": torch.cuda.get_device_name(),
            "date": datetime.date.today().isoformat(),
            "versions": {"torch": torch.__version__},
            "rows": rows,
        }
        arguments.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
