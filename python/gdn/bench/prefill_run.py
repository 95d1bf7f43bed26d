# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the grid of prefill, a process for each pair of heads, and gathers one report: what
a peer compiles or caches for one model is not there for the next. No two processes measure
on a GPU at the same time."""

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import limits, prefill_prototype
from .grid import Case, plan
from .report import save

Pair = tuple[int, int]
# Runs one process with these arguments of gdn.bench.prefill, on this GPU, which may be "" for
# the first, and with these descriptors; its exit code.
Start = Callable[[list[str], str, list[int]], int]


def start(arguments: list[str], device: str, descriptors: list[int]) -> int:
    command = [sys.executable, "-m", "gdn.bench.prefill", *arguments]
    environment = os.environ | ({"CUDA_VISIBLE_DEVICES": device} if device else {})
    return subprocess.run(command, env=environment, pass_fds=descriptors).returncode


def arguments_of(options, cases: list[Case], part: Path, seconds: float) -> list[str]:
    """Of the process that measures these rows, which have one pair of heads."""
    keys, values = cases[0].heads
    arguments = [str(options.image), "--part", str(part), "--heads", f"{keys},{values}"]
    arguments += ["--repeats", str(options.repeats)]
    arguments += ["--library", str(options.library)] if options.library else []
    arguments += ["--seconds", f"{seconds:.1f}"]
    arguments += ["--sets", *(case.name for case in cases), "--checked", *options.checked]
    arguments += ["--no-peers"] if options.no_peers else []
    arguments += ["--peers", *options.peers] if options.peers else []
    return arguments + (["--variants"] if options.variants else [])


def add_part(report: dict, heads: Pair, part: Path, code: int) -> None:
    """What one process measured, and what it did not."""
    if part.exists():
        found = json.loads(part.read_text())
        report["rows"] += found["rows"]
        for item in found["not_measured"]:
            if item not in report["not_measured"]:
                report["not_measured"].append(item)
    if code != 0:
        reason = f"its process ended with {code}"
        report["not_measured"].append({"impl": "all", "where": f"{heads}", "reason": reason})


def left_to_measure(report: dict, planned: dict[Pair, list[Case]]) -> dict[Pair, list[Case]]:
    """The planned rows of the grid that the report has no row of ours of."""
    configs = [row["config"] for row in report["rows"] if row["impl"].startswith("gdn")]
    done = {(config["Hk"], config["Hv"], config["set"]) for config in configs}
    left = {
        heads: [case for case in cases if (*heads, case.name) not in done]
        for heads, cases in planned.items()
    }
    return {heads: cases for heads, cases in left.items() if cases}


def share(pairs: list[Pair], devices: list[str]) -> dict[str, list[Pair]]:
    """The pairs that each GPU measures, about as many value heads each."""
    shares: dict[str, list[Pair]] = {device: [] for device in devices}
    for pair in sorted(pairs, key=lambda pair: -pair[1]):
        least = min(devices, key=lambda device: sum(values for _, values in shares[device]))
        shares[least].append(pair)
    return {device: [pair for pair in pairs if pair in shares[device]] for device in devices}


class Run:
    """The processes of a run, and the report that they write together."""

    def __init__(self, options, report: dict, end: float, start: Start):
        self.options, self.report, self.end, self.start = options, report, end, start
        self.writing = threading.Lock()

    def process(self, device: str, cases: list[Case], turn: int | None = None) -> None:
        """One process, from its start to what it adds to the report. `turn` is a descriptor
        with a shared lock that goes to the process."""
        heads = cases[0].heads
        part = self.options.output.with_suffix(f".{heads[0]}-{heads[1]}.part.json")
        part.unlink(missing_ok=True)
        left, code = self.end - time.monotonic(), 0
        if left > 0:
            arguments = arguments_of(self.options, cases, part, left)
            arguments += [] if turn is None else ["--turn", str(turn)]
            code = self.start(arguments, device, [] if turn is None else [turn])
        if turn is not None:
            os.close(turn)
        with self.writing:
            if left <= 0:
                item = {"impl": "all", "where": f"{heads}", "reason": "no time was left"}
                self.report["not_measured"].append(item)
            add_part(self.report, heads, part, code)
            part.unlink(missing_ok=True)
            limits.add_prefill_limits(self.report["rows"], self.report["ceilings"])
            save(self.options.output, self.report)

    def one_after_the_other(self, device: str, all_cases: list[list[Case]]) -> None:
        for cases in all_cases:
            self.process(device, cases)

    def prepared_together(self, device: str, all_cases: list[list[Case]]) -> None:
        """All processes start at once, each with a shared lock of one file, under which they
        compile. Each then asks for the lock alone: it has it when all have compiled, and
        gives it back when it ends."""
        lock = self.options.output.with_suffix(f".{device or 'gpu'}.lock")
        turns = []
        for _ in all_cases:
            turns.append(os.open(lock, os.O_RDWR | os.O_CREAT))
            fcntl.flock(turns[-1], fcntl.LOCK_SH)
        with ThreadPoolExecutor(len(all_cases)) as pool:
            work = zip([device] * len(all_cases), all_cases, turns, strict=True)
            list(pool.map(lambda arguments: self.process(*arguments), work))
        lock.unlink()


def measure(options, describe: Callable[[], dict], start: Start = start) -> dict:
    """The report. `describe` gives what a report says about the machine. Written after each
    process, so that a run that is cut short leaves what it has, and another can go on."""
    end = time.monotonic() + options.seconds
    if options.resume and options.output.exists():
        report = json.loads(options.output.read_text())
        report["not_measured"] = []  # whatever is not there is tried again
    else:
        report = describe() | {"not_measured": [], "rows": []}
        if options.prototype:
            report["rows"] += prefill_prototype.rows(options.prototype)
    planned = left_to_measure(report, plan(options.heads, options.sets))
    devices = options.devices or [""]
    shares = share(list(planned), devices)
    run = Run(options, report, end, start)
    on_device = run.prepared_together if options.together else run.one_after_the_other
    with ThreadPoolExecutor(len(devices)) as pool:
        futures = [
            pool.submit(on_device, device, [planned[pair] for pair in pairs])
            for device, pairs in shares.items()
            if pairs
        ]
    for future in futures:
        future.result()
    return report
