# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All traces, seeds, sizes of memory and policies, and the file of results.

Memory is a share of what all distinct states of a trace take. It is divided between states and keys
and values as sglang does by default, 0.9 to 1, for all policies alike.
"""

from __future__ import annotations

import datetime
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from . import machine, simulate, traces
from .product import ProductTree
from .rules import Everything, Memory, Policy, Sglang, SglangPlain
from .tree import Tree
from .value import Valued

SHARES = (5, 20, 80)  # percent
STATES_TO_KV = 0.9


class Ours(Valued):
    """Our policy on `gdn.StateCache`."""

    def make_tree(self) -> Tree:
        memory = self.memory
        return ProductTree(self.trace, self.gone, memory.slots, memory.kv_tokens)


POLICIES: tuple[type[Policy], ...] = (Policy, SglangPlain, Sglang, Ours, Everything)


def memory_of(trace: traces.Trace, percent: float, model: machine.Model) -> Memory:
    """The memory of a share of a trace's distinct states."""
    total = percent / 100 * trace.distinct_states() * model.state_bytes
    states = total * STATES_TO_KV / (1 + STATES_TO_KV)
    return Memory(
        slots=int(states / model.state_bytes),
        kv_tokens=int((total - states) / model.kv_bytes),
        state_bytes=model.state_bytes,
        token_bytes=model.kv_bytes,
        gpu_bytes=machine.GPU_BYTES,
    )


def rows_of(
    name: str, seed: int, results: Path, seconds: float, shares=SHARES, policies=POLICIES
) -> list[dict]:
    """All sizes of memory and all policies on one trace."""
    trace, gpu = traces.make(name, seed, seconds), machine.Machine(results)
    rows = []
    for percent in shares:
        memory = memory_of(trace, percent, gpu.model)
        for make in policies:
            policy = make(trace, memory)
            try:
                result = simulate.run(trace, policy, gpu)
            finally:
                policy.tree.close()
            where = {"trace": name, "seed": seed, "memory": percent, "policy": make.name}
            rows.append(where | {"requests": result.requests} | result.row())
    return rows


def study(
    results: Path, names=traces.NAMES, seeds=traces.SEEDS, seconds=traces.SECONDS, workers: int = 1
) -> dict:
    """All runs, and their record."""
    cases = [(name, seed) for seed in seeds for name in names]
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(rows_of, *case, results, seconds) for case in cases]
        rows = [row for future in futures for row in future.result()]
    return record_of(rows, machine.Machine(results), seconds)


def record_of(rows: list[dict], gpu: machine.Machine, seconds: float) -> dict:
    """What was assumed, and the rows of all runs."""
    model = gpu.model
    return {
        "device": gpu.device,
        "date": datetime.date.today().isoformat(),
        "model": model.name,
        "kernel_times": gpu.sources,
        "state_bytes": model.state_bytes,
        "kv_bytes_per_token": model.kv_bytes,
        "gpu_bytes": machine.GPU_BYTES,
        "host_bytes_per_second": machine.HOST_BYTES_PER_SECOND,
        "ceilings": {"copy_TBps": gpu.bandwidth / 1e12, "matmul_TFLOPs": gpu.flops / 1e12},
        "parts_of_ceilings": {
            "products": machine.PRODUCTS,
            "attention": machine.ATTENTION,
            "memory": machine.MEMORY,
        },
        "seconds": seconds,
        "rows": rows,
    }


def save(path: Path, record: dict, key: str = "traces") -> None:
    """Writes a key of a file, and keeps what else it has."""
    report = json.loads(path.read_text()) if path.exists() else {}
    report[key] = record
    path.write_text(json.dumps(report, indent=1) + "\n")
