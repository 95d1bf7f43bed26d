# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin of pytest under which a suite runs: gdn's functions under the suite's names, without
gradients, and a file with what came out."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from .suites import SUITES, Suite


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suites of other libraries")
    group.addoption("--peer-suite", choices=list(SUITES), help="the suite")
    group.addoption("--peer-device", choices=("cpu", "cuda"), help="where it runs")
    group.addoption("--peer-every", type=int, default=1, help="each nth case of a test alone")
    group.addoption(
        "--peer-share", default="0/1", help="of those the k-th, from 0, of n shares: k/n"
    )
    group.addoption("--peer-output", type=Path, help="the file with the counts")


def pytest_configure(config: pytest.Config) -> None:
    suite = SUITES[config.getoption("--peer-suite")]
    config.addinivalue_line("markers", "long_running: of a suite")
    names = importlib.import_module(f"peers.{suite.names}")
    names.install(config.getoption("--peer-device"))
    forward = importlib.import_module("peers.forward").ForwardOnly()
    config.pluginmanager.register(Results(config, suite, forward), "peer-results")


class Results:
    """Which tests run, and how they end."""

    def __init__(self, config: pytest.Config, suite: Suite, forward):
        self.config, self.suite, self.forward = config, suite, forward
        self.counts, self.without_gradients = Counter(), 0
        self.refused: Counter[tuple[str, str]] = Counter()
        self.failures: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        every = self.config.getoption("--peer-every")
        share, shares = map(int, self.config.getoption("--peer-share").split("/"))
        taken = 0
        patterns = self.suite.left_out(self.config.getoption("--peer-device"))
        seen: Counter[str] = Counter()
        kept, left = [], []
        for item in items:
            why = _why(patterns, item.name)
            if why and share == 0:
                self.refused[item.name.partition("[")[0], why] += 1
            seen[item.originalname] += not why
            is_taken = not why and (seen[item.originalname] - 1) % every == 0
            taken += is_taken
            (kept if is_taken and taken % shares == share else left).append(item)
        self.config.hook.pytest_deselected(items=left)
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item):
        with self.forward:
            try:
                return (yield)
            finally:
                self.without_gradients += self.forward.asked

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.counts["failed"] += report.nodeid not in self.failures
            self.failures[report.nodeid] = str(report.longrepr)[-600:]
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            name = report.nodeid.rpartition("::")[2].partition("[")[0]
            if why := _why(self.suite.reasons, reason):
                self.refused[name, why] += 1
            else:
                self.counts["skipped"] += 1
        elif report.when == "call":
            self.counts["passed"] += 1

    def pytest_sessionfinish(self) -> None:
        refused = [
            {"test": test, "cases": cases, "why": why}
            for (test, why), cases in sorted(self.refused.items())
        ]
        if self.without_gradients:
            row = {"test": "gradients", "cases": self.without_gradients, "why": "backward"}
            refused.append(row)
        found = {key: self.counts[key] for key in ("passed", "failed", "skipped")}
        found |= {"not_expressible": refused, "failures": self.failures}
        self.config.getoption("--peer-output").write_text(json.dumps(found))


def _why(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((why for pattern, why in table if re.search(pattern, text)), None)
