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
- *repeated*: no access of the run relies on it, and the machine names the edges that tell the same;
- *idle*: it tells nothing, or only the end of the launch tells the same;
- *unexplained*: nothing of that.
"""
KINDS = ["caught", "covered", "repeated", "idle", "unexplained"]
_NAMED = ["covered", "repeated"]


def share(record: dict[str, dict]) -> tuple[int, int]:
    """How many edges the machine has another name for, of those that are not caught."""
    named = sum(len(family[kind]) for family in record.values() for kind in _NAMED)
    others = sum(
        len(family[kind]) for family in record.values() for kind in ("idle", "unexplained")
    )
    return named, named + others


def markdown(record: dict[str, dict]) -> str:
    lines = [_HEAD, f"| family | kernel | target | edges | {' | '.join(KINDS)} |"]
    lines.append("|---|---|---|" + "---:|" * (1 + len(KINDS)))
    for name, family in record.items():
        counts = [family["caught"], *(len(family[kind]) for kind in KINDS[1:])]
        cells = [name, f"`{family['kernel']}`", f"`{family['target']}`", family["edges"], *counts]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    named, listed = share(record)
    lines += ["", f"Of {listed} edges that were not caught, {named} are"]
    lines += ["covered or repeated by edges that the machine names."]
    for kind, title in zip(_NAMED, ("ordered as well by", "told as well by"), strict=True):
        lines += ["", f"## {kind.capitalize()}", ""]
        lines += [f"| family | line | edge | {title} |", "|---|---:|---|---|"]
        for name, family in record.items():
            for edge in family[kind]:
                by = ", ".join(f"`{text}`" for text in edge["by"])
                lines.append(f"| {name} | {edge['edge']} | `{edge['text']}` | {by} |")
    lines += ["", "## Idle and unexplained", "", "| family | line | edge | |", "|---|---:|---|---|"]
    for name, family in record.items():
        for edge in [*family["idle"], *family["unexplained"]]:
            lines.append(f"| {name} | {edge['edge']} | `{edge['text']}` | {edge['why']} |")
    return "\n".join(lines) + "\n"
