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
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Result:
    """What one suite did; `failed` is at least 1 unless the suite succeeded."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0


def count(xml: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped cases of a JUnit file; (0, 1, 0) if unreadable."""
    passed = failed = skipped = 0
    try:
        root = ET.parse(xml).getroot()
    except (OSError, ET.ParseError):
        return 0, 1, 0
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def judge(name: str, code: int, xml: Path | None) -> Result:
    """Turns an exit code and the XML (None: the suite is one case) into counts."""
    if xml is None:
        return Result(name, passed=int(code == 0), failed=int(code != 0))
    result = Result(name, *count(xml))
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
    return result
