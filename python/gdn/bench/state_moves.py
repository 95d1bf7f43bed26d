# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What copies of states take: from slot to slot of a pool, with calls of the driver and with the
image's kernels, and to a host tier and back, beside plain copies of as many bytes.

    python3 -m gdn.bench.state_moves MOVES.gdnk --output state-moves.json

MOVES.gdnk has copy_slots and zero_slots of the layer: qwen3.5-9b, 24 layers of 16/32 heads of 128,
49 MiB a slot.
"""

import argparse
import datetime
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from ..host_tier import FORMATS, HostTier
from ..runtime import Runtime
from ..state_pool import StatePool, StatePoolShape

SHAPE = StatePoolShape(
    num_layers=24,
    num_requests=64,
    num_track=0,
    num_key_heads=16,
    num_value_heads=32,
    key_dim=128,
    value_dim=128,
)
COUNTS = (1, 8)
_REPEATS = 15


def on_stream(work: Callable[[], object]) -> float:
    """Microseconds on the current stream, the median."""
    times = []
    for repeat in range(_REPEATS + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        if repeat >= 3:
            times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def until_done(work: Callable[[], object]) -> float:
    """Microseconds until `work`, which waits for what it has begun, returns; the median."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


class Moves:
    """A pool, with as much plain memory beside it."""

    def __init__(self, runtime: Runtime, image: Path):
        self.device, self.runtime = runtime.cuda(), runtime
        self.pool = StatePool(self.device, SHAPE)
        self.slots = self.pool.allocate(2 * max(COUNTS))
        self.bytes = self.pool.mem_bytes // self.pool.num_slots
        self.plain = [
            torch.empty(max(COUNTS) * self.bytes, dtype=torch.uint8, device="cuda")
            for _ in range(2)
        ]
        self.pinned = torch.empty(max(COUNTS) * self.bytes, dtype=torch.uint8).pin_memory()
        loaded = runtime.image(image)
        self.kernels = [self.device.kernel(loaded, name) for name in ("copy_slots", "zero_slots")]

    def row(self, case: str, count: int, us: float, plain_us: float) -> dict:
        moved = count * self.bytes
        row = {"suite": "state-moves", "impl": "gdn", "config": {"case": case, "slots": count}}
        row |= {"bytes": moved, "us": us, "plain_us": plain_us, "gb_per_s": moved / us / 1e3}
        print(f"{case}, {count} slots: {us:.0f} us, a plain copy {plain_us:.0f}", flush=True)
        return row

    def copies(self, case: str) -> list[dict]:
        rows, half = [], max(COUNTS)
        for count in COUNTS:
            first, second = self.slots[:count], self.slots[half : half + count]
            stream, moved = torch.cuda.current_stream(), count * self.bytes
            us = on_stream(lambda a=first, b=second, s=stream: self.pool.copy_states(a, b, s))
            plain = on_stream(lambda n=moved: self.plain[0][:n].copy_(self.plain[1][:n]))
            rows.append(self.row(case, count, us, plain))
        return rows

    def tier(self, format: str | None, threads: int = 1) -> list[dict]:
        tier = HostTier(self.pool, max(COUNTS), format=format, rounding_threads=threads)
        host, stream, rows = tier.allocate(max(COUNTS)), torch.cuda.current_stream(), []
        for count in COUNTS:
            slots, kept, moved = self.slots[:count], host[:count], count * self.bytes

            def store(slots=slots, kept=kept):
                tier.store(slots, kept, stream)
                tier.synchronize(kept)

            def load(slots=slots, kept=kept):
                tier.load(kept, slots, stream)
                torch.cuda.synchronize()

            def plain(to, source, count=moved):
                to[:count].copy_(source[:count], non_blocking=True)
                torch.cuda.synchronize()

            name = f"as {format}" if format else "as they are"
            name += f" on {threads} threads" if threads > 1 else ""
            out = until_done(lambda f=plain: f(self.pinned, self.plain[0]))
            back = until_done(lambda f=plain: f(self.plain[0], self.pinned))
            rows.append(self.row(f"to the host, {name}", count, until_done(store), out))
            rows.append(self.row(f"from the host, {name}", count, until_done(load), back))
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("--commit", required=True, help="that the library and the image are of")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--threads", type=int, nargs="*", default=[], help="that round, besides one alone"
    )
    options = parser.parse_args()
    torch.zeros(1, device="cuda")
    moves = Moves(Runtime(), options.image)
    rows = moves.copies("slot to slot, the driver")
    moves.pool.use_kernels(*moves.kernels)
    rows += moves.copies("slot to slot, kernels")
    for format in FORMATS:
        rows += moves.tier(format)
        for threads in options.threads if format else ():
            rows += moves.tier(format, threads)
    report = {
        "device": torch.cuda.get_device_name(),
        "date": datetime.date.today().isoformat(),
        "commit": options.commit,
        "versions": {"torch": torch.__version__},
        "rows": rows,
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
