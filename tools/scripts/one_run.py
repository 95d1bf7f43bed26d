# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs everything that CTest knows in one call, on all cores, and gives suites.

CTest is the one scheduler: googletest's cases, conformance runs, shards of lit and of
pytest, and single scripts are tests of it, the longest first. Which suite a test belongs
to, its label says. A test with a file results/<name>.xml of its own, which it writes
while it runs, stands for the cases in that file.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import suites

# Labels and the suites that they make, in the order of the summary.
LABELS = {
    "lock": "kernels.lock",
    "lit": "lit",
    "unit": "unit",
    "integration": "integration",
    "cts": "conformance",
    "python": "pytest",
    "full": "full",
    "traces": "traces",
    "fuzz": "fuzz",
}
# What a plain run leaves out.
LONG = ("full", "fuzz", "traces")
# Of one call of ctest, in which all that --full adds may run.
LIMIT_S = 3 * 3600
# run_once.py says so of a command that did not run.
AGAIN = "run_once: passed before"
# Lines of ctest about tests that nobody has to look at.
PASSED = (
    r"^ +Start +\d+:|^ *\d+/\d+ Test .* (Passed|\*\*\*Skipped) |"
    r"^The following tests did|^\s+\d+ - .* \(Skipped\)$"
)


def labels_of(build: Path) -> dict[str, str]:
    """The suite of each test."""
    command = ["ctest", "--test-dir", build, "--show-only=json-v1"]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    found = {}
    for test in json.loads(done.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels = properties.get("LABELS", ["unit"])
        found[test["name"].partition("  # ")[0]] = next(
            (LABELS[label] for label in LABELS if label in labels), "unit"
        )
    return found


def collect(ctest: suites.Result, labels: dict[str, str], results: Path) -> list[suites.Result]:
    """Turns the cases of a CTest run into suites. A failed test whose own file has no
    failed case is a failed case by itself; so is a case that two shards have run, since then
    another may have run in none."""
    found: dict[str, suites.Result] = {}
    ran_in: dict[str, str] = {}
    for case in ctest.cases:
        name = labels.get(case.name, "unit")
        suite = found.setdefault(name, suites.Result(name))
        suite.seconds += case.seconds
        own = suites.read_cases(results / f"{case.name}.xml")
        cases = [case] if own is None else own
        if case.status == "failed" and all(each.status != "failed" for each in cases):
            cases = [*cases, case] if own is not None else cases
        suite.cases += cases
        for each in own or []:
            other = ran_in.setdefault(f"{name}: {each.name}", case.name)
            if other != case.name:
                what = f"{each.name} in {other} and {case.name}"
                print(f"{name}: shards overlap: {what}")
                suite.cases.append(suites.Case(f"shards overlap: {what}", "failed"))
    for suite in found.values():
        status = [case.status for case in suite.cases]
        suite.passed, suite.failed = status.count("passed"), status.count("failed")
        suite.skipped = status.count("skipped")
    if ctest.failed and not any(suite.failed for suite in found.values()):
        found["ctest"] = suites.Result("ctest", failed=1)
    order = list(LABELS.values())
    return sorted(found.values(), key=lambda s: order.index(s.name) if s.name in order else 99)


def run(build: Path, jobs: int, select: list[str], name: str = "tests") -> list[suites.Result]:
    """The suites of those tests that `select`, arguments of ctest, names."""
    results = build / "results"
    for old in results.glob("*.xml"):
        old.unlink()
    xml = results / "ctest.xml"
    command = ["ctest", "--test-dir", build, "--output-on-failure", "-j", str(jobs)]
    command += ["--output-junit", xml, *select]
    ran = suites.run(name, command, xml, limit_s=LIMIT_S, drop=PASSED)
    return collect(ran, labels_of(build), results)
