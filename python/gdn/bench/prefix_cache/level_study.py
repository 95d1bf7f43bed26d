# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same traces with two levels: a third of the memory of `study` is the GPU's, and two thirds
are pinned memory of the host, as sglang's hierarchical cache has by default (a ratio of 2).

sglang's rules get a host level that is better than theirs: what was stored before and came back is
in one level at a time, and its copies are never in each other's way. Ours is that of
`gdn.StateCache`: copies on one stream, those of what came back in host slots that nobody needs.
Rates are measured: `state-moves-h100.json`.
"""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from . import machine, simulate, study, traces
from .levels import LevelMemory, ProductLevels, TwoLevels
from .rules import Memory, Policy, Sglang, SglangPlain
from .tree import Tree
from .value import Valued

#: The GPU's part of the memory.
GPU_PART = 1 / 3
MOVES = "state-moves-h100.json"


class OnGpu:
    """Ahead of a policy: it has the GPU's part alone."""


class SglangGpu(OnGpu, Sglang):
    name = "sglang, extra buffer, GPU alone"


class OursGpu(OnGpu, study.Ours):
    name = "ours, GPU alone"


class SglangPlainHost(TwoLevels, SglangPlain):
    name = "sglang, no buffer, host"


class SglangHost(TwoLevels, Sglang):
    name = "sglang, extra buffer, host"


class OursHost(TwoLevels, Valued):
    """Our policy on `gdn.StateCache` with a host tier."""

    name = "ours, host"

    def make_tree(self) -> Tree:
        return ProductLevels(self.trace, self.gone, self.memory)


class OursNarrow(OursHost):
    """The host has states in planes of bytes, rounded by one core."""

    name = "ours, host, i8x2"
    format = "i8x2"


POLICIES: tuple[type[Policy], ...] = (
    SglangGpu,
    SglangPlainHost,
    SglangHost,
    OursGpu,
    OursHost,
    OursNarrow,
)


def seconds_of(results: Path, case: str) -> float:
    """Of a copy of one state, as it was measured."""
    rows = json.loads((results / MOVES).read_text())["rows"]
    (us,) = (
        row["us"]
        for row in rows
        if row["impl"] == "gdn" and row["config"] == {"case": case, "slots": 1}
    )
    return us * 1e-6


def narrow_part(model: machine.Model) -> float:
    """The bytes of a state in planes, a scale for each row, with its windows: a part of those that
    it has on the GPU."""
    size = model.head_dim
    states = model.gdn_layers * model.value_heads * size * size * 4
    return 1 - states / model.state_bytes * (1 - (2 * size + 4) / (4 * size))


def memory_for(make: type[Policy], whole: Memory, model: machine.Model, results: Path) -> Memory:
    """The parts of the memory that a policy gets. What narrow states leave on the host goes to
    states and to keys and values alike."""
    gpu_slots = int(whole.slots * GPU_PART)
    gpu_tokens = int(whole.kv_tokens * GPU_PART)
    if issubclass(make, OnGpu):
        parts = (gpu_slots, gpu_tokens, whole.state_bytes, whole.token_bytes, float("inf"))
        return Memory(*parts)
    name = getattr(make, "format", "they are")
    part = narrow_part(model) if name != "they are" else 1.0
    host_slots, host_tokens = whole.slots - gpu_slots, whole.kv_tokens - gpu_tokens
    states, tokens = host_slots * whole.state_bytes, host_tokens * whole.token_bytes
    more = (states + tokens) / (states * part + tokens)
    host_slots, host_tokens = int(host_slots * more), int(host_tokens * more)
    return LevelMemory(
        slots=gpu_slots + host_slots,
        kv_tokens=gpu_tokens + host_tokens,
        state_bytes=whole.state_bytes,
        token_bytes=whole.token_bytes,
        gpu_bytes=gpu_tokens * whole.token_bytes,
        gpu_slots=gpu_slots,
        host_slots=host_slots,
        store_seconds=seconds_of(results, f"to the host, as {name}"),
        load_seconds=seconds_of(results, f"from the host, as {name}"),
    )


def rows_of(
    name: str, seed: int, results: Path, seconds: float, shares=study.SHARES, policies=POLICIES
) -> list[dict]:
    """All sizes of memory and all policies on one trace."""
    trace, gpu = traces.make(name, seed, seconds), machine.Machine(results)
    rows = []
    for percent in shares:
        whole = study.memory_of(trace, percent, gpu.model)
        for make in policies:
            policy = make(trace, memory_for(make, whole, gpu.model, results))
            try:
                result = simulate.run(trace, policy, gpu)
            finally:
                policy.tree.close()
            where = {"trace": name, "seed": seed, "memory": percent, "policy": make.name}
            moved = {
                "stored_bytes": result.stored * whole.state_bytes,
                "fetched_bytes": result.fetched * whole.state_bytes,
            }
            rows.append(where | {"requests": result.requests} | result.row() | moved)
    return rows


def levels(
    results: Path, names=traces.NAMES, seeds=traces.SEEDS, seconds=traces.SECONDS, workers: int = 1
) -> dict:
    """All runs, and their record."""
    cases = [(name, seed) for seed in seeds for name in names]
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(rows_of, *case, results, seconds) for case in cases]
        rows = [row for future in futures for row in future.result()]
    return record_of(rows, results, seconds)


def record_of(rows: list[dict], results: Path, seconds: float) -> dict:
    """What was assumed, and the rows of all runs."""
    gpu = machine.Machine(results)
    return study.record_of(rows, gpu, seconds) | {
        "copies": MOVES,
        "gpu_part": GPU_PART,
        "narrow_part": narrow_part(gpu.model),
    }
