# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of edges that were taken out of kernels, from the record of remove_edges.py."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/edges.json"

_HEAD = """# Edges taken out of kernels

Made by `tools/scripts/docs.py` from `edges.json`, which `tools/scripts/remove_edges.py` writes; do
not edit. Each fence, wait, arrive, barrier and commit of a kernel was taken out of its PTX, one at
a time, and the rest was run by the [PTX machine](../design/20261126-happens-before.md).

- *caught*: the machine reports a race, the kernel stops, or its numbers are wrong;
- *covered*: nothing is found, and the machine names the edges that order the same accesses;
- *idle*: it orders no accesses;
- *unexplained*: nothing of that.
"""
_KINDS = ["caught", "covered", "idle", "unexplained"]


def share(record: dict[str, dict]) -> tuple[int, int]:
    """How many edges are covered by ones that the machine names, of those that are not caught."""
    covered = sum(len(family["covered"]) for family in record.values())
    others = sum(
        len(family[kind]) for family in record.values() for kind in ("idle", "unexplained")
    )
    return covered, covered + others


def markdown(record: dict[str, dict]) -> str:
    lines = [_HEAD, f"| family | kernel | target | edges | {' | '.join(_KINDS)} |"]
    lines.append("|---|---|---|" + "---:|" * (1 + len(_KINDS)))
    for name, family in record.items():
        counts = [family["caught"], *(len(family[kind]) for kind in _KINDS[1:])]
        cells = [name, f"`{family['kernel']}`", f"`{family['target']}`", family["edges"], *counts]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    covered, listed = share(record)
    lines += ["", f"Of {listed} edges that were not caught, {covered} are"]
    lines += ["covered by edges that the machine names.", "", "## Covered", ""]
    lines += ["| family | line | edge | ordered as well by |", "|---|---:|---|---|"]
    for name, family in record.items():
        for edge in family["covered"]:
            by = ", ".join(f"`{text}`" for text in edge["by"])
            lines.append(f"| {name} | {edge['edge']} | `{edge['text']}` | {by} |")
    lines += ["", "## Idle and unexplained", "", "| family | line | edge | |", "|---|---:|---|---|"]
    for name, family in record.items():
        for edge in [*family["idle"], *family["unexplained"]]:
            lines.append(f"| {name} | {edge['edge']} | `{edge['text']}` | {edge['why']} |")
    return "\n".join(lines) + "\n"
