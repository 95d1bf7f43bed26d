# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the grid of prefill, a process for each pair of heads, and gathers one report: what
a peer compiles or caches for one model is not there for the next."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from . import limits
from .grid import Case, plan

# Runs one process with these arguments of gdn.bench.prefill; its exit code.
Start = Callable[[list[str]], int]


def start(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "gdn.bench.prefill", *arguments]
    return subprocess.run(command).returncode


def arguments_of(options, cases: list[Case], part: Path, seconds: float) -> list[str]:
    """Of the process that measures these rows, which have one pair of heads."""
    keys, values = cases[0].heads
    arguments = [str(options.image), "--part", str(part), "--heads", f"{keys},{values}"]
    arguments += ["--library", str(options.library), "--repeats", str(options.repeats)]
    arguments += ["--seconds", f"{seconds:.1f}"]
    arguments += ["--sets", *(case.name for case in cases), "--checked", *options.checked]
    arguments += ["--no-peers"] if options.no_peers else []
    arguments += ["--peers", *options.peers] if options.peers else []
    return arguments + (["--variants"] if options.variants else [])


def add_part(report: dict, heads: tuple[int, int], part: Path, code: int) -> None:
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


def measure(options, describe: Callable[[], dict], start: Start = start) -> dict:
    """The report. `describe` gives what a report says about the machine. Written after each
    process, so that a run that is cut short leaves what it has."""
    end = time.monotonic() + options.seconds
    report = describe() | {"not_measured": [], "rows": []}
    part = options.output.with_suffix(".part.json")
    for heads, cases in plan(options.heads, options.sets).items():
        left = end - time.monotonic()
        if left <= 0:
            reason = "no time was left"
            report["not_measured"].append({"impl": "all", "where": f"{heads}", "reason": reason})
            continue
        part.unlink(missing_ok=True)
        code = start(arguments_of(options, cases, part, left))
        add_part(report, heads, part, code)
        part.unlink(missing_ok=True)
        limits.add_prefill_limits(report["rows"], report["ceilings"])
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    return report
