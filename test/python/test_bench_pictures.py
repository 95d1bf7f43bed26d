# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of the benchmarks: what they show, that drawing is repeatable, and their digests."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from conftest import ROOT

from gdn.bench import __main__ as bench
from gdn.bench import drawing, pictures

HEADS = {"Hk": 16, "Hv": 32, "dk": 128, "dv": 128, "io": "bfloat16", "state": "float32"}
MACHINE = {"device": "GPU <1>", "driver": "580.1", "date": "2026-11-21"}


def row(suite: str, impl: str, us: float, **config) -> dict:
    return {"suite": suite, "impl": impl, "config": HEADS | {"variant": ""} | config, "us": us}


DECODE = MACHINE | {
    "rows": [
        row("decode", "gdn", 80.0, N=64),
        row("decode", "gdn", 5.0, N=1),
        row("decode", "gdn", 60.0, N=64, variant="rows in order"),
        row("decode", "fla", 90.0, N=64, part="rule"),
        row("decode", "fla", 8.0, N=8, part="rule"),  # where ours was not measured
        row("decode", "gdn", 4.0, N=8, Hk=2, Hv=8),  # one number of rows
    ]
}
PREFILL = MACHINE | {
    "rows": [
        row("prefill", "gdn", 20.0, set="1024x8"),
        row("prefill", "fla", 50.0, set="1024x8"),
        row("prefill", "gdn", 10.0, set="1x2048"),
        row("prefill", "gdn", 7.0, set="1x100", part="forced"),
    ]
}


def test_decode_is_shown_beside_ours():
    (panel,) = pictures.of_reports([DECODE]).panels
    assert panel.title == "Heads 16, 32; io bf16, state f32"
    assert panel.curves["gdn"] == [(1, 1.0), (64, 1.0)]
    assert panel.curves["gdn in order"] == [(64, 0.75)]
    assert panel.curves["fla rule"] == [(64, 1.125)]


def test_prefill_has_lengths_in_the_order_of_the_grid():
    (panel,) = pictures.of_reports([PREFILL]).panels
    assert panel.labels == ["1x2048", "1024x8"]
    assert panel.curves == {"gdn": [(0, 1.0), (1, 1.0)], "fla": [(1, 2.5)]}


def test_nothing_to_draw_is_no_picture(tmp_path, capsys):
    report = MACHINE | {"rows": [row("host", "gdn", 1.0)]}
    assert pictures.of_reports([report]) is None
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    with pytest.raises(SystemExit):
        bench.main(["plot", str(path), "--output", str(tmp_path / "plot.svg")])
    assert "no rows of decode" in capsys.readouterr().err


def test_a_digest_is_of_what_is_shown():
    report = json.loads(json.dumps(DECODE))
    kept = pictures.digest(pictures.of_reports([DECODE]))
    assert pictures.digest(pictures.of_reports([report])) == kept
    report["rows"][0]["us"] = 81.0
    assert pictures.digest(pictures.of_reports([report])) != kept


def test_the_same_picture_is_the_same_file(tmp_path):
    paths = [tmp_path / "decode.json", tmp_path / "prefill.json"]
    for path, report in zip(paths, (DECODE, PREFILL), strict=True):
        path.write_text(json.dumps(report))
    texts = []
    for name in ("one.svg", "two.svg"):
        out = str(tmp_path / name)
        assert bench.main(["plot", *map(str, paths), "--output", out]) == 0
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    picture = pictures.of_reports([DECODE, PREFILL])
    assert f"sha256:{pictures.digest(picture)}" in texts[0]
    # Text stays text; there is no date in it.
    said = [text for text in ET.fromstring(texts[0]).itertext() if text.strip()]
    assert {"gdn in order", "fla rule", "1024x8"} <= {text.strip() for text in said}
    assert "GPU <1>" in "".join(said)
    assert "<dc:date>" not in texts[0]


def test_an_implementation_has_one_colour_and_a_line_for_each_way():
    found = drawing.styles(["fla rule", "gdn pdl", "gdn", "gdn in order", "new", "gdn-sm80"])
    assert next(iter(found)) == "gdn"
    ours = [found[name] for name in ("gdn", "gdn in order", "gdn pdl")]
    assert len({style["color"] for style in ours}) == 1
    assert len({str(style["linestyle"]) for style in ours}) == 3
    assert len({found[name]["color"] for name in ("gdn", "fla rule", "new", "gdn-sm80")}) == 4


def test_only_drawing_needs_matplotlib():
    """Neither tables, nor whether a picture is stale, nor measuring."""
    script = "import sys, docs; docs.pages(); docs.pictures(); import gdn.bench.drawing\n"
    script += "from gdn.bench import __main__\nassert 'matplotlib' not in sys.modules"
    command = [sys.executable, "-c", script]
    path = {"PYTHONPATH": f"{ROOT / 'tools/scripts'}:{ROOT / 'python'}"}
    done = subprocess.run(command, env=path, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
