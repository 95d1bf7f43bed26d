# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill over the ranks of torch.distributed against one call on each rank, and its times:

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
        "states": rng.standard_normal((3, value_heads, 64, 64)),
    }
    return {name: x.astype(np.float32) for name, x in given.items()}, bounds


def errors_of(exchange: Exchange, seed: int, place: Callable, runtime: Runtime | None = None):
    """Largest errors of this rank's outputs and of the states. `place` puts an array of NumPy where
    the kernels run."""
    kind = ((2, 4, False), (2, 2, True))[seed % 2]
    given, bounds = draw(seed, exchange.size, kind)
    tokens = ("q", "k", "v", "log_decay", "beta")
    first = bounds[0][-1]
    whole = [place(given[name][None]) for name in tokens]
    starts = place(np.array([0, first, first + bounds[1][-1]], np.int32))
    initial = place(given["states"][1:])
    want, after = gated_delta_rule(
        *whole, initial_state=initial, cu_seqlens=starts, runtime=runtime
    )
    rank = exchange.rank
    parts = [range(bound[rank], bound[rank + 1]) for bound in bounds]
    rows = [*parts[0], *(first + t for t in parts[1])]
    states = place(given["states"])
    out = ContextParallel(exchange).delta_prefill(
        *(place(given[name][rows]) for name in tokens),
        states,
        place(np.array([1, 2], np.int32)),
        place(np.array([0, len(parts[0]), len(rows)], np.int32)),
        runtime=runtime,
    )
    return [
        float(np.linalg.norm(got - one) / max(np.linalg.norm(one), 1e-6))
        for got, one in (
            (on_host(out), on_host(want)[0][rows]),
            (on_host(states)[1:], on_host(after)),
        )
    ]


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
