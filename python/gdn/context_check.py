# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill over the ranks of torch.distributed, and by plans with checkpoints and convolutions,
against one call on each rank, and its times:

    torchrun --nproc-per-node 2 -m gdn.context_check --cases 50 --time 32768,131072

With a GPU for each rank tensors are there and the back end is NCCL; otherwise all is on the CPU,
with gloo. Inputs are of f32, those of plans on GPUs of bf16. Rank 0 prints the largest errors,
relative to the norm of what one call gives."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .array_library import library_of
from .context_parallel import ContextParallel
from .context_plan import ContextPlan
from .conv1d import causal_conv1d
from .exchange import Exchange
from .rule import gated_delta_rule
from .rule_kernels import kind_of, unit_of
from .rule_maps import on_host
from .runtime import Runtime
from .segment_maps import maps_of

# What the contract allows of states of f32, and of outputs from inputs of each type.
MOST = 2e-3
MOST_OF_OUTPUTS = {"float32": MOST, "bfloat16": 6e-3}


class Kind(NamedTuple):
    """Heads of `dim` values, whether each channel has a decay, and the type of q, k and v."""

    heads: int
    value_heads: int
    per_channel: bool
    dim: int = 64
    io: str = "float32"


KINDS = (Kind(2, 4, False), Kind(2, 2, True))
# GPUs have maps of inputs of 16 bits, and with a decay for each head of 128 values.
GPU_PLANS = (Kind(2, 4, False, 128, "bfloat16"), Kind(2, 2, True, 64, "bfloat16"))


def has_maps(kind: Kind, device: tuple[str, int], runtime: Runtime | None = None) -> bool:
    """Whether plans of a kind run on a device, as far as images say."""
    rule = kind_of(
        kind.dim,
        kind.dim,
        unit=unit_of("prefill", device),
        io=kind.io,
        per_channel=kind.per_channel,
    )
    return maps_of(rule, device, runtime) is not None


def draw(seed: int, size: int, kind: Kind) -> tuple[dict[str, np.ndarray], list]:
    """Tokens of two sequences, of f32, and where each is cut: the same on all ranks."""
    rng = np.random.default_rng(seed)
    dim, heads, value_heads = kind.dim, kind.heads, kind.value_heads
    lengths = rng.integers(1, 400, 2)
    cuts = [np.sort(rng.integers(0, length + 1, size - 1)).tolist() for length in lengths.tolist()]
    bounds = [[0, *cut, length] for cut, length in zip(cuts, lengths.tolist(), strict=True)]
    rows = int(lengths.sum())
    q, k = rng.standard_normal((2, rows, heads, dim))
    gates = (rows, value_heads, dim) if kind.per_channel else (rows, value_heads)
    given = {
        "q": q / np.linalg.norm(q, axis=-1, keepdims=True),
        "k": k / np.linalg.norm(k, axis=-1, keepdims=True),
        "v": rng.standard_normal((rows, value_heads, dim)),
        "log_decay": -rng.choice([1e-3, 0.1]) * rng.uniform(0, 1, gates),
        "beta": rng.uniform(0, 1, (rows, value_heads)),
        "states": rng.standard_normal((5, value_heads, dim, dim)),
    }
    return {name: x.astype(np.float32) for name, x in given.items()}, bounds


class Case:
    """Two sequences over the ranks, and what one call gives of them here. `place` puts an array of
    NumPy where the kernels run."""

    def __init__(
        self, exchange: Exchange, seed: int, kind: Kind, place: Callable, runtime: Runtime | None
    ):
        self._exchange, self._seed, self._place, self._runtime = exchange, seed, place, runtime
        self._given, bounds = draw(seed, exchange.size, kind)
        self._io = kind.io
        self._ends = [bound[-1] for bound in bounds]
        rank = exchange.rank
        parts = [range(bound[rank], bound[rank + 1]) for bound in bounds]
        self._rows = rows = [*parts[0], *(self._ends[0] + t for t in parts[1])]
        self._tokens = self._of_rows(rows)
        self._slots = place(np.array([1, 2], np.int32))
        self._starts = place(np.array([0, len(parts[0]), len(rows)], np.int32))
        out, self._after = self._one_call(self._ends)
        self._want = self._host(out)[0][rows]

    def _of_rows(self, rows: list[int]) -> list:
        """q, k, v, log_decay and beta of some tokens."""
        arrays = [self._place(self._given[x][rows]) for x in ("q", "k", "v", "log_decay", "beta")]
        cast = library_of(arrays[0], self._runtime).cast
        return [*(cast(x, self._io) for x in arrays[:3]), *arrays[3:]]

    def _one_call(self, counts: list[int]):
        """Of the first tokens of both sequences."""
        rows = [*range(counts[0]), *(self._ends[0] + t for t in range(counts[1]))]
        return gated_delta_rule(
            *(x[None] for x in self._of_rows(rows)),
            initial_state=self._place(self._given["states"][1:3]),
            cu_seqlens=self._place(np.array([0, counts[0], sum(counts)], np.int32)),
            runtime=self._runtime,
        )

    def _host(self, array) -> np.ndarray:
        return on_host(library_of(array, self._runtime).cast(array, "float32"))

    def _error(self, got, want) -> float:
        got, want = self._host(got), self._host(want)
        return float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-6))

    def call(self) -> list[float]:
        """Errors of this rank's outputs and of the states, of a call without a plan."""
        states = self._place(self._given["states"])
        out = ContextParallel(self._exchange).delta_prefill(
            *self._tokens, states, self._slots, self._starts, runtime=self._runtime
        )
        return [self._error(out, self._want), self._error(states[1:3], self._after)]

    def plan(self) -> list[float]:
        """The same of a plan, with checkpoints about the middle, wherever that is; sequences of
        fewer tokens have none."""
        stops = [64 * (1 + end // 128) for end in self._ends]
        kept = [n for n in range(2) if stops[n] <= self._ends[n]]
        middle = self._one_call([min(pair) for pair in zip(stops, self._ends, strict=True)])[1]
        states = self._place(self._given["states"])
        plan = ContextParallel(self._exchange).plan(
            self._tokens[2],
            states,
            self._slots,
            self._starts,
            checkpoints=tuple(np.array(x, np.int64) for x in ([0, 1, 2], stops, [3, 4])),
            segments=1 + self._seed % 4,
            runtime=self._runtime,
        )
        out = plan.delta_prefill(*self._tokens, states)
        found = self._host(states)
        untouched = [0, *(3 + n for n in range(2) if n not in kept)]
        if not (found[untouched] == self._given["states"][untouched]).all():
            raise AssertionError(f"other slots than those of the plan, seed {self._seed}")
        errors = [self._error(states[1:3], self._after)]
        errors += [self._error(states[3 + n], middle[n]) for n in kept]
        outputs = [self._error(out, self._want), self._convolve(plan)]
        return [float(np.max(outputs)), float(np.max(errors))]

    def _convolve(self, plan: ContextPlan) -> float:
        """The error of the plan's convolution of values beside one call. Last windows are copies of
        inputs, and those before are there: AssertionError for other ones."""
        rng, value_heads, dim = np.random.default_rng(self._seed), *self._given["v"].shape[1:]
        shape = (value_heads * dim, 4)
        weight = self._place(rng.standard_normal(shape).astype(np.float32))
        before = rng.standard_normal((5, shape[0], 3)).astype(np.float32)
        pools = [self._place(before) for _ in range(2)]

        def inputs(rows) -> object:
            flat = self._place(self._given["v"][rows].reshape(-1, shape[0]))
            return library_of(flat, self._runtime).cast(flat, self._io)

        out = plan.causal_conv1d(inputs(self._rows), weight, pools[0])
        starts = self._place(np.array([0, self._ends[0], sum(self._ends)], np.int32))
        everything = inputs(slice(None))
        want = causal_conv1d(
            everything, weight, pools[1], self._slots, cu_seqlens=starts, runtime=self._runtime
        )
        found, windows = map(self._host, pools)
        if not (found[:3] == windows[:3]).all():
            raise AssertionError(f"other windows than those of one call, seed {self._seed}")
        return self._error(out, self._host(want)[self._rows])


def errors_of(
    exchange: Exchange,
    seed: int,
    place: Callable,
    runtime: Runtime | None = None,
    plans: Sequence[Kind | None] = KINDS,
) -> np.ndarray:
    """Largest errors [call or plan, outputs or states] of this rank. `plans` are the kinds of
    plans; None for one that the device has no maps of."""
    number = seed % 2
    call = Case(exchange, seed, KINDS[number], place, runtime)
    if plans[number] is None:
        return np.array([call.call(), [0.0, 0.0]])
    same = plans[number] == KINDS[number]
    plan = call if same else Case(exchange, seed, plans[number], place, runtime)
    return np.array([call.call(), plan.plan()])


def time_of(exchange: Exchange, tokens: int, torch, device: str) -> list[float]:
    """Milliseconds of one sequence with 16 key and 32 value heads of 128 in bf16: in one call on
    each rank, and over the ranks in equal parts. Medians of 5 calls, the slowest rank's."""
    generator = torch.Generator(device).manual_seed(exchange.rank)
    part = tokens // exchange.size

    def normal(*shape, dtype=torch.bfloat16):
        return torch.randn(shape, generator=generator, device=device, dtype=dtype)

    def inputs(rows: int) -> list:
        gates = normal(rows, 32, dtype=torch.float32)
        heads = [normal(rows, count, 128) for count in (16, 16, 32)]
        return [*heads, -0.1 * gates.sigmoid(), gates.sigmoid()]

    def median(call) -> float:
        times = []
        for _ in range(7):
            exchange.all_gather(b"")
            start = time.perf_counter()
            call()
            if device != "cpu":
                torch.cuda.synchronize()
            times.append(1e3 * (time.perf_counter() - start))
        own = np.array([np.median(times[2:])])
        return float(max(np.frombuffer(x)[0] for x in exchange.all_gather(own.tobytes())))

    whole, mine = [x[None] for x in inputs(tokens)], inputs(part)
    states = normal(2, 32, 128, 128, dtype=torch.float32)
    slots, starts = (torch.tensor(x, device=device) for x in ([1], [0, part]))
    ranks = ContextParallel(exchange)
    one = median(lambda: gated_delta_rule(*whole, initial_state=states[1:], l2norm=True))
    many = median(lambda: ranks.delta_prefill(*mine, states, slots, starts, l2norm=True))
    return [one, many]


def main() -> int:
    import torch

    from .exchange import TorchExchange

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--time", default="", help="lengths of sequences, with commas between")
    args = parser.parse_args()
    size, local = (int(os.environ[name]) for name in ("WORLD_SIZE", "LOCAL_RANK"))
    device = "cuda" if torch.cuda.device_count() >= size else "cpu"
    if device == "cuda":
        torch.cuda.set_device(local)
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    exchange = TorchExchange()

    def place(array):
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    plans = KINDS
    if device == "cuda":
        here = library_of(place(np.zeros(1, np.float32))).device
        plans = tuple(kind if has_maps(kind, here) else None for kind in GPU_PLANS)
    io = "bfloat16" if device == "cuda" else "float32"
    errors = np.array([errors_of(exchange, seed, place, None, plans) for seed in range(args.cases)])
    worst = errors.max(0, initial=0) if args.cases else np.zeros((2, 2))
    largest = np.max([np.frombuffer(x) for x in exchange.all_gather(worst.tobytes())], 0)
    largest = largest.reshape(2, 2)
    most = np.array([[MOST, MOST], [MOST_OF_OUTPUTS[io], MOST]])
    holds = bool((largest < most).all())
    if exchange.rank == 0:
        name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
        print(f"{size} ranks, {name}, torch {torch.__version__}: {args.cases} cases")
        for what, (outputs, states) in zip(("calls", f"plans, {io}"), largest, strict=True):
            print(f"{what}: outputs {outputs:.1e}, states {states:.1e}")
        for kind in (each for each, plan in zip(GPU_PLANS, plans, strict=True) if plan is None):
            print(f"no plans of heads of {kind.dim}, {kind.io}: no image has their maps here")
        print("holds" if holds else "FAILED")
    for tokens in filter(None, args.time.split(",")):
        one, many = time_of(exchange, int(tokens), torch, device)
        if exchange.rank == 0:
            print(f"1 x {tokens}: one {one:.2f} ms, {size} ranks {many:.2f} ms")
    torch.distributed.destroy_process_group()
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
