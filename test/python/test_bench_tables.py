# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and plots of the benchmarks, from a small report."""

import json
import xml.etree.ElementTree as ET

from gdn.bench import __main__ as bench
from gdn.bench import tables


def row(impl: str, variant: str, count: int, us: float, heads=(16, 32)) -> dict:
    return {
        "suite": "decode",
        "impl": impl,
        "config": {
            "Hk": heads[0],
            "Hv": heads[1],
            "io": "bfloat16",
            "state": "float32",
            "N": count,
            "variant": variant,
        },
        "us": us,
        "state_TBps": count * heads[1] * 131072 / us * 1e-6,
    }


REPORT = {
    "device": "GPU <1>",
    "driver": "580.1",
    "date": "2026-11-21",
    "rows": [
        row("gdn", "resident", 64, 80.0),
        row("gdn", "resident pdl", 64, 75.5),
        row("stream", "plain 2048", 64, 72.0),
        row("gdn", "resident", 1, 5.0),
        row("fla", "", 64, 90.0),
        row("gdn", "resident", 8, 4.0, heads=(2, 8)),
    ],
}


def test_tables():
    text = tables.markdown(REPORT)
    assert "Heads 2, 8;" in text
    assert "| N | fla | gdn | gdn pdl | stream | of the stream |" in text
    # Sorted by N; what was not measured is empty; the share is stream over ours.
    assert "| 1 |  | 5.00 |  |  |  |\n| 64 | 90.00 | 80.00 | 75.50 | 72.00 | 90.0 % |" in text


def test_plots_are_svg(tmp_path):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    assert bench.main(["plot", str(report), "--output", str(tmp_path / "plot.svg")]) == 0
    files = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert files == [
        "plot_16_32_bfloat16_float32.svg",
        "plot_2_8_bfloat16_float32.svg",
    ]
    svg = ET.parse(tmp_path / files[0]).getroot()
    lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
    points = svg.findall("{http://www.w3.org/2000/svg}circle")
    assert len(lines) == 4
    assert len(points) == 5
    assert "GPU <1>" in "".join(svg.itertext())


def test_table_command(tmp_path, capsys):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    assert bench.main(["table", str(report)]) == 0
    assert "of the stream" in capsys.readouterr().out
    assert bench.heads("2,8") == (2, 8)
