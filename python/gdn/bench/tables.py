# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of decode, verify and the host, from files of measurements."""

from collections import defaultdict

from . import limits
from .markdown_table import lines_of
from .step_tables import is_of_host

# What one table or plot has in common; its lines are the numbers of rows, N.
_KEYS = {
    "decode": ("Hk", "Hv", "io", "state"),
    "verify": ("Hk", "Hv", "io", "state", "T", "mode"),
}
SUITES = tuple(_KEYS)
_OURS = ("gdn", "gdn pdl", "gdn in order", "gdn in order pdl")
_BESIDE = (
    "Times over ours: of who takes no slots (FLA, FlashInfer's rule in order) over \"gdn in "
    'order", of all others over "gdn".'
)
_FLOOR = (
    "Floor: the bytes that a step has to move (states, windows, projections, outputs) at the "
    "rate of the stream through the same slots. A limit with * is less: the rule alone, from "
    "what is ready, of states that lie in order or to memory of its own.\n"
)
_FLOOR_IN_ORDER = "Of rows in order the floor is at the rate of the stream in order.\n"


def label(row: dict) -> str:
    """What a row is called beside others of its configuration: the implementation, and
    what of a step it does unless it is ours."""
    config = row["config"]
    if config.get("part") == "commit":
        return f"{row['impl']} commit"
    if row["impl"].split()[0] == "stream":
        return row["impl"]
    form = ""
    if config.get("form") == "deferred":
        # When rows, or key heads of a row, write their states: apart unless it says so.
        phases = [of for of in ("staggered", "together") if of in config["variant"].split()]
        narrow = ["f16"] * (config.get("pending") == "float16")
        form = " ".join(["deferred", str(config["W"]), *narrow, *phases])
    if row["impl"] != "gdn":
        # States side by side, where others have slots in random order.
        place = "in order" if config.get("variant") == "state" else ""
        return " ".join(filter(None, (row["impl"], config.get("part"), place, form)))
    place = " in order" if limits.is_in_order(row) else form and f" {form}"
    return f"gdn{place}" + (" pdl" if config.get("variant", "").endswith(" pdl") else "")


def groups(report: dict, suite: str) -> dict[tuple, dict[int, dict[str, dict]]]:
    """Rows by what their table has in common, then N, then label. Of several variants of
    one implementation, the fastest."""
    found: dict = defaultdict(lambda: defaultdict(dict))
    for row in report["rows"]:
        if row["suite"] != suite:
            continue
        config = row["config"]
        rows = found[tuple(config[name] for name in _KEYS[suite])][config["N"]]
        name = label(row)
        if name not in rows or row["us"] < rows[name]["us"]:
            rows[name] = row
    return found


def heading(key: tuple) -> str:
    """What a table is of."""
    text = f"Heads {key[0]}, {key[1]}; io {key[2]}, state {key[3]}"
    return text + (f"; {', '.join([f'{key[4]} tokens', *key[5:]])}" if len(key) > 4 else "")


def markdown(report: dict, suite: str = "decode") -> str:
    """For each heads and types: microseconds, others over ours, ours and its limit, and the
    largest errors."""
    lines = [f"{report['device']}, driver {report['driver']}, {report['date']}"]
    if versions := report.get("versions"):
        lines += ["", ", ".join(f"{name} {value}" for name, value in versions.items())]
    lines.append("")
    for key, by_rows in sorted(groups(report, suite).items()):
        names = sorted({name for rows in by_rows.values() for name in rows})
        lines += [f"{heading(key)}; us", "", *_times(by_rows, names), ""]
        for table in (_ratios(by_rows, names), _limits(by_rows), _errors(by_rows, names)):
            lines += [*table, ""] if table else []
    if suite == SUITES[0] and (refused := report.get("refused")):
        lines += ["Not measured:", "", *(f"- {_one_line(why)}" for why in refused), ""]
    if suite == "verify":
        lines += _ways(groups(report, suite))
    elif any("floor_us" in row for row in report["rows"]):
        lines += [_FLOOR]
        if any("floor_us" in row and limits.is_in_order(row) for row in report["rows"]):
            lines += [_FLOOR_IN_ORDER]
    return "\n".join(lines)


def _one_line(why: str) -> str:
    return " ".join(why.replace("_", r"\_").split())


def _ways(found: dict) -> list[str]:
    """For each heads, types and number of tokens with states kept in more than one way: all
    implementations of all ways, since a state that can be gone back to is what they
    have in common."""
    ways: dict = defaultdict(dict)
    for (*key, mode), by_rows in sorted(found.items()):
        for count, rows in by_rows.items():
            for name, row in rows.items():
                if name.split()[0] != "stream":
                    ways[tuple(key)].setdefault((mode, name), {})[count] = row["us"]
    lines = []
    for key, rows in ways.items():
        if len({mode for mode, _ in rows}) < 2:
            continue
        counts = sorted({count for times in rows.values() for count in times})
        table = [
            [mode, name, *(f"{times[n]:.2f}" if n in times else "" for n in counts)]
            for (mode, name), times in sorted(rows.items())
        ]
        lines += [f"{heading(key)}, all ways to keep states; us of so many rows", ""]
        lines += [*lines_of(["states", "", *map(str, counts)], table), ""]
    return lines


def host(report: dict) -> str:
    """What launches, loads and compiles cost the host, and what they may."""
    found = [row for row in report["rows"] if row["suite"] == "host" and not is_of_host(row)]
    rows = []
    for row in found:
        config, limit = row["config"], row.get("limit_us")
        sizes = f", batch {config['N']}, {config['layers']} layers" if "layers" in config else ""
        least = f"{row['us_min']:.1f}" if "us_min" in row else ""
        limit = f"{limit:.0f}" if limit else ""
        rows.append([config["variant"] + sizes, f"{row['us']:.1f}", least, limit])
    return "\n".join(lines_of(["what", "us of the host", "least", "at most"], rows))


def _times(by_rows: dict, names: list[str]) -> list[str]:
    table = []
    for count, rows in sorted(by_rows.items()):
        cells = [f"{rows[n]['us']:.2f}" if n in rows else "" for n in names]
        if "stream" in names:
            whole = "stream" in rows and "gdn" in rows
            share = rows["stream"]["us"] / rows["gdn"]["us"] if whole else 0
            cells.append(f"{100 * share:.1f} %" if whole else "")
        table.append([str(count), *cells])
    return lines_of(["N", *names] + (["of the stream"] if "stream" in names else []), table)


def _beside(row: dict, rows: dict) -> dict:
    """Our row that another is compared with: of those who take no slots ours with slots in
    order, where that was measured."""
    return rows.get("gdn in order", rows["gdn"]) if limits.is_in_order(row) else rows["gdn"]


def _ratios(by_rows: dict, names: list[str]) -> list[str]:
    """How many times as long as ours others take."""
    others = [name for name in names if name.split()[0] not in ("gdn", "stream", "prototype")]
    table = [
        [str(count)]
        + [
            f"{rows[n]['us'] / _beside(rows[n], rows)['us']:.2f}" if n in rows else ""
            for n in others
        ]
        for count, rows in sorted(by_rows.items())
        if "gdn" in rows
    ]
    if not others:
        return []
    text = [_BESIDE, ""] if "gdn in order" in names and table else []
    return text + lines_of(["N", *(f"{name} / gdn" for name in others)], table)


def _limits(by_rows: dict) -> list[str]:
    table = []
    for count, rows in sorted(by_rows.items()):
        for name in _OURS:
            row = rows.get(name)
            if row and "limit_us" in row:
                limit, floor = row["limit_us"], row.get("floor_us")
                by = row["limit_by"] + (" *" if floor and limit < floor else "")
                table.append([str(count), name, f"{limit:.2f}", by, f"{row['us'] / limit:.3f}"])
                table[-1] += [f"{floor:.2f}", f"{row['us'] / floor:.3f}"] if floor else ["", ""]
    header = ["N", "ours", "limit, us", "set by", "of the limit", "floor, us", "of the floor"]
    return lines_of(header, table)


def _errors(by_rows: dict, names: list[str]) -> list[str]:
    """Relative RMSE against float64, the largest of all N."""
    table = []
    for name in names:
        found = [rows[name] for rows in by_rows.values() if "error_o" in rows.get(name, {})]
        if found:
            worst = [max(row[kind] for row in found) for kind in ("error_o", "error_state")]
            table.append([name, *(f"{value:.1e}" for value in worst)])
    return lines_of(["error of", "output", "state"], table)
