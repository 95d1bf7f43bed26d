# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of the hand-written prefill, from what its own program prints in the same run: heads,
rows and their length, consumer warpgroups and parts of a row, microseconds, twice."""

import re
from pathlib import Path

from .grid import Case

_LINE = re.compile(
    r"BENCH (\d+)/(\d+) (\d+)x(\d+) +nwg (\d+) nseg +(\d+) +([\d.]+) us +\(again +([\d.]+)\)"
)


def rows(path: Path) -> list[dict]:
    """Rows of a report, of impl `prototype`: for each case the plan that was fastest."""
    fastest: dict[Case, dict] = {}
    for found in _LINE.finditer(path.read_text()):
        keys, values, count, length, groups, parts = map(int, found.groups()[:6])
        times = [float(time) for time in found.groups()[6:]]
        case = Case((keys, values), f"{length}x{count}" if count > 1 else f"1x{length}")
        config = case.config("bfloat16", "float32") | {"variant": f"nwg{groups} parts{parts}"}
        row = {"suite": "prefill", "impl": "prototype", "config": config}
        row |= {"us": min(times), "us_min": min(times), "us_max": max(times)}
        if case not in fastest or row["us"] < fastest[case]["us"]:
            fastest[case] = row
    if not fastest:
        raise ValueError(f"{path}: expected lines that begin with BENCH, found none")
    return list(fastest.values())
