# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers with their own linear attention, whose rule is FLA's where it is
installed, with gdn's functions of the rule, and with whole layers of gdn: tokens per second, the
time of the linear attention, and errors of logits.

    python3 -m gdn.bench.transformers --output transformers-h200.json

The stacks have the sizes of models with fewer layers and random weights, in bf16.
"""

import argparse
import copy
import datetime
import importlib.util
from pathlib import Path

import torch

from . import transformers_steps as steps
from .report import save
from .transformers_models import MODELS, as_impl, linear_layers, make_model

PREFILLS = ((1, 4096), (8, 1024))
DECODES = (1, 16, 64)
IMPLS = ("stock", "gdn functions", "gdn layers")
ERRORS_OF = (2, 512)  # sequences and tokens of the prompts whose logits are compared


def both(model, begin) -> tuple[float, float]:
    """Milliseconds of a step, and of its linear attention. `begin` makes the step."""
    run = begin()
    return steps.milliseconds(run), steps.linear_milliseconds(model, run)


def in_graph(model, batch: int) -> tuple[float, float]:
    """The same of replays. Linear attention is a layer's graph times their number."""
    whole = steps.milliseconds(steps.in_graph(steps.decode(model, batch, static=True)))
    layer = steps.milliseconds(steps.in_graph(steps.layer_step(model, batch)))
    return whole, layer * len(linear_layers(model))


def compiled(model, batch: int) -> tuple[float, None]:
    torch.compiler.reset()
    step = torch.compile(model.forward, mode="reduce-overhead")
    return steps.milliseconds(steps.decode(model, batch, static=True, step=step)), None


def cases(model, with_compiled: bool):
    """Steps: kind, how, sequences, tokens, and what measures it."""
    for batch, length in PREFILLS:
        measure = lambda b=batch, n=length: both(model, lambda: steps.prefill(model, b, n))  # noqa: E731
        yield "prefill", "eager", batch, batch * length, measure
    for batch in DECODES:
        measure = lambda b=batch: both(model, lambda: steps.decode(model, b))  # noqa: E731
        yield "decode", "eager", batch, batch, measure
    for batch in DECODES:
        yield "decode", "graph", batch, batch, lambda b=batch: in_graph(model, b)
    for batch in DECODES if with_compiled else ():
        yield "decode", "compiled", batch, batch, lambda b=batch: compiled(model, b)


@torch.no_grad()
def times(name: str, model, with_compiled: bool) -> list[dict]:
    """All in turns, twice: the lower median counts."""
    rows = []
    for step, how, batch, tokens, measure in cases(model, with_compiled):
        config = {"model": name, "layers": len(model.model.layers)}
        config |= {"step": step, "how": how, "N": batch, "T": tokens}
        best: dict[str, tuple] = {}
        refused: dict[str, str] = {}
        for impl in IMPLS * (1 if how == "compiled" else 2):
            try:
                with as_impl(model, impl):
                    found = measure()
            except RuntimeError as error:
                refused[impl] = str(error).splitlines()[0]
                continue
            best[impl] = min(found, best.get(impl, found))
        for impl in IMPLS:
            row = {"suite": "transformers", "impl": impl, "config": config}
            if impl in best:
                ms, linear = best[impl]
                row |= {"ms": ms, "tokens_per_s": tokens / ms * 1e3}
                row |= {} if linear is None else {"linear_ms": linear}
                print(f"{name} {step} {how} N={batch} {impl}: {ms:.2f} ms, linear {linear}")
            else:
                row["refused"] = refused[impl]
                print(f"{name} {step} {how} N={batch} {impl}: {refused[impl]}")
            rows.append(row)
    return rows


@torch.no_grad()
def errors(name: str) -> list[dict]:
    """Logits of a block in bf16 against those of the same weights in f32 with PyTorch's
    functions."""
    model = make_model(name, 1)
    tokens = steps.tokens_of(*ERRORS_OF)
    wide = copy.deepcopy(model).float()
    with as_impl(wide, "torch functions"):
        want = wide(tokens).logits
    del wide
    rows = []
    for impl in IMPLS:
        with as_impl(model, impl):
            got = model(tokens).logits.float()
        error = float((got - want).norm() / want.norm())
        config = {"model": name, "layers": len(model.model.layers), "N": ERRORS_OF[0]}
        row = {"suite": "transformers", "impl": impl, "config": config, "error": error}
        print(f"{name} logits {impl}: error {error:.2e}")
        rows.append(row)
    return rows


def versions() -> dict[str, str | None]:
    """Of what is measured; None where it is not installed."""
    found = dict.fromkeys(("torch", "transformers", "fla", "causal_conv1d"))
    for name in found:
        if importlib.util.find_spec(name) is not None:
            found[name] = importlib.import_module(name).__version__
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.transformers", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--blocks", type=int, default=2, help="of four layers each")
    parser.add_argument("--compile", action="store_true", help="also steps of torch.compile")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    report = {
        "device": torch.cuda.get_device_name(),
        "date": datetime.date.today().isoformat(),
        "versions": versions(),
        "rows": [],
    }
    for name in arguments.models:
        report["rows"] += errors(name)
        torch.cuda.empty_cache()
        report["rows"] += times(name, make_model(name, arguments.blocks), arguments.compile)
        torch.cuda.empty_cache()
        if arguments.output:
            save(arguments.output, report)


if __name__ == "__main__":
    main()
