# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of prefill of packed projections: ours beside the peers' chains of kernels, what the
best chain takes beside ours, fractions of the limit, errors, stages, and what was not
measured."""

from . import prefill_tables
from .grid import DIM
from .prefill_tables import (
    dims_of,
    errors,
    groups,
    heading,
    is_peer,
    names_of,
    not_measured,
    table_of,
)

# What is asked for beside the best chain: the geometric mean of its time over ours, and the
# smallest ratio of a row.
GOALS = {("gdn", "best peer"): (1.8, 1.4)}
# Of other heads than the grid's FLA alone has a chain.
GOALS_OF_OTHERS = {("gdn", "fla"): (1.5, 0.0)}
SUITE = "packed"


def checked(report: dict) -> prefill_tables.Rows:
    """Rows whose results were compared with float64."""
    rows = [row for row in report["rows"] if row["suite"] == SUITE and "error_o" in row]
    return {(0, 0): {str(index): {row["impl"]: row} for index, row in enumerate(rows)}}


def times(by_set: dict[str, dict[str, dict]], ours: list[str], peers: list[str]) -> list[str]:
    """Microseconds of one pair of heads, which part of ours a copy of what has to be moved
    takes, and how many times as long as ours the best chain takes."""
    table = []
    for name, rows in by_set.items():
        cells = [f"{rows[n]['us']:.1f}" if n in rows else "" for n in ours + peers]
        limit = next((row["limit_us"] for row in rows.values() if "limit_us" in row), None)
        cells.append(f"{limit:.1f}" if limit else "")
        best = min((rows[n]["us"] for n in peers if n in rows), default=None)
        for n in ours:
            cells.append(f"{100 * limit / rows[n]['us']:.0f} %" if limit and n in rows else "")
            cells.append(f"{best / rows[n]['us']:.2f}" if best and n in rows else "")
        chosen = [rows[n]["config"]["variant"] for n in ours if n in rows]
        table.append([name, *cells, ", ".join(dict.fromkeys(chosen))])
    header = ["lengths", *ours, *peers, "limit"]
    for n in ours:
        header += [f"{n}, of it", f"best chain / {n}"]
    return table_of([*header, "our variant"], table)


def stages(report: dict) -> list[str]:
    """Of each set how long each stage of ours takes, in the order in which they begin."""
    found: dict[tuple, list[dict]] = {}
    for row in report["rows"]:
        config = row["config"]
        if row["suite"] == SUITE and config.get("part") == "stage":
            key = (config["Hk"], config["Hv"], config["set"], config["variant"])
            found.setdefault(key, []).append(row)
    if not found:
        return []
    table = []
    for (keys, values, name, variant), rows in found.items():
        rows.sort(key=lambda row: row["config"]["begins_us"])
        cells = [f"{_short(row, variant)} {row['us']:.0f}" for row in rows]
        table.append([f"{keys}/{values} {name}", variant, ", ".join(cells)])
    lines = ["Stages, with a profiler; us. One that begins early waits in its time.", ""]
    return lines + table_of(["set", "our variant", "stages"], table)


def _short(row: dict, variant: str) -> str:
    """The name of a stage without that of the entry and of the variant."""
    name = row["config"]["stage"].partition("__")[2]
    name = name.removesuffix("_" + variant.replace("-", "_"))
    return name.removesuffix("_fused").replace("_", " ")


def markdown(report: dict) -> str:
    """Nothing if the report has no such rows."""
    found = groups(report, SUITE)
    if not found:
        return ""
    ours, peers = names_of(found)
    peers = [name for name in peers if is_peer(name)]
    lines = heading(report)
    if rate := report.get("ceilings", {}).get("copy_TBps"):
        lines += [f"Limits: {rate:.2f} TB/s of a copy.", ""]
    configs = (row["config"] for row in report["rows"] if row["suite"] == SUITE)
    of_the_grid = all((config["dk"], config["dv"]) == (DIM, DIM) for config in configs)
    lines += prefill_tables.summary(found, GOALS if of_the_grid else GOALS_OF_OTHERS)
    lines += [*errors(checked(report), ours + peers), *not_measured(report)]
    for (keys, values), by_set in found.items():
        lines += [f"Heads {keys}, {values}{dims_of(by_set)}; us", ""]
        lines += times(by_set, ours, peers)
    lines += stages(report)
    return "\n".join(lines).rstrip() + "\n"
