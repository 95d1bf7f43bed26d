# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of decodes, verified rows and prefills: replayed from one graph with an image of
--mixed-batch, cut into launches of one kind with another image, and each kind alone.
`python -m gdn.bench.mixed MIXED PLAIN` writes the rows."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from .. import reference
from ..checks import relative_error
from ..layers.attention import (
    BatchPlanner,
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
    GDNLayer,
    Workspace,
    layer_kernels,
)
from ..runtime import Pool, Runtime
from . import measure
from .inputs import to_host
from .timing import time_calls

HK, HV, D, WIDTH = 16, 32, 128, 4
CHANNELS = (2 * HK + HV) * D
_TURNS = 3


@dataclass
class Batch:
    """Sequences of a step: tokens of each, and drafts, -1 where it is a prefill."""

    lengths: np.ndarray
    drafts: np.ndarray

    @classmethod
    def mixed(cls, decodes: int, verifies: int, prefills: int, columns: int, prompt: int):
        lengths = np.repeat([1, columns, prompt], [decodes, verifies, prefills])
        drafts = np.where(lengths > columns, -1, lengths - 1)
        return cls(lengths.astype(np.int32), drafts.astype(np.int32))

    def of(self, chosen: np.ndarray) -> Batch:
        return Batch(self.lengths[chosen], self.drafts[chosen])

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum())


class Model:
    """Layers with pools of their own, as a model has them, and inputs of a step."""

    def __init__(self, runtime: Runtime, image: Path, layers: int, rows: int, columns: int):
        self.runtime, self.device = runtime, runtime.cuda()
        self.columns = columns
        loaded = runtime.image(image)
        kernels = layer_kernels(self.device, loaded)
        entry = next(name for name in loaded.entries if name.startswith("verify"))
        self.rule = reference.Layer.of(loaded.attributes(entry))
        self.layers, self.weights = [], []
        generator = torch.Generator("cuda").manual_seed(5)

        def normal(*shape, scale=1.0, dtype=torch.bfloat16):
            made = torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32)
            return (made * scale).to(dtype)

        self.normal = normal
        for _ in range(layers):
            pools = {
                "conv_pool": normal(rows * columns + 1, CHANNELS, WIDTH - 1),
                "state_pool": normal(rows * columns + 1, HV, D, D, scale=0.1, dtype=torch.float32),
            }
            weights = {
                "conv_weight": normal(CHANNELS, WIDTH, scale=0.5),
                "A_log": normal(HV, dtype=torch.float32),
                "dt_bias": normal(HV, dtype=torch.float32),
            }
            shared = {name: Pool(pool) for name, pool in pools.items()}
            self.layers.append((GDNLayer(kernels, **weights, **shared), pools))
            self.weights.append(weights)

    def share_workspace(self, rows: int, tokens: int) -> None:
        layers = [layer for layer, _ in self.layers]
        self.workspace = Workspace(layers, rows, tokens)

    def inputs(self, tokens: int) -> dict[str, torch.Tensor]:
        return {
            "qkv": self.normal(tokens, CHANNELS),
            "b": self.normal(tokens, HV),
            "a": self.normal(tokens, HV),
            "core": torch.full((tokens, HV, D), float("nan"), device="cuda", dtype=torch.bfloat16),
        }

    def builder(self, rows: int, tokens: int, **options) -> GDNAttentionMetadataBuilder:
        return GDNAttentionMetadataBuilder.from_options(
            self.runtime,
            self.device,
            max_num_seqs=rows,
            max_num_tokens=tokens,
            num_speculative_tokens=self.columns - 1,
            **options,
        )

    def metadata(self, builder, batch: Batch, slots: np.ndarray, graph: Batch | None = None):
        """Of the batch, in a graph of another one."""
        starts = np.concatenate([[0], np.cumsum(batch.lengths)]).astype(np.int32)
        common = CommonAttentionMetadata(
            query_start_loc=starts,
            seq_lens=batch.lengths + 9,
            num_reqs=len(batch.lengths),
            num_actual_tokens=(graph or batch).tokens,
            block_table_tensor=slots,
        )
        accepted = np.ones(len(batch.lengths), np.int32)
        rows = len(graph.lengths) if graph else 0
        return builder.build(0, common, accepted, batch.drafts, num_padded_reqs=rows)

    def calls(self, metadata, tokens) -> list[Callable[[], object]]:
        return [
            lambda layer=layer: layer.forward(
                metadata, stream=torch.cuda.current_stream(), **tokens
            )
            for layer, _ in self.layers
        ]


@dataclass
class Sequence:
    """What a sequence of a step should leave, in float64, and where."""

    tokens: slice
    slot: int  # with the state after the last token
    core: np.ndarray
    state: np.ndarray

    def errors(self, core: torch.Tensor, states: torch.Tensor) -> tuple[float, float]:
        return (
            relative_error(to_host(core[self.tokens]), self.core),
            relative_error(to_host(states[self.slot]), self.state),
        )


def references(model: Model, batch: Batch, inputs, slots: np.ndarray) -> list[Sequence]:
    """Of the first sequence of each kind, from the states that the first layer has now."""
    starts = np.concatenate([[0], np.cumsum(batch.lengths)])
    weights = {name: to_host(value) for name, value in model.weights[0].items()}
    gates = (weights["A_log"], weights["dt_bias"])
    pools = model.layers[0][1]
    kinds = [batch.drafts < 0, batch.drafts == 0, batch.drafts > 0]
    found = []
    for row in (int(np.flatnonzero(kind)[0]) for kind in kinds if kind.any()):
        part = slice(int(starts[row]), int(starts[row + 1]))
        qkv, a, b = (to_host(inputs[name][part]) for name in ("qkv", "a", "b"))
        window, state = (
            to_host(pools[name][slots[row, 0]]) for name in ("conv_pool", "state_pool")
        )
        mixed, _ = reference.convolve(qkv, window, weights["conv_weight"])
        core, state = reference.delta_rule(model.rule, mixed, state, *gates, a, b)
        # Verified tokens leave a state each, all others the last one.
        last = slots[row, max(int(batch.drafts[row]), 0)]
        found.append(Sequence(part, int(last), core, state))
    return found


def errors_of(expected: list[Sequence], core: torch.Tensor, states: torch.Tensor) -> dict:
    """The largest of the sequences."""
    pairs = zip(*(each.errors(core, states) for each in expected), strict=True)
    return dict(zip(("error_o", "error_state"), map(max, pairs), strict=True))


def eager(calls, steps: int = 30) -> dict[str, float]:
    """Microseconds of one call in a stream of them: the GPU waits for the host where that is
    slower."""
    times = []
    for _ in range(steps):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for call in calls:
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6 / len(calls))
    times.sort()
    return {"us": times[steps // 2], "us_min": times[0], "us_max": times[-1]}


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """The norm of the difference, by that of `b`."""
    return float((a.double() - b.double()).norm() / b.double().norm())


def plan_call(options, model: Model, batch: Batch, slots: np.ndarray) -> Callable[[], object]:
    """A call that plans the batch from arrays on the device, on the stream that is current."""
    kernel = model.device.kernel(model.runtime.image(options.plan), "plan")
    planner = BatchPlanner(
        kernel, max_num_seqs=len(batch.lengths), num_speculative_tokens=model.columns - 1
    )
    arrays = [
        torch.from_numpy(np.ascontiguousarray(array, dtype=np.int32)).cuda()
        for array in (
            np.concatenate([[0], np.cumsum(batch.lengths)]),
            batch.lengths + 9,
            slots,
            batch.drafts,
            np.ones(len(batch.lengths)),
        )
    ]
    return lambda: planner.plan(*arrays, num_tokens=batch.tokens, max_num_prefills=options.prefills)


def run(options, runtime: Runtime) -> list[dict]:
    rng = np.random.default_rng(3)
    columns = options.columns
    batch = Batch.mixed(
        options.decodes, options.verifies, options.prefills, columns, options.prompt
    )
    rows, tokens = len(batch.lengths), batch.tokens
    order = rng.permutation(rows)
    shuffled = batch.of(order)
    table = 1 + rng.permutation(rows * columns).astype(np.int32).reshape(rows, columns)
    mixed = Model(runtime, options.mixed, options.layers, rows, columns)
    plain = Model(runtime, options.plain, options.layers, rows, columns)
    # The same weights, states and inputs in both, and the rows of one in another order.
    for (_, to), (_, of) in zip(plain.layers, mixed.layers, strict=True):
        for name, pool in to.items():
            pool.copy_(of[name])
    mixed.share_workspace(rows, tokens)
    plain.share_workspace(rows, tokens)
    inputs = mixed.inputs(tokens)
    starts = np.concatenate([[0], np.cumsum(batch.lengths)])
    index = np.concatenate([np.arange(starts[row], starts[row + 1]) for row in order])
    places = torch.from_numpy(index).cuda()
    in_order = {name: array[places].clone() for name, array in inputs.items()}

    graph_builder = mixed.builder(
        rows,
        tokens,
        mixed_batch=True,
        use_full_cuda_graph=True,
        max_num_prefills=options.prefills,
    )
    whole = mixed.metadata(graph_builder, shuffled, table[order])
    is_prefill = batch.drafts < 0
    alone = {}
    for name, chosen in (("verify", ~is_prefill), ("prefill", is_prefill)):
        part = batch.of(chosen)
        own = mixed.builder(rows, tokens, mixed_batch=True)
        made = mixed.metadata(own, part, table[chosen])
        alone[name] = mixed.calls(made, mixed.inputs(part.tokens)), own
    split = plain.metadata(plain.builder(rows, tokens), batch, table)
    whole_calls = mixed.calls(whole, in_order)
    split_calls = plain.calls(split, inputs)

    # The first layer of both, from the same states.
    states, split_states = (model.layers[0][1]["state_pool"] for model in (mixed, plain))
    before = {name: pool.clone() for name, pool in mixed.layers[0][1].items()}
    expected = references(mixed, shuffled, in_order, table[order])
    expected_split = references(plain, batch, inputs, table)
    whole_calls[0]()
    split_calls[0]()
    torch.cuda.synchronize()
    eager_bits = in_order["core"].clone()
    gap = difference(in_order["core"], inputs["core"][places])
    errors = {
        ("gdn layer", "launches"): errors_of(expected, in_order["core"], states),
        ("gdn layer split", "launches"): errors_of(expected_split, inputs["core"], split_states),
    }
    for name, pool in mixed.layers[0][1].items():
        pool.copy_(before[name])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        whole_calls[0]()
    in_order["core"].fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    errors["gdn layer", "graph"] = errors_of(expected, in_order["core"], states) | {
        "same_bits_as_launches": bool(torch.equal(in_order["core"], eager_bits)),
        "difference_to_split": gap,
    }

    plan = plan_call(options, mixed, shuffled, table[order]) if options.plan else None
    if plan:
        for name, pool in mixed.layers[0][1].items():
            pool.copy_(before[name])
        planned_graph = torch.cuda.CUDAGraph()
        plan()
        with torch.cuda.graph(planned_graph):
            mixed.calls(plan(), in_order)[0]()
        in_order["core"].fill_(float("nan"))
        planned_graph.replay()
        torch.cuda.synchronize()
        errors["gdn layer", "graph with plan"] = errors_of(expected, in_order["core"], states) | {
            "same_bits_as_launches": bool(torch.equal(in_order["core"], eager_bits))
        }

    def planned_step():
        for call in mixed.calls(plan(), in_order):
            call()

    # The same graph for a step of four decodes.
    few = batch.of(np.flatnonzero(batch.drafts == 0)[:4])
    few_builder = mixed.builder(
        rows,
        tokens,
        mixed_batch=True,
        use_full_cuda_graph=True,
        max_num_prefills=options.prefills,
    )
    few_calls = mixed.calls(mixed.metadata(few_builder, few, table[:4], graph=batch), in_order)

    config = {"Hk": HK, "Hv": HV, "dk": D, "dv": D, "N": rows, "decodes": options.decodes}
    config |= {"verifies": options.verifies, "columns": columns, "prefills": options.prefills}
    config |= {"prompt": options.prompt, "io": "bfloat16", "state": "float32", "step": "mixed"}
    measured: dict[tuple[str, str], list] = {}
    for _ in range(_TURNS):
        measured.setdefault(("gdn layer", "graph"), []).append(time_calls(whole_calls))
        measured.setdefault(("gdn layer", "launches"), []).append(eager(whole_calls))
        measured.setdefault(("gdn layer split", "launches"), []).append(eager(split_calls))
        if plan:
            step = time_calls([planned_step])
            of_layer = {name: us / len(mixed.layers) for name, us in step.items()}
            measured.setdefault(("gdn layer", "graph with plan"), []).append(of_layer)
            alone_plan = time_calls([plan] * 8)
            measured.setdefault(("gdn kernel", "plan alone"), []).append(alone_plan)
        form = ("gdn layer", "graph, 4 decodes")
        measured.setdefault(form, []).append(time_calls(few_calls))
        for name, (calls, _) in alone.items():
            form = ("gdn kernel", f"{name} alone")
            measured.setdefault(form, []).append(time_calls(calls))
    found = []
    for (impl, variant), turns in measured.items():
        best = sorted(turns, key=lambda t: t["us"])[_TURNS // 2]
        more = errors.get((impl, variant), {})
        own = config | {"variant": variant}
        found.append({"suite": "step", "impl": impl, "config": own, **best, **more})
        print(f"step mixed {impl:16} {variant:14} {best['us']:9.2f} us", more or "", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser("mixed", description=__doc__)
    parser.add_argument("mixed", type=Path, help="--mixed-batch --verify=slots --layout=split ..")
    parser.add_argument("plain", type=Path, help="the same without --mixed-batch")
    parser.add_argument("--plan", type=Path, help="an image with the entry plan of --mixed-batch")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--decodes", type=int, default=64)
    parser.add_argument("--verifies", type=int, default=16)
    parser.add_argument("--prefills", type=int, default=4)
    parser.add_argument("--columns", type=int, default=4, help="tokens of a verified row")
    parser.add_argument("--prompt", type=int, default=1024)
    options = measure.parse(parser)
    measure.write(options, run(options, Runtime(options.library)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
