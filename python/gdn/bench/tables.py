# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and plots from files of measurements, with no library."""

from collections import defaultdict
from html import escape

_COLOURS = ("#1b6ca8", "#c0392b", "#27826b", "#8e44ad", "#b7791f", "#555555")
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 400, 60, 40, 170, 50


def label(row: dict) -> str:
    """What a row is called beside others of its configuration."""
    if row["impl"] == "stream":
        return "stream"
    pdl = " pdl" if row["config"].get("variant", "").endswith(" pdl") else ""
    return row["impl"] + pdl


def groups(report: dict, suite: str) -> dict[tuple, dict[int, dict[str, dict]]]:
    """Rows by (Hk, Hv, io, state), then N, then label."""
    found: dict = defaultdict(lambda: defaultdict(dict))
    for row in report["rows"]:
        if row["suite"] != suite:
            continue
        config = row["config"]
        key = (config["Hk"], config["Hv"], config["io"], config["state"])
        found[key][config["N"]][label(row)] = row
    return found


def markdown(report: dict, suite: str = "decode") -> str:
    """One table per heads and types: microseconds, and ours against the yardstick."""
    lines = [f"{report['device']}, driver {report['driver']}, {report['date']}", ""]
    for (hk, hv, io, state), by_rows in sorted(groups(report, suite).items()):
        names = sorted({name for rows in by_rows.values() for name in rows})
        lines += [f"Heads {hk}, {hv}; io {io}, state {state}; us", ""]
        lines.append("| N | " + " | ".join(names) + " | of the stream |")
        lines.append("|---:|" + "---:|" * (len(names) + 1))
        for count, rows in sorted(by_rows.items()):
            cells = [f"{rows[n]['us']:.2f}" if n in rows else "" for n in names]
            share = ""
            if "stream" in rows and "gdn" in rows:
                share = f"{100 * rows['stream']['us'] / rows['gdn']['us']:.1f} %"
            lines.append(f"| {count} | " + " | ".join(cells) + f" | {share} |")
        lines.append("")
    return "\n".join(lines)


def svg(report: dict, key: tuple, suite: str = "decode") -> str:
    """State bytes per second over the number of rows, one line per implementation."""
    by_rows = groups(report, suite)[key]
    counts = sorted(by_rows)
    names = sorted({name for rows in by_rows.values() for name in rows})
    top = max(row["state_TBps"] for rows in by_rows.values() for row in rows.values()) * 1.1
    span = max(len(counts) - 1, 1)

    def place(index: int, value: float) -> tuple[float, float]:
        x = _LEFT + index * (_WIDTH - _LEFT - _RIGHT) / span
        y = _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)
        return x, y

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 20, f"{suite}, heads {key[0]}, {key[1]}, io {key[2]}, state {key[3]}"),
        _text(_LEFT, 34, f"TB/s of state over rows; {report['device']}, {report['date']}"),
    ]
    for tick in range(5):
        x, y = place(0, top * tick / 4)
        parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        parts.append(_text(x - 8, y + 4, f"{top * tick / 4:.1f}", "end"))
    for index, count in enumerate(counts):
        parts.append(_text(place(index, 0)[0], _HEIGHT - _BOTTOM + 18, str(count), "middle"))
    for number, name in enumerate(names):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [
            place(i, by_rows[count][name]["state_TBps"])
            for i, count in enumerate(counts)
            if name in by_rows[count]
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        parts.append(_text(_WIDTH - _RIGHT + 14, _TOP + 18 * number + 10, name, "start", colour))
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#222") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {where}>{escape(text)}</text>"
