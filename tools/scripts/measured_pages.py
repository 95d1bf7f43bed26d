# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages of recorded measurements: one for each suite, with one picture of all its heads and types.

A page is made of one report of runtime/bench/results, or of several that belong together: the
grid of prefill with other heads, and what was measured of hosts. Then each report has a section
of its name. What is recorded of prefix caches has a page of its own form.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "runtime/bench/results"
PREFIX_CACHE = RESULTS / "prefix-cache.json"
sys.path.insert(0, str(ROOT / "python"))

from gdn.bench import (  # noqa: E402
    channel_tables,
    drawing,
    packed_tables,
    pictures,
    prefill_tables,
    prologue_tables,
    step_tables,
    tables,
    transformers_tables,
)


@dataclass
class Page:
    name: str
    reports: list[Path]
    text: str
    picture: pictures.Picture | None

    def is_drawn(self, path: Path) -> bool:
        """Whether this file is the picture, which carries a digest of what it shows."""
        return path.exists() and f"sha256:{pictures.digest(self.picture)}" in path.read_text()

    def draw(self, path: Path) -> None:
        path.write_text(drawing.svg(self.picture))


def page_of(report: str) -> str:
    """The page that a report is on, by their names without an ending."""
    if re.match(r"(host|compile|cpu)-", report):
        return "host"
    return re.sub(r"^(prefill|packed)-\d+x\d+-\w+-", r"\1-", report)


def sections(report: dict) -> list[tuple[str, str]]:
    """Titles and texts of what a report has rows of."""
    found = [
        (suite.capitalize(), tables.markdown(report, suite))
        for suite in tables.SUITES
        if tables.groups(report, suite)
    ]
    found.append(("Prefill", prefill_tables.markdown(report)))
    found.append(("Prefill with a decay for each channel", channel_tables.markdown(report)))
    found.append(("Prefill of projections", packed_tables.markdown(report)))
    found.append(("Stages of a prefill", prologue_tables.markdown(report)))
    found.append(("Decode through a layer", step_tables.markdown(report)))
    found.append(("Models of transformers", transformers_tables.markdown(report)))
    if table := tables.host(report):
        found.append(("Host", f"{report['device']}, {report['date']}\n\n{table}"))
    return [(title, text.rstrip()) for title, text in found if text]


def text_of(name: str, reports: dict[str, dict], picture: pictures.Picture | None) -> str:
    """The page of these reports by their names."""
    lines = []
    for stem, report in reports.items():
        for title, text in sections(report):
            if len(reports) == 1:
                heading = f"{title}: {report['device']}"
                lines += [f"{'##' if lines else '#'} {heading}", "", text, ""]
            else:
                lines += [] if lines else [f"# {title}", ""]
                lines += [f"## {stem}", "", text, ""]
    if picture:
        alt = f"How many times as long as gdn others take, by {picture.x}"
        lines[2:2] = [f"![{alt}]({name}.svg)", ""]
    return "\n".join(lines)


@functools.cache
def pages() -> list[Page]:
    """All of them. Reports without a table have none; that of which a page has its name is
    the first on it."""
    owners: dict[str, list[Path]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        owners.setdefault(page_of(path.stem), []).append(path)
    made = []
    for name, paths in sorted(owners.items()):
        paths.sort(key=lambda path: (path.stem != name, path.stem))
        reports = {path.stem: json.loads(path.read_text()) for path in paths}
        reports = {s: r for s, r in reports.items() if "rows" in r and sections(r)}
        if reports:
            picture = pictures.of_reports(reports.values())
            text = text_of(name, reports, picture)
            made.append(Page(name, [p for p in paths if p.stem in reports], text, picture))
    return made
