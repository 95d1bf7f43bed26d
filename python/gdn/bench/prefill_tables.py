# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the grid of prefill: times, what others take beside ours, fractions of the
physical limit, errors, and what was not measured."""

import math
from collections import defaultdict

from .grid import DIM
from .markdown_table import lines_of

# What is asked of ours beside a peer: the geometric mean of their time over ours, and the
# smallest ratio of a row. The prototype is no peer: it is to be matched on each of its rows.
GOALS = {("gdn-sm80", "fla"): (1.5, 1.1), ("gdn", "best peer"): (1.2, 0.95)}
GOALS[("gdn", "prototype")] = (0.95, 0.95)
# Of our own: a form that is not ahead is not used. Where both have the same code, that is noise.
GOALS[("gdn", "gdn-sm80")] = (1.0, 0.99)
INVARIANT = "batch-invariant"
Rows = dict[tuple[int, int], dict[str, dict[str, dict]]]


def is_ours(impl: str) -> bool:
    return impl == "gdn" or impl.startswith("gdn-")


def is_peer(impl: str) -> bool:
    return not is_ours(impl) and impl != "prototype"


def label(row: dict) -> str:
    """What a row is called: the implementation, and what is asked of it beside."""
    part = row["config"].get("part")
    return f"{row['impl']} {part}" if part else row["impl"]


def groups(report: dict, suite: str = "prefill") -> Rows:
    """Rows by heads, set of lengths and label, in the order in which they were measured.
    Variants that were forced are left out, rows that are there for their errors alone, and
    stages."""
    found: Rows = defaultdict(lambda: defaultdict(dict))
    for row in report["rows"]:
        config = row["config"]
        if row["suite"] == suite and config.get("part") not in ("forced", "checked", "stage"):
            found[config["Hk"], config["Hv"]][config["set"]][label(row)] = row
    return found


def ratios(found: Rows, ours: str, peer: str) -> list[tuple[float, str]]:
    """How many times as long as ours the peer takes, and where. "best peer" is the fastest
    of those that were measured."""
    result = []
    for (keys, values), by_set in found.items():
        for name, rows in by_set.items():
            others = [row for name, row in rows.items() if is_peer(name.split()[0])]
            row = rows.get(peer)
            if peer == "best peer" and others:
                row = min(others, key=lambda other: other["us"])
            if row and ours in rows:
                result.append((row["us"] / rows[ours]["us"], f"{keys}/{values} {name}"))
    return result


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def names_of(found: Rows) -> tuple[list[str], list[str]]:
    """Labels of ours and of peers."""
    names = dict.fromkeys(
        name for by_set in found.values() for rows in by_set.values() for name in rows
    )
    ours = [name for name in names if is_ours(name.split()[0])]
    return ours, [name for name in names if name not in ours]


def table_of(header: list[str], rows: list[list[str]]) -> list[str]:
    """With an empty line behind it; the first column is words."""
    lines = lines_of(header, rows, left=1)
    return [*lines, ""] if lines else []


def summary(found: Rows, goals: dict = GOALS) -> list[str]:
    """Ours beside each peer over all rows that both have."""
    ours, peers = names_of(found)
    table = []
    for mine in (name for name in ours if not name.endswith(INVARIANT)):
        # What batch invariance costs, of the rows where it takes another variant.
        price = [name for name in ours if name == f"{mine} {INVARIANT}"]
        several = sum(map(is_peer, peers)) > 1
        older = ["gdn-sm80"] if mine == "gdn" else []
        for peer in peers + (["best peer"] if several else []) + older + price:
            values = ratios(found, mine, peer)
            if not values:
                continue
            mean, (worst, where) = geometric_mean([value for value, _ in values]), min(values)
            goal = goals.get((mine, peer))
            asked = f"{goal[0]}, {goal[1]}" if goal else ""
            met = ("yes" if mean >= goal[0] and worst >= goal[1] else "no") if goal else ""
            table.append(
                [f"{peer} / {mine}", f"{len(values)}", f"{mean:.2f}", f"{worst:.2f}", where]
                + [asked, met]
            )
    header = ["times", "rows", "geometric mean", "worst", "of", "asked for", "met"]
    return table_of(header, table)


def times(by_set: dict[str, dict[str, dict]], names: list[str]) -> list[str]:
    """Microseconds of one pair of heads, and which part of its time the device would need
    at least (the limit over the time)."""
    ours = [name for name in names if is_ours(name.split()[0])]
    table = []
    for name, rows in by_set.items():
        cells = [f"{rows[n]['us']:.1f}" if n in rows else "" for n in names]
        limit = next((row["limit_us"] for row in rows.values() if "limit_us" in row), None)
        cells.append(f"{limit:.1f}" if limit else "")
        for n in ours:
            cells.append(f"{100 * limit / rows[n]['us']:.0f} %" if limit and n in rows else "")
        chosen = [rows[n]["config"]["variant"] for n in ours if n in rows]
        table.append([name, *cells, ", ".join(dict.fromkeys(chosen))])
    header = ["lengths", *names, "limit", *(f"{name}, of it" for name in ours), "our variant"]
    return table_of(header, table)


def errors(found: Rows, names: list[str]) -> list[str]:
    """Relative RMSE against float64, the largest of all rows that were checked."""
    table = []
    for name in names:
        rows = [row[name] for by_set in found.values() for row in by_set.values() if name in row]
        checked = [row for row in rows if "error_o" in row]
        if checked:
            worst = [max(row[kind] for row in checked) for kind in ("error_o", "error_state")]
            table.append([name, f"{len(checked)}", *(f"{value:.1e}" for value in worst)])
    return table_of(["error of", "rows", "output", "state"], table)


def dims_of(by_set: dict[str, dict[str, dict]]) -> str:
    """Of keys and values, and the type, where they are not those of the grid."""
    config = next(iter(next(iter(by_set.values())).values()))["config"]
    dims, io = (config["dk"], config["dv"]), config["io"]
    text = "" if dims == (DIM, DIM) else f" of {dims[0]} x {dims[1]}"
    return text if io == "bfloat16" else f"{text}, {io}"


def not_measured(report: dict) -> list[str]:
    items = [
        f"- {item['impl']}, {item['where']}: {item['reason']}"
        for item in report.get("not_measured", [])
    ]
    return ["Not measured:", "", *items, ""] if items else []


def heading(report: dict) -> list[str]:
    """The machine and what ran on it."""
    lines = [f"{report['device']}, driver {report['driver']}, {report['date']}", ""]
    if versions := report.get("versions"):
        lines += [", ".join(f"{name} {value}" for name, value in versions.items()), ""]
    return lines


def markdown(report: dict) -> str:
    """All of it."""
    found = groups(report)
    if not found and (report["rows"] or not report.get("not_measured")):
        return ""
    ours, peers = names_of(found)
    lines = heading(report)
    ceilings = report.get("ceilings", {})
    if "copy_TBps" in ceilings:
        lines += [
            f"Limits: {ceilings['copy_TBps']:.2f} TB/s of a copy, "
            f"{ceilings['matmul_TFLOPs']:.0f} TFLOP/s of a product.",
            "",
        ]
    lines += [*summary(found), *errors(found, ours + peers), *not_measured(report)]
    for (keys, values), by_set in found.items():
        lines += [f"Heads {keys}, {values}{dims_of(by_set)}; us", ""]
        lines += times(by_set, ours + peers)
    return "\n".join(lines).rstrip() + "\n"
