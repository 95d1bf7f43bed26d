# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the picture of README.md from recorded measurements: times of prefill and of decode
beside those of other libraries. --check fails if it is stale, without drawing it again.

The picture begins with a digest of what it was made of: the measurements that it shows, this
file, and the rest of the picture. Needs matplotlib to draw, and nothing to check.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "runtime/bench/results"
# In a folder of its own: docs.py removes pictures of docs/generated that it has not made.
PICTURE = ROOT / "docs/generated/readme/speed.svg"
# The linear layers of Qwen3-Next, of Qwen3.5-9B and others.
HEADS = {"Hk": 16, "Hv": 32, "dk": 128, "dv": 128, "io": "bfloat16", "state": "float32"}
# Those of the other pictures: people who are colour-blind can tell them apart.
COLOURS = {
    "gdn": "#0072b2",
    "FlashInfer": "#009e73",
    "FlashQLA": "#e69f00",
    "FLA": "#d55e00",
    "vLLM": "#cc79a7",
}


@dataclass(frozen=True)
class Bar:
    """An implementation: its name in the picture, and which rows of a record are its."""

    name: str
    impl: str
    part: str | None = None
    variant: str | None = None  # None: any
    does: str = ""

    def owns(self, row: dict) -> bool:
        config = row["config"]
        return (
            row["impl"] == self.impl
            and config.get("part") == self.part
            and self.variant in (None, config["variant"])
        )


@dataclass(frozen=True)
class Panel:
    """A half of the picture: a record, and for each group of bars its label and its rows."""

    title: str
    record: str
    suite: str
    groups: dict[str, dict]
    bars: tuple[Bar, ...]


PANELS = (
    Panel(
        "Prefill: the delta rule alone",
        "prefill-grid-h200",
        "prefill",
        {
            "1 sequence of\n8,192 tokens": {"set": "1x8192"},
            "1 sequence\nof 32,768": {"set": "1x32768"},
            "2,048 and\n6,144": {"set": "2048+6144"},
            "8 sequences\nof 1,024": {"set": "1024x8"},
            "4 sequences\nof 8,192": {"set": "8192x4"},
        },
        (
            Bar("gdn", "gdn"),
            Bar("FlashInfer", "flashinfer"),
            Bar("FlashQLA", "flashqla"),
            Bar("FLA", "fla"),
        ),
    ),
    Panel(
        "Decode: one token for each sequence",
        "decode-h200",
        "decode",
        {
            "1 sequence": {"N": 1},
            "8 sequences": {"N": 8},
            "64 sequences": {"N": 64},
            "256 sequences": {"N": 256},
        },
        (
            Bar("gdn", "gdn", "step", "aligned", "whole step"),
            Bar("FLA", "fla", "step", does="whole step"),
            Bar("FlashInfer", "flashinfer", "rule", "pool", "rule alone"),
            Bar("vLLM", "vllm", "rule", does="rule alone"),
        ),
    ),
)


def times(panel: Panel) -> dict:
    """The device and the date of a panel's record, and microseconds by group and bar."""
    report = json.loads((RESULTS / f"{panel.record}.json").read_text())
    rows = [row for row in report["rows"] if row["suite"] == panel.suite]
    found: dict[str, list[float]] = {}
    for label, wanted in panel.groups.items():
        wanted = HEADS | wanted
        group = [row for row in rows if all(row["config"].get(k) == v for k, v in wanted.items())]
        found[label] = []
        for bar in panel.bars:
            (row,) = [row for row in group if bar.owns(row)]
            found[label].append(round(row["us"], 2))
    return {"device": report["device"], "date": report["date"], "us": found}


def digest(data: list[dict], body: str) -> str:
    """Of the measurements, this file and the picture without its first line."""
    hashed = hashlib.sha256()
    for part in (json.dumps(data), Path(__file__).read_text(), body):
        hashed.update(f"{len(part)}:{part}".encode())
    return hashed.hexdigest()


def look(bar: Bar) -> dict:
    """Who does less work than we do is pale."""
    return {"color": COLOURS[bar.name], "alpha": 0.45 if bar.does == "rule alone" else 1}


def draw_panel(axes, panel: Panel, data: dict) -> None:
    """Groups of bars from top to bottom; a bar is as long as its time is beside gdn's."""
    step = len(panel.bars) + 1
    longest = max(max(us) / us[0] for us in data["us"].values())
    for number, us in enumerate(data["us"].values()):
        for place, (bar, value) in enumerate(zip(panel.bars, us, strict=True)):
            y, length = number * step + place, value / us[0]
            axes.barh(y, length, height=0.86, **look(bar))
            text = f"{value:,.{1 if value < 100 else 0}f} µs"
            axes.text(length + 0.02 * longest, y, text, va="center", size=7)
    for bar in panel.bars:
        axes.barh(0, 0, **look(bar), label=f"{bar.name}, {bar.does}" if bar.does else bar.name)
    axes.set_yticks(
        [n * step + (step - 2) / 2 for n in range(len(data["us"]))], list(data["us"]), size=8
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.18 * longest)
    axes.axvline(1, color=COLOURS["gdn"], linewidth=0.8, linestyle=":", zorder=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("time, gdn = 1 (shorter is faster)", size=8)
    axes.set_title(f"{panel.title}\n{data['device']}, {data['date']}", size=9, loc="left")
    axes.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def draw(data: list[dict]) -> str:
    """The picture as SVG, the same on every machine with the same matplotlib."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcdefaults()
    matplotlib.rcParams |= {"svg.hashsalt": "gdn", "svg.fonttype": "none"}
    matplotlib.rcParams["font.sans-serif"] = ["DejaVu Sans"]  # comes with matplotlib
    figure, halves = pyplot.subplots(1, len(PANELS), figsize=(9.4, 5.0))
    for axes, panel, values in zip(halves, PANELS, data, strict=True):
        draw_panel(axes, panel, values)
    figure.tight_layout(w_pad=2.5)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="readme_picture", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if it is stale")
    data = [times(panel) for panel in PANELS]
    if parser.parse_args().check:
        head, _, body = (PICTURE.read_text() if PICTURE.exists() else "").partition("\n")
        if head == f"<!-- {digest(data, body)} -->":
            return 0
        print(f"{PICTURE.relative_to(ROOT)} is stale; run tools/scripts/readme_picture.py")
        return 1
    body = draw(data).partition("\n")[2]
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(f"<!-- {digest(data, body)} -->\n{body}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
