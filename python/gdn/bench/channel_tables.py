# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of prefill with a decay per channel: times by heads, lengths and kind of gates, what
others take beside ours, fractions of the physical limit, and errors."""

from collections import defaultdict

from .prefill_tables import (
    INVARIANT,
    errors,
    geometric_mean,
    heading,
    is_ours,
    label,
    not_measured,
    table_of,
)

SUITE = "prefill-channels"
# Rows of what computes gates itself, and norms of queries and keys.
GATES_INSIDE = "gates inside"
_OURS = "gdn"
_OURS_INSIDE = f"{_OURS} {GATES_INSIDE}"

# Rows of a place by their names; a place has heads, a set of lengths and a kind of gates.
Place = tuple[int, str, str]
Rows = dict[Place, dict[str, dict]]


def name_of(row: dict) -> str:
    """Others by their variant, which says which function it is; ours as it was asked for."""
    if is_ours(row["impl"]):
        return label(row)
    return f"{row['impl']}, {row['config']['variant']}"


def groups(report: dict) -> Rows:
    """In the order in which they were measured, without variants that were forced."""
    found: Rows = defaultdict(dict)
    for row in report["rows"]:
        config = row["config"]
        if row["suite"] == SUITE and config.get("part") != "forced":
            found[config["Hv"], config["set"], config["gates"]][name_of(row)] = row
    return found


def ratios(found: Rows, peer: str, gates: str = "", ours: str = _OURS) -> list[tuple[float, str]]:
    """How many times as long as ours the peer takes, and where; of one kind of gates, or all."""
    return [
        (rows[peer]["us"] / rows[ours]["us"], f"{place[0]} heads, {place[1]}, {place[2]}")
        for place, rows in found.items()
        if peer in rows and ours in rows and gates in ("", place[2])
    ]


def summary(found: Rows, peers: list[str], gates: list[str]) -> list[str]:
    """Ours beside each peer over the places that both have."""
    table = []
    pairs = [(peer, _OURS) for peer in peers]
    pairs += [(peer, _OURS_INSIDE) for peer in peers if peer.endswith(GATES_INSIDE)]
    for peer, ours in pairs:
        for kind in ["", *gates]:
            if values := ratios(found, peer, kind, ours):
                mean = geometric_mean([value for value, _ in values])
                least, most = min(values), max(values)
                cells = [f"{peer} / {ours}", kind or "all", f"{len(values)}", f"{mean:.2f}"]
                table.append([*cells, f"{least[0]:.2f}", least[1], f"{most[0]:.2f}", most[1]])
    header = ["times", "gates", "rows", "geometric mean", "least", "of", "most", "of"]
    return table_of(header, table)


def times(found: Rows, names: list[str], gates: str) -> list[str]:
    """Microseconds with one kind of gates, and which part of its time the device would need at
    least."""
    table = []
    for (heads, lengths, kind), rows in sorted(found.items(), key=lambda item: item[0][0]):
        if kind != gates:
            continue
        cells = [f"{rows[name]['us']:.1f}" if name in rows else "" for name in names]
        ours = rows.get(_OURS, {})
        limit = ours.get("limit_us")
        share = [f"{limit:.1f}", f"{100 * limit / ours['us']:.0f} %"] if limit else ["", ""]
        variant = ours["config"]["variant"] if ours else ""
        table.append([f"{heads} heads, {lengths}", *cells, *share, variant])
    header = ["heads, lengths", *names, "limit", f"{_OURS}, of it", "our variant"]
    return table_of(header, table)


def markdown(report: dict) -> str:
    """All of it; empty where the report has no such rows."""
    found = groups(report)
    if not found:
        return ""
    names = list(dict.fromkeys(name for rows in found.values() for name in rows))
    names.sort(key=lambda name: (not is_ours(name.split()[0]), name.endswith(INVARIANT)))
    peers = [name for name in names if not is_ours(name.split()[0])]
    gates = list(dict.fromkeys(place[2] for place in found))
    lines = heading(report)
    copy = report.get("ceilings", {}).get("copy_TBps")
    lines += [f"Limits: {copy:.2f} TB/s of a copy.", ""] if copy else []
    lines += summary(found, peers, gates)
    for kind in gates:
        lines += [f"Gates: {kind}. Microseconds:", "", *times(found, names, kind)]
    lines += errors({place: {"": rows} for place, rows in found.items()}, names)
    return "\n".join(lines + not_measured(report)).rstrip() + "\n"
