# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of prefill without a GPU: what is planned, what each process is told, what one
report gathers, limits, and tables."""

import fcntl
import json
import threading
import time
from argparse import Namespace
from pathlib import Path

import pytest
from test_bench_tables import REPORT_FIELDS, ROW_FIELDS

from gdn.bench import __main__ as bench
from gdn.bench import grid, limits, prefill_run, prefill_tables, prologue_tables

CEILINGS = {"copy_TBps": 4.25, "matmul_TFLOPs": 800.0}


def row(impl: str, us: float, heads=(16, 32), name="8192x4", variant="staged", **more) -> dict:
    config = grid.Case(heads, name).config("bfloat16", "float32")
    part = {"part": more.pop("part")} if "part" in more else {}
    times = {"us": us, "us_min": us * 0.9, "us_max": us * 1.1}
    config = config | part | {"variant": variant}
    return {"suite": "prefill", "impl": impl, "config": config} | times | more


def test_the_grid_is_the_published_one():
    planned = grid.plan()
    assert len(planned) == 9
    assert {len(cases) for cases in planned.values()} == {19}
    assert len({case for cases in planned.values() for case in cases}) == 171
    assert grid.lengths_of("1x4096") == (4096,)
    assert grid.lengths_of("4096x8") == (4096,) * 8
    assert grid.lengths_of("1024+7168") == (1024, 7168)
    assert {sum(lengths) for lengths in grid.LENGTHS.values()} == {2048 << i for i in range(5)}
    assert set(grid.CHECKED) < set(grid.LENGTHS)
    assert [case.is_checked for case in planned[2, 8]].count(True) == len(grid.CHECKED)


def test_a_plan_can_be_smaller_or_have_others():
    planned = grid.plan([(2, 8), (3, 6)], ["1024x8", "512x64"])
    assert list(planned) == [(2, 8), (3, 6)]
    assert [case.name for case in planned[3, 6]] == ["1024x8", "512x64"]
    assert planned[2, 8][1].lengths == (512,) * 64
    with pytest.raises(ValueError):
        grid.plan([], ["long"])
    with pytest.raises(ValueError, match=r"expected such as 1x4096, .*, got 0x4"):
        grid.plan([], ["0x4"])


def test_limits_are_what_the_device_cannot_avoid():
    config = row("gdn", 1.0)["config"]
    # 512 chunks: scores of 16 key heads, the rest of 32 value heads.
    assert limits.prefill_flops(config) == 512 * (16 * 2**21 + 32 * (6 * 2**20 + 2**21))
    tokens = 4 * 8192 * (2 * 16 * 256 + 2 * 32 * 256 + 2 * 32 * 4)
    states = 2 * 4 * 32 * 128 * 128 * 4
    assert limits.prefill_bytes(config) == tokens + states
    assert limits.prefill_limit(config, CEILINGS)[1] == "the copy"
    us, by = limits.prefill_limit(config, CEILINGS | {"matmul_TFLOPs": 80.0})
    assert by == "the products"
    assert abs(us - limits.prefill_flops(config) / 80e6) < 1e-9
    # Chunks are whole: a row of one token takes one.
    short = config | {"lens": [1, 65], "T": 66, "N": 2}
    assert limits.prefill_flops(short) * 512 == limits.prefill_flops(config) * 3
    narrow = config | {"io": "float32"}
    assert limits.prefill_bytes(narrow) > 1.9 * limits.prefill_bytes(config)


def options(tmp_path: Path, **changes) -> Namespace:
    chosen = {"image": "i.gdnk", "output": tmp_path / "r.json", "library": "l.so", "heads": []}
    chosen |= {"sets": ["1x2048", "1024x8"], "checked": ["1x2048"], "repeats": 9, "peers": []}
    chosen |= {"seconds": 1e9, "no_peers": False, "variants": False, "devices": []}
    chosen |= {"together": False, "resume": False, "prototype": None} | changes
    return Namespace(**chosen)


def describe() -> dict:
    return {"device": "G", "driver": "1", "date": "d", "commit": "c"} | {
        "versions": {"torch": "2"},
        "ceilings": CEILINGS,
    }


def value_of(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_each_pair_of_heads_is_a_process_and_all_write_one_report(tmp_path):
    started = []

    def start(arguments: list[str], device: str, descriptors: list[int]) -> int:
        assert (device, descriptors) == ("", [])
        started.append(arguments)
        heads = bench.heads(value_of(arguments, "--heads"))
        if heads == (8, 32):
            return 1  # dies before it writes
        missing = {"impl": "flashqla", "where": "everywhere", "reason": "no module"}
        part = {"rows": [row("gdn", 10.0, heads)], "not_measured": [missing]}
        Path(value_of(arguments, "--part")).write_text(json.dumps(part))
        return 0

    report = prefill_run.measure(options(tmp_path), describe, start)
    assert [value_of(arguments, "--heads") for arguments in started][:3] == ["2,8", "4,16", "8,32"]
    assert len(started) == 9
    at = started[0].index("--sets")
    assert started[0][at : at + 5] == ["--sets", "1x2048", "1024x8", "--checked", "1x2048"]
    assert len(report["rows"]) == 8
    # What is missing everywhere is said once; a process that died is said.
    assert [item["impl"] for item in report["not_measured"]] == ["flashqla", "all"]
    assert report["not_measured"][1]["where"] == "(8, 32)"
    assert json.loads((tmp_path / "r.json").read_text()) == report
    assert set(report) >= REPORT_FIELDS
    for found in report["rows"]:
        assert set(found) <= ROW_FIELDS
        assert found["limit_us"] > 0
    assert not list(tmp_path.glob("*.part.json"))


def test_no_process_begins_without_time(tmp_path):
    report = prefill_run.measure(options(tmp_path, seconds=-1), describe, lambda *_: 1 / 0)
    assert len(report["not_measured"]) == 9
    assert "no time was left" in prefill_tables.markdown(report)


def test_two_gpus_share_the_pairs_and_measure_at_the_same_time(tmp_path):
    both = threading.Barrier(2, timeout=30)
    seen = {"0": [], "1": []}

    def start(arguments: list[str], device: str, descriptors: list[int]) -> int:
        if not seen[device]:
            both.wait()
        seen[device].append(bench.heads(value_of(arguments, "--heads")))
        return 0

    report = prefill_run.measure(options(tmp_path, devices=["0", "1"]), describe, start)
    assert sorted(seen["0"] + seen["1"]) == sorted(grid.HEADS)
    values = [sum(values for _, values in pairs) for pairs in seen.values()]
    assert abs(values[0] - values[1]) <= 16
    assert report["not_measured"] == []


def test_processes_that_compile_together_measure_alone_and_not_before(tmp_path):
    prepared, alone, worst, most = [], [], [], threading.Lock()

    def start(arguments: list[str], device: str, descriptors: list[int]) -> int:
        heads = bench.heads(value_of(arguments, "--heads"))
        (turn,) = descriptors
        assert value_of(arguments, "--turn") == str(turn)
        time.sleep(0.002 * heads[1])  # as if it compiled
        prepared.append(heads)
        fcntl.flock(turn, fcntl.LOCK_EX)
        with most:
            alone.append(heads)
            worst.append((len(prepared), len(alone)))
        time.sleep(0.01)
        with most:
            alone.remove(heads)
        part = {"rows": [row("gdn", 10.0, heads)], "not_measured": []}
        Path(value_of(arguments, "--part")).write_text(json.dumps(part))
        return 0

    report = prefill_run.measure(options(tmp_path, together=True), describe, start)
    assert worst == [(9, 1)] * 9
    assert len(report["rows"]) == 9
    assert not list(tmp_path.glob("*.lock"))


def test_a_process_that_dies_while_it_compiles_does_not_stop_the_others(tmp_path):
    def start(arguments: list[str], device: str, descriptors: list[int]) -> int:
        if bench.heads(value_of(arguments, "--heads")) == (16, 64):
            return 1  # without ever asking for its turn
        fcntl.flock(descriptors[0], fcntl.LOCK_EX)
        return 0

    report = prefill_run.measure(options(tmp_path, together=True), describe, start)
    assert [item["where"] for item in report["not_measured"]] == ["(16, 64)"]


def test_a_run_goes_on_where_another_was_cut_short(tmp_path):
    before = describe() | {"not_measured": [{"impl": "all", "where": "x", "reason": "no time"}]}
    before["rows"] = [row("gdn", 10.0, heads, "1x2048") for heads in grid.HEADS]
    before["rows"] += [row("gdn", 10.0, (2, 8), "1024x8")]
    (tmp_path / "r.json").write_text(json.dumps(before))
    asked = []

    def start(arguments: list[str], device: str, descriptors: list[int]) -> int:
        at = arguments.index("--sets")
        asked.append((value_of(arguments, "--heads"), arguments[at + 1 : at + 3]))
        return 0

    report = prefill_run.measure(options(tmp_path, resume=True), lambda: 1 / 0, start)
    assert asked[0] == ("4,16", ["1024x8", "--checked"])
    assert len(asked) == 8
    assert len(report["rows"]) == 10 and report["not_measured"] == []


def test_the_hand_written_prefill_is_beside_ours_and_no_peer(tmp_path):
    (tmp_path / "p.txt").write_text(
        "BENCH 16/32 4x8192     nwg 2 nseg  1    330.0 us  (again    328.5)\n"
        "BENCH 16/32 4x8192     nwg 1 nseg  1    500.0 us  (again    501.0)\n"
        "BENCH 2/8 1x32768      nwg 1 nseg  8    286.0 us  (again    287.0)\n"
    )
    chosen = options(tmp_path, prototype=tmp_path / "p.txt", sets=["8192x4"], heads=[(16, 32)])

    def start(arguments: list[str], device: str, descriptors: list[int]) -> int:
        rows = [row("gdn", 300.0), row("fla", 900.0), row("flashinfer", 400.0)]
        part = {"rows": rows, "not_measured": []}
        Path(value_of(arguments, "--part")).write_text(json.dumps(part))
        return 0

    report = prefill_run.measure(chosen, describe, start)
    found = [found for found in report["rows"] if found["impl"] == "prototype"]
    assert [(f["config"]["set"], f["us"]) for f in found] == [("8192x4", 328.5), ("1x32768", 286.0)]
    assert found[0]["config"]["variant"] == "nwg2 parts1" and found[0]["limit_us"] > 0
    text = prefill_tables.markdown(report)
    assert "| prototype / gdn | 1 | 1.09 | 1.09 | 16/32 8192x4 | 0.95, 0.95 | yes |" in text
    assert "| best peer / gdn | 1 | 1.33 |" in text
    (tmp_path / "p.txt").write_text("no line\n")
    with pytest.raises(ValueError, match="expected lines that begin with BENCH"):
        prefill_run.measure(chosen, describe, start)


def test_what_a_process_is_told(tmp_path):
    chosen = options(tmp_path, peers=["fla"], variants=True)
    case = grid.Case((2, 8), "1x2048")
    arguments = prefill_run.arguments_of(chosen, [case], tmp_path / "p.json", 12.34)
    assert arguments[-3:] == ["--peers", "fla", "--variants"]
    assert value_of(arguments, "--seconds") == "12.3"
    none = prefill_run.arguments_of(options(tmp_path, no_peers=True), [case], tmp_path, 1)
    assert none[-1] == "--no-peers"


REPORT = describe() | {
    "not_measured": [{"impl": "flashqla", "where": "everywhere", "reason": "No module"}],
    "rows": [
        row("gdn-sm80", 100.0, error_o=2e-3, error_state=1e-3),
        row("gdn", 80.0),
        row("gdn", 10.0, part="forced", variant="staged-v-split-4"),
        row("gdn", 120.0, part="batch-invariant", variant="staged-v-split-2"),
        row("fla", 200.0, variant="", error_o=3e-3, error_state=2e-3),
        row("flashinfer", 72.0, variant="auto"),
        row("gdn-sm80", 50.0, heads=(2, 8), name="1x2048"),
        row("fla", 54.0, heads=(2, 8), name="1x2048", variant=""),
    ],
}


def test_tables_say_how_ours_stand_beside_each_peer():
    report = json.loads(json.dumps(REPORT))
    limits.add_prefill_limits(report["rows"], report["ceilings"])
    text = prefill_tables.markdown(report)
    # sqrt(2 * 1.08), and the worst row, which is below 1.1.
    assert "| fla / gdn-sm80 | 2 | 1.47 | 1.08 | 2/8 1x2048 | 1.5, 1.1 | no |" in text
    assert "| fla / gdn | 1 | 2.50 | 2.50 | 16/32 8192x4 |  |  |" in text
    # The fastest peer of each row.
    assert "| best peer / gdn | 1 | 0.90 | 0.90 | 16/32 8192x4 | 1.2, 0.95 | no |" in text
    assert "| best peer / gdn-sm80 | 2 | 0.88 | 0.72 | 16/32 8192x4 |  |  |" in text
    assert "- flashqla, everywhere: No module" in text
    assert "| gdn-sm80 | 1 | 2.0e-03 | 1.0e-03 |" in text
    limit = report["rows"][0]["limit_us"]
    shares = " | ".join(f"{100 * limit / us:.0f} %" for us in (100, 80, 120))
    assert f"| {limit:.1f} | {shares} | staged, staged-v-split-2 |" in text
    # What batch invariance costs; it is beside no peer.
    assert "| gdn batch-invariant / gdn | 1 | 1.50 | 1.50 | 16/32 8192x4 |  |  |" in text
    assert "/ gdn batch-invariant |" not in text
    # A variant that was forced has no column and no ratio.
    assert "10.0" not in text


def test_goals_that_are_met():
    rows = [row("gdn-sm80", 100.0), row("fla", 160.0, variant="")]
    text = prefill_tables.markdown(REPORT | {"rows": rows, "not_measured": []})
    assert "| fla / gdn-sm80 | 1 | 1.60 | 1.60 | 16/32 8192x4 | 1.5, 1.1 | yes |" in text
    assert "Not measured" not in text


def test_the_table_command(tmp_path, capsys):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))
    assert bench.main(["table", str(path)]) == 0
    assert "| fla / gdn-sm80 |" in capsys.readouterr().out


def stage(part: str, us: float, tokens: int = 8192, **more) -> dict:
    config = {"Hk": 16, "Hv": 32, "dk": 128, "dv": 128, "N": 1, "T": tokens, "lens": [tokens]}
    config |= {"io": "bfloat16", "state": "float32", "variant": "staged", "part": part}
    return {"suite": "prologue", "impl": "gdn-sm80", "config": config, "us": us} | more


def test_the_prologue_stands_beside_a_copy():
    rows = [stage("whole", 500.0), stage("prologue", 79.0), stage("intra-chunk", 200.0)]
    rows += [stage("prologue", 78.0, 4096), stage("inter-chunk", 220.0), stage("norm", 50.0)]
    limits.add_prologue_limits(rows, lambda size: size / 4.25e6)
    moved = 8192 * (2 * 16 * 128 + 32 * 128) * 2 * 2
    assert limits.prologue_bytes(rows[0]["config"]) == moved
    assert rows[1]["limit_us"] == pytest.approx(moved / 4.25e6)
    assert [("limit_us" in found) for found in rows] == [False, True, False, True, False, True]
    text = prologue_tables.markdown(REPORT | {"rows": rows})
    # 63.2 us are 80.0 % of 79; below 8192 tokens nothing is asked.
    assert "| 8192 | 79.0 | 200.0 | 220.0 | 50.0 | 500.0 | 63.2 | 80 % | no | 47.4 | 95 % |" in text
    assert "| 4096 | 78.0 |  |  |  |  | 31.6 | 40 % |  |  |  |  |" in text
    rows[1]["us"] = 70.0
    assert "| 90 % | yes | 47.4 |" in prologue_tables.markdown(REPORT | {"rows": rows})
    assert prologue_tables.markdown(REPORT) == ""
