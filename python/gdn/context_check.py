# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill over the ranks of torch.distributed, and by plans with checkpoints, against one call on
each rank, and its times:

    torchrun --nproc-per-node 2 -m gdn.context_check --cases 50 --time 32768,131072

With a GPU for each rank tensors are there and the back end is NCCL; otherwise all is on the CPU,
with gloo. Rank 0 prints the largest errors, relative to the norm of what one call gives."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

import numpy as np

from .context_parallel import ContextParallel
from .exchange import Exchange
from .rule import gated_delta_rule
from .rule_maps import on_host
from .runtime import Runtime

# What the contract allows of states of f32, and outputs from inputs of f32.
MOST = 2e-3


def draw(seed: int, size: int, kind: tuple[int, int, bool]) -> tuple[dict[str, np.ndarray], list]:
    """Tokens of two sequences with heads of 64, and where each is cut: the same on all ranks.
    `kind` is key heads, value heads, and whether each channel has a decay."""
    rng = np.random.default_rng(seed)
    heads, value_heads, per_channel = kind
    lengths = rng.integers(1, 400, 2)
    cuts = [np.sort(rng.integers(0, length + 1, size - 1)).tolist() for length in lengths.tolist()]
    bounds = [[0, *cut, length] for cut, length in zip(cuts, lengths.tolist(), strict=True)]
    rows = int(lengths.sum())
    q, k = rng.standard_normal((2, rows, heads, 64))
    gates = (rows, value_heads, 64) if per_channel else (rows, value_heads)
    given = {
        "q": q / np.linalg.norm(q, axis=-1, keepdims=True),
        "k": k / np.linalg.norm(k, axis=-1, keepdims=True),
        "v": rng.standard_normal((rows, value_heads, 64)),
        "log_decay": -rng.choice([1e-3, 0.1]) * rng.uniform(0, 1, gates),
        "beta": rng.uniform(0, 1, (rows, value_heads)),
        "states": rng.standard_normal((5, value_heads, 64, 64)),
    }
    return {name: x.astype(np.float32) for name, x in given.items()}, bounds


def relative(got, want) -> float:
    got, want = (on_host(x) for x in (got, want))
    return float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-6))


def errors_of(exchange: Exchange, seed: int, place: Callable, runtime: Runtime | None = None):
    """Largest errors of this rank's outputs and of the states, of a call and of a plan. `place`
    puts an array of NumPy where the kernels run."""
    kind = ((2, 4, False), (2, 2, True))[seed % 2]
    given, bounds = draw(seed, exchange.size, kind)
    names = ("q", "k", "v", "log_decay", "beta")
    ends = [bound[-1] for bound in bounds]

    def one_call(counts: list[int]):
        """Of the first tokens of both sequences."""
        rows = [*range(counts[0]), *(ends[0] + t for t in range(counts[1]))]
        return gated_delta_rule(
            *(place(given[name][rows][None]) for name in names),
            initial_state=place(given["states"][1:3]),
            cu_seqlens=place(np.array([0, counts[0], sum(counts)], np.int32)),
            runtime=runtime,
        )

    want, after = one_call(ends)
    rank = exchange.rank
    parts = [range(bound[rank], bound[rank + 1]) for bound in bounds]
    rows = [*parts[0], *(ends[0] + t for t in parts[1])]
    want = on_host(want)[0][rows]
    tokens = [place(given[name][rows]) for name in names]
    slots = place(np.array([1, 2], np.int32))
    starts = place(np.array([0, len(parts[0]), len(rows)], np.int32))
    states = place(given["states"])
    out = ContextParallel(exchange).delta_prefill(*tokens, states, slots, starts, runtime=runtime)
    errors = [(relative(out, want), relative(states[1:3], after))]
    # Checkpoints about the middle, wherever that is; sequences of fewer tokens have none.
    stops = [64 * (1 + end // 128) for end in ends]
    kept = [n for n in range(2) if stops[n] <= ends[n]]
    middle = on_host(one_call([min(pair) for pair in zip(stops, ends, strict=True)])[1])
    states = place(given["states"])
    plan = ContextParallel(exchange).plan(
        tokens[2],
        states,
        slots,
        starts,
        checkpoints=tuple(np.array(x, np.int64) for x in ([0, 1, 2], stops, [3, 4])),
        segments=1 + seed % 4,
        runtime=runtime,
    )
    out = plan.delta_prefill(*tokens, states)
    found = on_host(states)
    untouched = [0, *(3 + n for n in range(2) if n not in kept)]
    if not (found[untouched] == given["states"][untouched]).all():
        raise AssertionError(f"other slots than those of the plan were written, seed {seed}")
    errors.append((relative(out, want), relative(found[1:3], after)))
    errors += [(0.0, relative(found[3 + n], middle[n])) for n in kept]
    return list(np.max(errors, 0))


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

    errors = np.array([errors_of(exchange, seed, place) for seed in range(args.cases)])
    largest = np.max(
        [np.frombuffer(x) for x in exchange.all_gather(errors.max(0, initial=0).tobytes())], 0
    )
    holds = bool((largest < MOST).all())
    if exchange.rank == 0:
        name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
        print(f"{size} ranks, {name}, torch {torch.__version__}: {args.cases} cases")
        print(
            f"outputs {largest[0]:.1e}, states {largest[1]:.1e}: {'holds' if holds else 'FAILED'}"
        )
    for tokens in filter(None, args.time.split(",")):
        one, many = time_of(exchange, int(tokens), torch, device)
        if exchange.rank == 0:
            print(f"1 x {tokens}: one {one:.2f} ms, {size} ranks {many:.2f} ms")
    torch.distributed.destroy_process_group()
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
