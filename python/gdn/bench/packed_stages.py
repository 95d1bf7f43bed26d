# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the time of a prefill of packed projections goes: when each stage of a launch begins and
how long it takes, from a profiler, over sets that no cache holds. A profiler slows launches that
begin early; its times do not add up to those without it."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

_MOST_CALLS = 8
_OURS = "prefill"  # how the names of our kernels begin


def events_of(calls: list[Callable[[], object]]) -> list[dict]:
    """Kernels of ours in the order in which they began, as a trace has them."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    calls = calls[:_MOST_CALLS]
    for call in calls:
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for call in calls:
            call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        found.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    ours = [e for e in events if e.get("cat") == "kernel" and e["name"].startswith(_OURS)]
    return sorted(ours, key=lambda event: event["ts"])


def rows(events: list[dict], count: int, config: dict, impl: str, variant: str) -> list[dict]:
    """A row for each stage of `count` launches: its time, and how long behind the beginning of
    the first stage it begins, in the mean."""
    if not events or len(events) % count:
        raise ValueError(f"stages: expected a multiple of {count} kernels, got {len(events)}")
    stages = len(events) // count
    launches = [events[at : at + stages] for at in range(0, len(events), stages)]
    found = []
    for stage in range(stages):
        times = sorted(launch[stage]["dur"] for launch in launches)
        begins = [launch[stage]["ts"] - launch[0]["ts"] for launch in launches]
        own = {"part": "stage", "variant": variant, "stage": launches[0][stage]["name"]}
        own["begins_us"] = round(sum(begins) / count, 2)
        row = {"suite": "packed", "impl": impl, "config": config | own, "us": times[count // 2]}
        found.append(row | {"us_min": times[0], "us_max": times[-1]})
    return found


def measure(calls: list, config: dict, impl: str, variant: str) -> list[dict]:
    """The rows of a variant that is bound to each set."""
    return rows(events_of(calls), len(calls[:_MOST_CALLS]), config, impl, variant)
