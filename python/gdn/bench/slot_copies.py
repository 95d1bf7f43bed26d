# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What it takes on a GPU to copy and zero slots of a pool, beside plain copies of as many bytes:
from an idle device, behind work that is queued, and in graphs. Every bit of the pool is compared.

    python3 -m gdn.bench.slot_copies MOVES.gdnk --commit C --output slot-copies.json \\
        [--before MOVES-BEFORE.gdnk --library-before libgdnrt.so.0]

Images have copy_slots and zero_slots of qwen3.5-9b: 24 layers of 16/32 heads of 128, 49 MiB a slot,
at 48 places, of a pool of 64. Calls take other slots in turn, so that no cache has them.
"""

import argparse
import datetime
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import torch

from ..runtime import Runtime
from ..state_pool import StatePool
from .state_moves import COUNTS, SHAPE

_REPEATS, _CALLS, _GRAPHS = 16, 4, 4
#: Cycles for which the device is kept busy while work is queued: a quarter of a millisecond.
_BUSY = 500_000

#: Does the work once, on slots that the number chooses.
Work = Callable[[int], object]


def _between(work: Callable[[], object]) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    return start, end


def _median(events: list) -> float:
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) * 1e3 for start, end in events)


def from_idle(work: Work) -> float:
    """Microseconds of a call on a device that waits for it, with those of the host; the median."""
    events = []
    for repeat in range(_REPEATS + 3):
        torch.cuda.synchronize()
        events.append(_between(lambda r=repeat: work(r)))
    return _median(events[3:])


def queued(work: Work, calls: int = 1) -> float:
    """Microseconds of each of `calls` calls, all there when the device gets to the first."""
    work(0)
    events = []
    for repeat in range(_REPEATS):
        torch.cuda.synchronize()
        torch.cuda._sleep(_BUSY * (1 + calls // 4))
        events.append(_between(lambda r=repeat: [work(r * calls + each) for each in range(calls)]))
    return _median(events) / calls


def graphed(work: Work) -> float:
    """Microseconds of a graph of one call, whose launch is queued. Graphs take turns; each has
    run before, since pages that were mapped anew make the first runs longer."""
    graphs = []
    for number in range(_GRAPHS):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work(number)
        graphs.append(graph)
    events = []
    for repeat in range(_REPEATS + 8 * _GRAPHS):
        torch.cuda.synchronize()
        torch.cuda._sleep(_BUSY)
        events.append(_between(graphs[repeat % _GRAPHS].replay))
    return _median(events[8 * _GRAPHS :])


class Slots:
    """Memory of a pool as PyTorch's arrays, and as much plain memory beside it."""

    def __init__(self):
        slots = 1 + SHAPE.num_requests
        heads = (SHAPE.num_value_heads, SHAPE.value_dim, SHAPE.key_dim)
        channels = 2 * SHAPE.num_key_heads * SHAPE.key_dim + heads[0] * heads[1]
        window = (channels, SHAPE.conv_width - 1)
        self.states = torch.empty(SHAPE.num_layers, slots, *heads, device="cuda")
        self.windows = torch.empty(
            SHAPE.num_layers, slots, *window, dtype=torch.bfloat16, device="cuda"
        )
        #: The bits, whatever numbers they are.
        self.bits = self.states.view(torch.int32), self.windows.view(torch.int16)
        self.bytes = sum(each[:, 0].nbytes for each in self.bits)
        half = SHAPE.num_requests // 2 * self.bytes
        self.plain = [torch.empty(half, dtype=torch.uint8, device="cuda") for _ in range(2)]
        self.draw()

    def draw(self) -> None:
        """Other bits in every slot."""
        for each in (*self.bits, *self.plain):
            limits = torch.iinfo(each.dtype)
            each.random_(limits.min, limits.max)

    def pool(self, runtime: Runtime, image: Path) -> StatePool:
        """The pool with the kernels of an image."""
        device, loaded = runtime.cuda(), runtime.image(image)
        pool = StatePool.wrap(device, SHAPE, list(self.states), list(self.windows))
        pool.allocate(SHAPE.num_requests, zero=False)
        pool.use_kernels(*(device.kernel(loaded, name) for name in ("copy_slots", "zero_slots")))
        return pool

    def pairs(self, number: int, count: int) -> tuple[list[int], list[int]]:
        """`count` slots of one half, and those that they are copied to in the other."""
        half = SHAPE.num_requests // 2
        first = 1 + number % (half // count) * count
        return [list(range(at, at + count)) for at in (first, first + half)]

    def is_equal(self, work: Work, count: int, zeroes: bool = False) -> bool:
        """Whether a call has the bits that it should in its slots, and leaves all others."""
        self.draw()
        source, target = self.pairs(1, count)
        expected = [each.clone() for each in self.bits]
        for each in expected:
            each[:, target] = 0 if zeroes else each[:, source]
        work(1)
        torch.cuda.synchronize()
        return all(map(torch.equal, expected, self.bits))

    def plain_copy(self, count: int) -> Work:
        size = count * self.bytes

        def copy(number: int) -> None:
            at = number % (SHAPE.num_requests // 2 // count) * size
            self.plain[0][at : at + size].copy_(self.plain[1][at : at + size])

        return copy

    def row(
        self, impl: str, case: str, count: int, work: Work, check: Callable[[], bool] | None = None
    ) -> dict:
        """Times of one kind of work; raises AssertionError where bits are wrong."""
        row = {"suite": "state-moves", "impl": impl, "config": {"case": case, "slots": count}}
        row["bytes"] = count * self.bytes
        if check is not None:
            assert check(), f"{impl}: {case}, {count} slots: bits are wrong"
            row["equal_bits"] = True
        row |= {"idle_us": from_idle(work), "queued_us": queued(work)}
        row |= {"in_a_row_us": queued(work, _CALLS), "graph_us": graphed(work)}
        if check is not None:
            assert check(), f"{impl}: {case}, {count} slots: bits are wrong behind the graphs"
        times = ", ".join(
            f"{name[:-3]} {us:.1f}" for name, us in row.items() if name.endswith("_us")
        )
        print(f"{impl}: {case}, {count} slots: {times} us", flush=True)
        return row

    def rows_of(self, impl: str, pool: StatePool) -> list[dict]:
        """Of a pool's copies and resets."""
        rows = []
        for count in COUNTS:
            pairs = [
                self.pairs(number, count) for number in range(SHAPE.num_requests // 2 // count)
            ]

            def copy(number: int, pairs=pairs) -> None:
                pool.copy_states(*pairs[number % len(pairs)], torch.cuda.current_stream())

            def reset(number: int, pairs=pairs) -> None:
                pool.reset_states(pairs[number % len(pairs)][1], torch.cuda.current_stream())

            for case, work in (("copy", copy), ("zero", reset)):
                check = lambda w=work, z=case == "zero", n=count: self.is_equal(w, n, z)  # noqa: E731
                rows.append(self.row(impl, case, count, work, check))
        return rows

    def plain_rows(self) -> list[dict]:
        return [self.row("plain", "copy", count, self.plain_copy(count)) for count in COUNTS]


def report(commit: str, rows: list[dict]) -> dict:
    return {
        "device": torch.cuda.get_device_name(),
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "versions": {"torch": torch.__version__},
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("--commit", required=True, help="that the library and the image are of")
    parser.add_argument("--before", type=Path, help="an image of another version")
    parser.add_argument("--library-before", type=Path, help="the library of that version")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    slots = Slots()
    rows = slots.plain_rows()
    if options.before:
        before = Runtime(options.library_before)
        rows += slots.rows_of("gdn-before", slots.pool(before, options.before))
    rows += slots.rows_of("gdn", slots.pool(Runtime(), options.image))
    rows += slots.plain_rows()
    options.output.write_text(json.dumps(report(options.commit, rows), indent=1) + "\n")


if __name__ == "__main__":
    main()
