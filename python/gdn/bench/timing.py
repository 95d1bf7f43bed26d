# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of work on a GPU, from replays of a graph of calls back to back."""

import time
from collections.abc import Callable

import torch

# Buffers rotate over more than any cache holds.
BYTES_BEYOND_CACHE = 384 << 20
MOST_SETS = 200
_WARM_UP = 3


def number_of_sets(state_bytes: int) -> int:
    """Sets of states over which launches rotate, so that each finds its own cold."""
    return max(2, min(MOST_SETS, -(-BYTES_BEYOND_CACHE // max(state_bytes, 1))))


def graph_of(calls: list[Callable[[], object]]) -> torch.cuda.CUDAGraph:
    """Of calls that have run before, back to back."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def time_calls(calls: list[Callable[[], object]], repeats: int = 15) -> dict[str, float]:
    """Microseconds of one call: the median, fastest and slowest of `repeats` replays of a
    graph that holds every call once. Each runs once before, so that what compiles or
    allocates at first use has done so."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = graph_of(calls)
    times = []
    for replay in range(_WARM_UP + repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if replay >= _WARM_UP:
            times.append(start.elapsed_time(end) * 1e3 / len(calls))
    times.sort()
    return {"us": times[len(times) // 2], "us_min": times[0], "us_max": times[-1]}


def host_times(calls: list[Callable[[], object]], launches: int = 40) -> dict[str, float]:
    """Microseconds of the host for one call, outside of a graph: the median, fastest and
    slowest of single calls, which do not wait for the GPU as long as its queue has room."""
    torch.cuda.synchronize()
    times = []
    for index in range(launches):
        call = calls[index % len(calls)]
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e6)
    torch.cuda.synchronize()
    times.sort()
    return {"us": times[launches // 2], "us_min": times[0], "us_max": times[-1]}


def first_call_ms(call: Callable[[], object]) -> float:
    """Milliseconds until the first call of something has run: compilation with it."""
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3
