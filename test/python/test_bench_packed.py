# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill of packed projections beside chains of kernels, without a GPU: the table, limits, what
is compiled before, and what is refused."""

import json
import time

import pytest
from test_bench_prefill import REPORT, describe

from gdn.bench import __main__ as bench
from gdn.bench import grid, limits, packed_compile, packed_stages, packed_tables, prefill_tables


def row(impl: str, us: float, heads=(16, 32), name="8192x4", variant="staged", **more) -> dict:
    config = grid.Case(heads, name).config("bfloat16", "float32") | {"variant": variant}
    if "part" in more:
        config["part"] = more.pop("part")
    return {"suite": "packed", "impl": impl, "config": config, "us": us} | more


def report(*rows: dict, **more) -> dict:
    made = describe() | {"not_measured": [], "rows": list(rows)} | more
    limits.add_packed_limits(made["rows"], made["ceilings"])
    return made


def test_the_limit_is_a_copy_of_what_has_to_be_moved():
    config = row("gdn", 1.0)["config"]
    tokens = 4 * 8192 * (2 * 16 * 128 + 3 * 32 * 128 + 2 * 32) * 2
    windows = 2 * 4 * (2 * 16 + 32) * 128 * 3 * 2
    states = 2 * 4 * 32 * 128 * 128 * 4
    assert limits.packed_bytes(config) == tokens + windows + states
    (made,) = report(row("gdn", 1.0))["rows"]
    assert made["limit_us"] == pytest.approx((tokens + windows + states) / 4.25e6)
    assert made["limit_by"] == "the copy"


def test_the_table_has_the_best_chain_over_ours():
    made = report(
        row("gdn", 200.0),
        row("fla", 500.0, variant="conv"),
        row("flashinfer", 300.0, variant="conv"),
        row("gdn", 100.0, name="1024x8"),
        row("flashqla", 120.0, name="1024x8", variant="conv"),
        row("gdn", 1.0, (2, 8), "200+312", part="checked", error_o=2e-3, error_state=1e-3),
        row("fla", 1.0, (2, 8), "200+312", part="checked", error_o=3e-3, error_state=2e-3),
        not_measured=[{"impl": "flashqla", "where": "(2, 8) 1024x8", "reason": "no"}],
    )
    text = packed_tables.markdown(made)
    # sqrt(1.5 * 1.2)
    assert "| best peer / gdn | 2 | 1.34 | 1.20 | 16/32 1024x8 | 1.8, 1.4 | no |" in text
    assert "| fla / gdn | 1 | 2.50 | 2.50 | 16/32 8192x4 |  |  |" in text
    limit = made["rows"][0]["limit_us"]
    assert f"| 8192x4 | 200.0 | 500.0 | 300.0 |  | {limit:.1f} | {limit / 2:.0f} % | 1.50 |" in text
    assert "| 1024x8 | 100.0 |  |  | 120.0 |" in text
    # The set that is checked has errors alone.
    assert "| fla | 1 | 3.0e-03 | 2.0e-03 |" in text
    assert "200+312" not in text
    assert "- flashqla, (2, 8) 1024x8: no" in text
    faster = report(row("gdn", 100.0), row("fla", 250.0), row("flashqla", 190.0))
    assert "| 1.90 | 16/32 8192x4 | 1.8, 1.4 | yes |" in packed_tables.markdown(faster)


def test_rows_of_the_same_bits_in_any_batch_stand_beside():
    made = report(
        row("gdn", 200.0),
        row("gdn", 220.0, part="batch-invariant", variant="fused-v-split-2"),
        row("gdn", 150.0, part="forced", variant="other"),
        row("fla", 500.0),
    )
    text = packed_tables.markdown(made)
    assert "| gdn batch-invariant / gdn | 1 | 1.10 |" in text
    assert "| 2.27 | staged, fused-v-split-2 |" in text
    assert "other" not in text


def test_other_heads_are_asked_for_less():
    made = report(row("gdn", 200.0), row("fla", 320.0))
    for each in made["rows"]:
        each["config"] |= {"dk": 96, "dv": 192}
    text = packed_tables.markdown(made)
    assert "| fla / gdn | 1 | 1.60 | 1.60 | 16/32 8192x4 | 1.5, 0.0 | yes |" in text
    assert "Heads 16, 32 of 96 x 192; us" in text


def test_stages_are_those_of_a_trace():
    def event(name: str, begins: float, us: float) -> dict:
        return {"name": name, "ts": begins, "dur": us}

    events = [event("prefill__prologue", 100.0, 20.0), event("prefill__inter_chunk", 121.0, 50.0)]
    events += [event("prefill__prologue", 300.0, 22.0), event("prefill__inter_chunk", 323.0, 54.0)]
    config = row("gdn", 1.0)["config"]
    first, second = packed_stages.rows(events, 2, config, "gdn", "fused")
    assert (first["us"], first["us_min"], first["us_max"]) == (22.0, 20.0, 22.0)
    assert first["config"]["begins_us"] == 0.0 and second["config"]["begins_us"] == 22.0
    made = report(row("gdn", 90.0), first, second)
    assert "limit_us" in made["rows"][0] and "limit_us" not in made["rows"][1]
    text = packed_tables.markdown(made)
    assert "| 16/32 8192x4 | fused | prologue 22, inter chunk 54 |" in text
    for count, found in ((3, events), (1, [])):
        with pytest.raises(ValueError, match=f"expected a multiple of {count} kernels"):
            packed_stages.rows(found, count, config, "gdn", "fused")


def test_each_report_has_the_tables_of_its_suite(tmp_path, capsys):
    made = report(row("gdn", 200.0), not_measured=REPORT["not_measured"])
    assert prefill_tables.markdown(made) == ""
    assert packed_tables.markdown(REPORT) == ""
    path = tmp_path / "report.json"
    path.write_text(json.dumps(made))
    assert bench.main(["table", str(path)]) == 0
    assert capsys.readouterr().out.count("flashqla, everywhere") == 1


def test_each_kernel_is_compiled_once():
    peers = ["fla", "flashinfer", "flashqla"]
    found = packed_compile.jobs(list(packed_compile.HEADS), list(packed_compile.SETS), peers)
    assert set(found) == {"fla", "flashqla"}
    widths = [job[1] for job in found["fla"] if job[0] == "convolution"]
    assert widths == ["256", "1024", "2048", "4096", "8192"]
    # One for each count of 65,536 rows: 16 heads of 8,192 and 32,768 tokens, and 2 heads.
    norms = [count for job in found["fla"] if job[0] == "l2norm" for count in job[1:]]
    assert norms == ["65536", "131072", "524288"]
    assert [job[3:5] for job in found["fla"] if job[:2] == ["rule", "0"]] == [
        [str(keys), str(values)] for keys, values in packed_compile.HEADS
    ]
    few, several = found["flashqla"][:2]
    assert few == ["flashqla", "16", "32", "1x8192", "1x32768", "2048+6144"]
    assert several == ["flashqla", "16", "32", "8192x4", "1024x8", "4096x8"]
    # Of other heads rows of a kernel have other widths.
    found = packed_compile.jobs([(16, 32)], ["1x8192"], ["fla"], (64, 128))
    assert [job[1] for job in found["fla"] if job[0] == "convolution"] == ["1024", "4096"]
    # The rules alone are left out with the peers; nothing is compiled for ours.
    assert not any(
        job[0] == "rule" for job in packed_compile.jobs([(2, 8)], [], ["flashqla"])["fla"]
    )
    assert packed_compile.jobs([(2, 8)], ["1x8192"], []) == {}


def test_a_process_that_compiles_is_waited_for_no_longer_than_that():
    process = packed_compile.subprocess.Popen(["sleep", "60"])
    try:
        assert not packed_compile.wait([process], time.monotonic() + 0.05)
    finally:
        packed_compile.stop([process])
    assert process.returncode != 0
    assert packed_compile.wait([process], time.monotonic())


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["--sets", "0x4"], "expected such as 1x4096, 4096x8 or 1024+7168, got 0x4"),
        (["--heads", "16,24"], "heads: expected a multiple of the key heads, got 16,24"),
        (["--peers", "cudnn"], "peers: expected some of fla, flashinfer, "),
    ],
)
def test_what_cannot_be_measured_is_refused(tmp_path, capsys, arguments, reason):
    image = tmp_path / "i.gdnk"
    image.write_bytes(b"")
    command = ["packed", str(image), "--output", str(tmp_path / "r.json")]
    with pytest.raises(SystemExit):
        bench.main([*command, *arguments])
    assert reason in capsys.readouterr().err


def test_an_image_that_is_not_there_is_refused(tmp_path, capsys):
    command = ["packed", str(tmp_path / "none.gdnk"), "--output", str(tmp_path / "r.json")]
    with pytest.raises(SystemExit):
        bench.main(command)
    assert "image: no file" in capsys.readouterr().err
