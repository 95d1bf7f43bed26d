# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws pictures of measurements as SVG, with matplotlib. The same picture is the same text.

An implementation has one colour, and each way to run it has a kind of line. The colours can be
told apart by people who are colour-blind. The ground is white, in dark viewers as well.
"""

import io
import re

from .pictures import Picture, digest

_COLOURS = {
    "gdn": "#0072b2",
    "gdn-sm80": "#56b4e9",
    "fla": "#d55e00",
    "flashinfer": "#009e73",
    "flashinfer-cp": "#8fb339",
    "flashqla": "#e69f00",
    "vllm": "#cc79a7",
    "prototype": "#5b3c88",
    "stream": "#777777",
}
_OTHERS = ("#8b4513", "#111111")
_LINES = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)))
# What is shown at least: where all times are alike, differences are not to look large.
_LEAST, _MOST = 0.7, 1.5
_TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100)
# Inches: the width of a picture, the height of a panel, of its labels, and of the rest.
_WIDTH, _HEIGHT, _LABELS, _REST = 9.6, 2.0, 0.8, 1.2
_SETTINGS = {
    # Text can be searched and read aloud; its place is that of a font that comes along.
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
}


def styles(names: list[str]) -> dict[str, dict]:
    """Colour and line of each curve, ours first."""
    ways: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (not name.startswith("gdn"), name)):
        ways.setdefault(name.split()[0], []).append(name)
    others = [impl for impl in ways if impl not in _COLOURS]
    found = {}
    for impl, same in ways.items():
        colour = _COLOURS.get(impl) or _OTHERS[others.index(impl) % len(_OTHERS)]
        for index, name in enumerate(same):
            line = _LINES[index % len(_LINES)]
            width = 1.8 if impl == "gdn" else 1.1
            found[name] = {"color": colour, "linestyle": line, "linewidth": width}
    return found


def svg(picture: Picture) -> str:
    """The picture as a file. It carries the digest of what is in it."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    kept = digest(picture)
    columns = 2 if len(picture.panels) <= 10 else 3
    rows = -(-len(picture.panels) // columns)
    height = _HEIGHT + (_LABELS if picture.panels[0].labels else 0)
    looks = styles(list({name for panel in picture.panels for name in panel.curves}))
    out = io.StringIO()
    with matplotlib.rc_context(_SETTINGS | {"svg.hashsalt": kept}):
        figure = Figure((_WIDTH, rows * height + _REST), facecolor="white", layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        for axis, panel in zip(axes, picture.panels, strict=False):
            _draw(axis, panel, looks)
        for axis in axes[len(picture.panels) :]:
            axis.remove()
        figure.suptitle(f"Times over that of gdn, by {picture.x}; {picture.title}", fontsize=10)
        handles = [Line2D([], [], label=name, **looks[name]) for name in looks]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
        # Without a date, the same picture is the same file.
        facts = {"Date": None, "Title": picture.title, "Identifier": f"sha256:{kept}"}
        figure.savefig(out, format="svg", metadata=facts)
    # Hundredths of a point are enough, and half of the file.
    text = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", out.getvalue())
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _draw(axis, panel, looks) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    for name, points in panel.curves.items():
        xs, ys = zip(*points, strict=True)
        # A curve of one point would not be seen.
        mark = {"marker": "o", "markersize": 3} if len(points) == 1 else {}
        axis.plot(xs, ys, **looks[name], **mark)
    axis.set_title(panel.title)
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, _LEAST), max(high, _MOST))
    axis.yaxis.set_major_locator(FixedLocator(_TICKS))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_locator(NullLocator())
    if panel.labels:
        axis.set_xticks(range(len(panel.labels)), panel.labels, rotation=90)
    else:
        axis.set_xscale("log", base=2)
        counts = sorted({x for points in panel.curves.values() for x, _ in points})
        axis.set_xticks(counts, [f"{count:g}" for count in counts])
        axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(axis="y", color="#dddddd", linewidth=0.5)
    axis.set_axisbelow(True)
    axis.tick_params(bottom=False, left=False)
