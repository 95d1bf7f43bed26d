# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long suites and tests take: what each run writes, and the record.

A run of ./check writes build/check-times.json: seconds of the whole, of each suite, and of
each test, the longest first. The run before it stays as build/check-times.before.json. The
record is docs/generated/check-times.json: seconds by suite of runs that were measured from
clean clones on two cores with nothing beside them, under `before` (of ./check as it was on
25 November 2026), `cold` (no file compiled before), `warm` (after a change to one pass)
and `full`.

    check_times.py --record=warm     enters the last run into the record, with its commit
    check_times.py --names           prints the name of every case of the last run
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import suites

ROOT = Path(__file__).resolve().parents[2]
LAST = ROOT / "build/check-times.json"
BEFORE = ROOT / "build/check-times.before.json"
RECORD = ROOT / "docs/generated/check-times.json"
DURATIONS = ROOT / "test/python/durations.json"
KINDS = ("before", "cold", "warm", "full")
SHOWN = 10


def facts_of(results: list[suites.Result], wall: float, commit: str) -> dict:
    """What a run writes."""
    tests = [(f"{suite.name}: {case.name}", case) for suite in results for case in suite.cases]
    tests.sort(key=lambda pair: (-pair[1].seconds, pair[0]))
    return {
        "commit": commit,
        "wall": round(wall, 1),
        "suites": {suite.name: round(suite.seconds, 1) for suite in results},
        "tests": {name: round(case.seconds, 2) for name, case in tests},
    }


def write(facts: dict) -> None:
    """Keeps a run, and the one before it."""
    LAST.parent.mkdir(parents=True, exist_ok=True)
    if LAST.exists():
        LAST.replace(BEFORE)
    LAST.write_text(json.dumps(facts, indent=1) + "\n")


def read(path: Path) -> dict:
    """A record, empty if there is none."""
    return json.loads(path.read_text()) if path.exists() else {}


def slowest(facts: dict) -> list[str]:
    """Lines about the tests that took longest."""
    tests = list(facts["tests"].items())[:SHOWN]
    return [f"  {seconds:7.1f} s  {name}" for name, seconds in tests]


def comparison(facts: dict, record: dict) -> list[str]:
    """A table of suites: this run beside the record."""
    kinds = [kind for kind in KINDS if kind in record]
    names = list(facts["suites"])
    for kind in kinds:
        names += [name for name in record[kind] if name not in [*names, "wall"]]
    columns = ["this run", *kinds]
    width = max(map(len, [*names, "wall"]))
    lines = [" " * width + "".join(f"{column:>12}" for column in columns)]
    for name in [*names, "wall"]:
        own = facts["wall"] if name == "wall" else facts["suites"].get(name)
        row = [own, *(record[kind].get(name) for kind in kinds)]
        cells = ("-" if seconds is None else f"{seconds:.1f} s" for seconds in row)
        lines.append(f"{name:{width}}" + "".join(f"{cell:>12}" for cell in cells))
    return lines


def grown(facts: dict, before: dict) -> list[str]:
    """Lines about tests that took half as long again as in the run before, and a second
    more."""
    lines = []
    for name, seconds in facts["tests"].items():
        earlier = before.get("tests", {}).get(name)
        if earlier is not None and seconds > 1.5 * earlier and seconds > earlier + 1:
            lines.append(f"  {earlier:7.1f} s -> {seconds:7.1f} s  {name}")
    return lines


def show() -> int:
    """Prints the last run beside the record and beside the run before it."""
    facts = read(LAST)
    if not facts:
        print("check: no run has been timed here yet", file=sys.stderr)
        return 1
    print("\n".join(comparison(facts, read(RECORD))))
    print("\nthe slowest tests", *slowest(facts), sep="\n")
    if more := grown(facts, read(BEFORE)):
        print("\nlonger than in the run before", *more, sep="\n")
    return 0


def enter(kind: str) -> None:
    """Enters the last run into the record, and how long tests of Python take."""
    facts, record = read(LAST), read(RECORD)
    record[kind] = facts["suites"] | {"wall": facts["wall"]}
    if kind != "before":
        record["commit"] = facts["commit"]
    order = [*KINDS, "commit"]
    record = {key: record[key] for key in sorted(record, key=order.index)}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    if kind in ("cold", "full"):
        seconds = {
            f"{match[1].replace('.', '/')}.py::{match[2]}": took
            for name, took in facts["tests"].items()
            if took >= 0.1
            and (match := re.match(r"(?:pytest|full): ([\w.]+)\.(test_\w+.*)$", name))
        }
        if kind == "cold":  # long tests did not run
            seconds = read(DURATIONS) | seconds
        DURATIONS.write_text(json.dumps(dict(sorted(seconds.items())), indent=0) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", choices=KINDS, help="enter the last run as this")
    parser.add_argument("--names", action="store_true", help="names of all cases")
    options = parser.parse_args()
    if options.names:
        print("\n".join(sorted(read(LAST)["tests"])))
        return 0
    if options.record:
        enter(options.record)
    return show()


if __name__ == "__main__":
    sys.exit(main())
