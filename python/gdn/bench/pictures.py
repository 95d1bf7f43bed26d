# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pictures of reports show: panels with curves, as plain numbers.

A picture is small multiples: a panel for each heads and types that a table has, and in it how
many times as long as ours each implementation takes. Tables have the times. Drawing needs
matplotlib (`drawing.py`); knowing whether a drawn picture is stale needs only the digest of
what is in it, which a drawn file carries.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from . import channel_tables, grid, packed_tables, prefill_tables, tables

_DRAWING = Path(__file__).with_name("drawing.py")
_OURS = "gdn"


@dataclass
class Panel:
    """Curves by name, each a list of points. Where there are labels, x counts them."""

    title: str
    curves: dict[str, list[tuple[float, float]]]
    labels: list[str]


@dataclass
class Picture:
    title: str
    x: str
    panels: list[Panel]


def _curves(at: dict[float, dict[str, dict]]) -> dict[str, list[tuple[float, float]]]:
    """From rows of a report by x and name: their times over that of ours at the same x."""
    found: dict[str, list] = {}
    for x, rows in at.items():
        if _OURS in rows:
            for name, row in rows.items():
                times = round(row["us"] / rows[_OURS]["us"], 3)
                found.setdefault(name, []).append((x, times))
    return dict(sorted(found.items()))


def _title(heading: str) -> str:
    """Short enough for a panel: types in short, and what is more than heads and types in a
    second line."""
    for name in ("bfloat", "float"):
        heading = heading.replace(name, name[:-4])
    first, *rest = heading.split("; ", 2)
    return "\n".join(["; ".join([first, *rest[:1]]), *rest[1:]])


def _of_rows(report: dict) -> list[Panel]:
    """Decode and verify, over the number of rows. One number of rows alone is not drawn."""
    panels = []
    for suite in tables.SUITES:
        for key, by_rows in sorted(tables.groups(report, suite).items()):
            curves = _curves(dict(sorted(by_rows.items())))
            if len(curves.get(_OURS, [])) > 1:
                panels.append(Panel(_title(tables.heading(key)), curves, []))
    return panels


def _of_lengths(report: dict) -> list[Panel]:
    """Prefill, over sets of lengths in the order of the grid."""
    panels = []
    for suite in ("prefill", packed_tables.SUITE):
        for (keys, values), by_set in sorted(prefill_tables.groups(report, suite).items()):
            names = [name for name in grid.LENGTHS if name in by_set]
            names += [name for name in by_set if name not in grid.LENGTHS]
            if curves := _curves({i: by_set[name] for i, name in enumerate(names)}):
                title = f"Heads {keys}, {values}{prefill_tables.dims_of(by_set)}"
                panels.append(Panel(_title(title), curves, names))
    return panels


def _of_channels(report: dict) -> list[Panel]:
    """Prefill with a decay per channel, over heads and sets of lengths, for each kind of gates."""
    panels: dict[str, dict[str, dict]] = {}
    for (heads, lengths, gates), rows in channel_tables.groups(report).items():
        panels.setdefault(gates, {})[f"{heads} heads, {lengths}"] = rows
    return [
        Panel(_title(f"Gates: {gates}"), _curves(dict(enumerate(places.values()))), list(places))
        for gates, places in panels.items()
    ]


def of_reports(reports: Iterable[dict]) -> Picture | None:
    """The one picture of reports of one device; None where they have nothing that is drawn."""
    by_rows, by_lengths, devices = [], [], {}
    for report in reports:
        devices[report["device"]] = None
        by_rows += _of_rows(report)
        by_lengths += _of_lengths(report) + _of_channels(report)
    if not by_rows and not by_lengths:
        return None
    x = "numbers of rows" if by_rows else "lengths of rows"
    return Picture(", ".join(devices), x, by_rows + by_lengths)


def digest(picture: Picture) -> str:
    """Of what is shown, and of the code that draws it."""
    shown = json.dumps(asdict(picture), sort_keys=True).encode()
    return hashlib.sha256(shown + _DRAWING.read_bytes()).hexdigest()
