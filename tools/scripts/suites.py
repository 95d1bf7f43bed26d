# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one test suite as a subprocess and counts its cases from its JUnit XML.

lit, ctest and pytest all write that format, with small differences; a suite
that crashed, wrote nothing or ran nothing never counts as a success.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Case:
    """One case of a suite: its name is the same in every run."""

    name: str
    status: str  # "passed", "failed" or "skipped"
    seconds: float = 0.0
    output: str = ""


@dataclass
class Result:
    """What one suite did; `failed` is at least 1 unless the suite succeeded. Seconds are
    those of the suite's processes, which may run beside those of others."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    cases: list[Case] = field(default_factory=list, repr=False)

    def facts(self) -> dict[str, object]:
        """What records keep of it."""
        counts = {"passed": self.passed, "failed": self.failed, "skipped": self.skipped}
        return {"name": self.name, **counts, "seconds": round(self.seconds, 1)}


def read_cases(xml: Path) -> list[Case] | None:
    """The cases of a JUnit file; None if it cannot be read."""
    try:
        root = ET.parse(xml).getroot()
    except (OSError, ET.ParseError):
        return None
    cases = []
    for case in root.iter("testcase"):
        status = "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            status = "failed"
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            status = "skipped"
        # What googletest prints of a parameter may hold addresses.
        name, group = (
            re.sub(r"\d+-byte object <[^>]*>", "object", case.get(key, "").partition("  # ")[0])
            for key in ("name", "classname")
        )
        full = name if group in ("", name) else f"{group}.{name}"
        output = case.findtext("system-out", "")
        cases.append(Case(full, status, float(case.get("time") or 0), output))
    return cases


def count(xml: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped cases of a JUnit file; (0, 1, 0) if unreadable."""
    cases = read_cases(xml)
    if cases is None:
        return 0, 1, 0
    found = [case.status for case in cases]
    return found.count("passed"), found.count("failed"), found.count("skipped")


def judge(name: str, code: int, xml: Path | None) -> Result:
    """Turns an exit code and the XML (None: the suite is one case) into counts."""
    if xml is None:
        status = "failed" if code else "passed"
        case = Case(name, status)
        return Result(name, passed=int(code == 0), failed=int(code != 0), cases=[case])
    result = Result(name, *count(xml), cases=read_cases(xml) or [])
    if result.failed == 0 and (code != 0 or result.passed == 0):
        result.failed = 1
    return result


def run(
    name: str,
    command: Sequence[str | Path],
    xml: Path | None = None,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    limit_s: float = 3600,
    drop: str | None = None,
    log: Path | None = None,
) -> Result:
    """Runs `command` and returns its counts; its output passes through, less the
    lines that match `drop`. With `log` it goes there, and is printed when all of it is
    there: for a suite that runs beside others."""
    if not log:
        print(f"\n== {name}", flush=True)
    for path in (xml, log):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
    start = time.monotonic()
    code = 127
    kept = log.open("w") if log else None
    try:
        process = subprocess.Popen(
            [str(c) for c in command],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=kept or (subprocess.PIPE if drop else None),
            stderr=subprocess.STDOUT if kept or drop else None,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
    else:
        watchdog = threading.Timer(limit_s, process.kill)
        watchdog.start()
        for line in process.stdout or ():
            if drop is None or not re.search(drop, line):
                print(line, end="", flush=True)
        code = process.wait()
        if not watchdog.is_alive():
            print(f"{name}: stopped after {limit_s:.0f} s", file=sys.stderr)
        watchdog.cancel()
    if kept:
        kept.close()
        print(f"\n== {name}\n{log.read_text(errors='replace')}", end="", flush=True)
    result = judge(name, code, xml)
    result.seconds = time.monotonic() - start
    if xml is None:
        result.cases[0].seconds = result.seconds
    return result
