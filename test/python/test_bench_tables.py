# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the benchmarks, from a small report."""

import json

import pytest
from conftest import ROOT

from gdn.bench import __main__ as bench
from gdn.bench import limits, prototype, step_tables, tables


def row(impl: str, variant: str, count: int, us: float, heads=(16, 32), **config) -> dict:
    return {
        "suite": "verify" if "mode" in config else "decode",
        "impl": impl,
        "config": {
            "Hk": heads[0],
            "Hv": heads[1],
            "dk": 128,
            "dv": 128,
            "io": "bfloat16",
            "state": "float32",
            "N": count,
            "variant": variant,
        }
        | config,
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


def test_the_fastest_variant_of_a_part_has_the_column():
    report = REPORT | {
        "rows": [
            row("gdn", "rows", 8, 10.0, part="step"),
            row("flashinfer", "pool", 8, 9.0, part="rule"),
            row("flashinfer", "pool 2", 8, 8.5, part="rule"),
            row("flashinfer", "state", 8, 8.0, part="rule"),
            row("vllm", "", 8, 15.0, part="step") | {"error_o": 2e-3, "error_state": 1e-4},
        ]
    }
    text = tables.markdown(report)
    assert "| N | flashinfer rule | flashinfer rule in order | gdn | vllm step |\n" in text
    assert "| 8 | 8.50 | 8.00 | 10.00 | 15.00 |\n" in text
    assert "| 8 | 0.85 | 0.80 | 1.50 |" in text
    assert "| vllm step | 2.0e-03 | 1.0e-04 |" in text


def test_verify_has_a_table_for_each_number_of_tokens_and_mode(tmp_path):
    rows = [
        row("gdn", "lazy", 8, 10.0, T=4, mode="lazy"),
        row("gdn", "lazy", 8, 20.0, T=8, mode="lazy"),
        row("flashinfer", "", 8, 30.0, T=4, mode="buffer", part="rule"),
    ]
    text = tables.markdown(REPORT | {"rows": rows}, "verify")
    assert text.count("state float32; 4 tokens, ") == 3
    assert text.count("8 tokens, lazy; us") == 1
    # Where states are kept in several ways, one table has them all.
    assert text.count("all ways to keep states") == 1
    assert "| buffer | flashinfer rule | 30.00 |\n| lazy | gdn | 10.00 |" in text
    assert bench.suites_of(REPORT | {"rows": rows}) == ["verify"]


def limits_of(*others: dict, ours: dict) -> tuple:
    rows = [ours, *others]
    limits.add_limits(rows)
    assert not any("limit_us" in other for other in others)
    return rows[0].get("limit_us"), rows[0].get("limit_by")


def test_limits():
    # 256 MiB of f32 states: nine tenths of the stream; below that, none.
    stream = row("stream", "plain", 64, 72.0)
    ours = row("gdn", "rows", 64, 80.0)
    assert limits_of(stream, ours=ours) == (80.0, "90 % of the stream")
    less = row("gdn", "rows", 63, 80.0)
    assert limits_of(row("stream", "plain", 63, 72.0), ours=less) == (None, None)
    more = row("gdn", "rows", 128, 80.0)
    assert limits_of(row("stream", "plain", 128, 93.0), ours=more) == (100.0, "93 % of the stream")
    # Of other heads: none.
    apart = row("stream", "plain", 64, 72.0, heads=(2, 8))
    assert limits_of(apart, ours=row("gdn", "rows", 64, 80.0)) == (None, None)


def test_a_share_of_the_copy_is_of_the_device():
    report = {"device": "NVIDIA H200", "ceilings": {"copy_TBps": 4.4}}
    assert limits.copy_tbps(report) == 4.25
    other = {"device": "NVIDIA H100 80GB HBM3", "ceilings": {"copy_TBps": 3.0}}
    assert limits.copy_tbps(other) == 3.0
    narrow = row("gdn", "rows", 256, 300.0)
    narrow["config"]["state"] = "bfloat16"
    limits.add_limits([narrow], limits.copy_tbps(other))
    traffic = limits.state_traffic(narrow["config"])
    assert narrow["limit_by"] == "80 % of the copy"
    assert narrow["limit_us"] == pytest.approx(traffic / (0.8 * 3.0) * 1e-6)


def test_limits_are_the_smallest_of_the_peers():
    fla = row("fla", "", 8, 9.0, part="rule")
    rule = row("flashinfer", "pool", 8, 8.0, part="rule")
    step = row("vllm", "", 8, 12.0, part="step")
    alone = row("vllm", "", 8, 3.0, part="rule")  # of which nothing is asked
    assert limits_of(step, alone, ours=row("gdn", "rows", 8, 7.0)) == (12.0, "vllm step")
    assert limits_of(step, fla, ours=row("gdn", "rows", 8, 7.0)) == (9.0, "fla rule")
    assert limits_of(step, fla, rule, ours=row("gdn", "rows", 8, 7.0)) == (8.0, "flashinfer rule")
    single = row("fla", "", 4, 1.0, part="rule")  # asked from 8 rows on
    assert limits_of(single, ours=row("gdn", "rows", 4, 7.0)) == (None, None)


def test_what_a_step_has_to_move():
    # 64 rows of (16, 32): 256 MiB of states, 3.1 % more with all else.
    config = row("gdn", "rows", 64, 80.0)["config"]
    more = 64 * 2 * (6 * 8192 + 2 * 4096 + 2 * 2048 + 64 + 4096)
    assert limits.step_traffic(config) == limits.state_traffic(config) + more
    stream = row("stream", "plain", 64, 70.0)
    rows = [row("gdn", "rows", 64, 75.0), stream, row("fla", "", 64, 71.0, part="rule")]
    limits.add_limits(rows)
    share = limits.step_traffic(config) / limits.state_traffic(config)
    assert rows[0]["floor_us"] == 70.0 * share and 1.02 < share < 1.04
    text = tables.markdown(REPORT | {"rows": rows})
    assert f"| 64 | gdn | 71.00 | fla rule * | 1.056 | {70 * share:.2f} |" in text
    assert "Floor: " in text
    # Nothing is said of launches that are short, and no mark stands where a limit is above.
    rows = [row("gdn", "rows", 8, 12.0), row("stream", "plain", 8, 10.0)]
    limits.add_limits(rows)
    assert "floor_us" not in rows[0]


def test_limits_of_overlapping_launches_are_of_overlapping_launches():
    plain, pdl = row("prototype", "C", 8, 10.0), row("prototype pdl", "C", 8, 8.0)
    for ours, us in (("rows", 10.3), ("rows pdl", 8.24)):
        found, by = limits_of(plain, pdl, ours=row("gdn", ours, 8, 7.0))
        assert abs(found - us) < 1e-9
        assert by == "prototype + 3 %"


def of_both_orders(count: int = 64, **config) -> list[dict]:
    """Ours through slots in random order and in order; without and with dependent launches."""
    ends = ("", " pdl", " in order", " in order pdl")
    return [row("gdn", f"rows{end}", count, 80.0, part="step", **config) for end in ends]


def limits_by_label(others: list[dict], ours: list[dict]) -> dict[str, tuple]:
    limits.add_limits(ours + others)
    return {tables.label(r): (r.get("limit_us"), r.get("limit_by")) for r in ours}


def test_who_takes_no_slots_limits_ours_in_order_alone():
    pool = row("flashinfer", "pool", 64, 9.0, part="rule")
    for other, by in (
        (row("flashinfer", "state", 64, 7.0, part="rule"), "flashinfer rule in order"),
        (row("fla", "", 64, 7.0, part="rule"), "fla rule"),
        (row("fla", "", 64, 7.0, part="step"), "fla step"),
    ):
        found = limits_by_label([pool, other], of_both_orders())
        assert found["gdn"] == found["gdn pdl"] == (9.0, "flashinfer rule")
        assert found["gdn in order"] == found["gdn in order pdl"] == (7.0, by)


def test_who_takes_slots_limits_ours_in_random_order_alone():
    state = row("flashinfer", "state", 64, 9.0, part="rule")
    for other, us, by in (
        (row("flashinfer", "pool", 64, 7.0, part="rule"), 7.0, "flashinfer rule"),
        (row("flashinfer", "conv", 64, 7.0, part="step"), 7.0, "flashinfer step"),
        (row("vllm", "", 64, 7.0, part="step"), 7.0, "vllm step"),
        (row("stream", "plain", 64, 7.2), 8.0, "90 % of the stream"),
    ):
        found = limits_by_label([state, other], of_both_orders())
        assert found["gdn"] == found["gdn pdl"] == (us, by)
        assert found["gdn in order"] == (9.0, "flashinfer rule in order")
        assert found["gdn in order pdl"] == found["gdn in order"]


def test_the_prototype_and_the_copy_say_nothing_of_slots_in_order():
    by_hand = [row("prototype", "C", 8, 10.0), row("prototype pdl", "C", 8, 8.0)]
    found = limits_by_label(by_hand, of_both_orders(8))
    assert [us and round(us, 3) for us, _ in found.values()] == [10.3, 8.24, None, None]
    found = limits_by_label([], of_both_orders(256, state="bfloat16"))
    assert [by for _, by in found.values()] == ["80 % of the copy"] * 2 + [None] * 2


def test_the_floor_in_order_is_of_the_stream_in_order():
    streams = [row("stream", "plain", 64, 70.0), row("stream in order", "torch neg_", 64, 65.0)]
    assert [limits.is_in_order(r) for r in streams] == [False, True]
    ours = of_both_orders()
    limits.add_limits(ours + streams)
    share = limits.step_traffic(ours[0]["config"]) / limits.state_traffic(ours[0]["config"])
    assert [r["floor_us"] for r in ours] == [70.0 * share] * 2 + [65.0 * share] * 2
    alone = of_both_orders()
    limits.add_limits([*alone, streams[0]])
    assert ["floor_us" in r for r in alone] == [True, True, False, False]


def test_records_without_slots_in_order_keep_their_limits():
    others = [
        row("flashinfer", "pool", 64, 9.0, part="rule"),
        row("flashinfer", "state", 64, 8.0, part="rule"),
        row("stream", "plain", 64, 70.0),
    ]
    ours = of_both_orders()[:2]
    # What is in order of another size changes nothing.
    found = limits_by_label([*others, *of_both_orders(32)], ours)
    assert found == dict.fromkeys(("gdn", "gdn pdl"), (8.0, "flashinfer rule in order"))
    assert all("floor_us" in r for r in ours)
    text = tables.markdown(REPORT | {"rows": ours + others})
    assert "| 64 | 0.11 | 0.10 |" in text
    assert "Times over ours" not in text
    assert "stream in order" not in text


def test_tables_set_like_beside_like():
    ours = of_both_orders()
    for r, us in zip(ours, (100.0, 90.0, 80.0, 60.0), strict=True):
        r["us"] = us
    others = [
        row("fla", "", 64, 96.0, part="rule"),
        row("flashinfer", "pool", 64, 110.0, part="rule"),
        row("flashinfer", "state", 64, 88.0, part="rule"),
        row("stream in order", "torch neg_", 64, 60.0),
    ]
    limits.add_limits(ours + others)
    text = tables.markdown(REPORT | {"rows": ours + others})
    assert "| gdn | gdn in order | gdn in order pdl | gdn pdl | stream in order |\n" in text
    assert "| 100.00 | 80.00 | 60.00 | 90.00 | 60.00 |\n" in text
    names = "| N | fla rule / gdn | flashinfer rule / gdn | flashinfer rule in order / gdn |\n"
    assert 'order) over "gdn in order", of all others over "gdn".\n\n' + names in text
    assert "| 64 | 1.20 | 1.10 | 1.10 |\n" in text
    assert "| 64 | gdn | 110.00 | flashinfer rule | 0.909 |" in text
    assert "| 64 | gdn in order | 88.00 | flashinfer rule in order | 0.909 |" in text
    assert "| 64 | gdn in order pdl | 88.00 | flashinfer rule in order | 0.682 |" in text
    assert "floor is at the rate of the stream in order." in text


def test_ways_to_launch_have_a_table():
    ways = [{"suite": "host", "impl": "gdn", "config": {"variant": "Call"}, "us": 2.26}]
    ways.append(ways[0] | {"limit_us": 4.0, "us_min": 2.1, "config": {"variant": "C ABI"}})
    step = {"variant": "step", "N": 256, "layers": 36}
    ways.append(ways[0] | {"limit_us": None, "config": step})
    table = tables.host(REPORT | {"rows": REPORT["rows"] + ways})
    assert table.splitlines()[2:] == [
        "| Call | 2.3 |  |  |",
        "| C ABI | 2.3 | 2.1 | 4 |",
        "| step, batch 256, 36 layers | 2.3 |  |  |",
    ]
    assert tables.host(REPORT) == ""


def test_verify_has_limits_of_its_own():
    same = {"T": 4, "mode": "buffer"}
    rows = [
        row("gdn", "rows", 64, 200.0, part="step", **same),
        row("gdn", "rows", 64, 90.0, part="commit", **same),
        row("flashinfer", "", 64, 250.0, part="rule", **same),
        row("flashinfer", "", 64, 100.0, part="rule", T=4, mode="slots"),
        row("stream", "plain", 64, 70.0, **same),
    ]
    limits.add_limits(rows)
    assert (rows[0]["limit_us"], rows[0]["limit_by"]) == (250.0, "flashinfer rule")
    assert all("limit_us" not in other for other in rows[1:])
    table = tables.markdown(REPORT | {"rows": rows}, "verify")
    assert "| N | flashinfer rule | gdn | gdn commit | stream | of the stream |" in table


RESULTS = sorted((ROOT / "runtime/bench/results").glob("*.json"))
REPORT_FIELDS = {"device", "driver", "date", "commit", "versions", "ceilings", "rows"}
ROW_FIELDS = {
    "suite",
    "impl",
    "config",
    "us",
    "us_min",
    "us_max",
    "first_call_ms",
    "host_us",
    "error_o",
    "error_state",
    "limit_us",
    "limit_by",
    "floor_us",
    "mallocs",
    "state_TBps",
    # Of a step of all kinds of sequences, and of the host's part of a step.
    "same_bits_as_launches",
    "difference_to_split",
    "step_us",
    "build_us",
    "upload_us",
    "forward_us",
    "launch_us",
    "driver_launch_us",
    "launches",
    "driver_calls",
    "context_queries",
    "allocations",
    "driver_allocations",
    "synchronisations",
    "calls",
}
ALL_SUITES = ("decode", "verify", "prefill", "packed", "prologue", "norm")
ALL_SUITES += ("cpu", "host", "compile", "first call", "step", "prefill-channels")


# Of parts of other programs, which say what gdn-bench does not ask.
OTHER_REPORTS = ("decode-deferred", "decode-parts", "decode-planes", "single-ops", "state-order")
OTHER_REPORTS += ("many-gpus", "prefill-in-parts", "state-moves", "state-moves-joined")
OTHER_REPORTS += ("state-moves-device", "state-moves-shapes")
OTHER_REPORTS += ("sglang-slots", "transformers", "verify-deferred", "vllm-layer")
OTHER_REPORTS += ("sglang-kda-layer", "sglang-kda-verify")
OTHER_REPORTS += ("sglang-kda", "vllm-layer-forms", "vllm-layer-kda", "vllm-layer-kda-verify")
OTHERS = [path for path in RESULTS if path.stem.rpartition("-")[0] in OTHER_REPORTS]


def test_recorded_reports_of_other_programs():
    assert {path.stem.rpartition("-")[0] for path in OTHERS} == set(OTHER_REPORTS)
    for path in OTHERS:
        report = json.loads(path.read_text())
        assert {"device", "date", "commit", "versions", "rows"} <= set(report), path
        assert all({"suite", "impl", "config"} <= set(row) for row in report["rows"]), path


PREFIX_CACHE = ROOT / "runtime/bench/results/prefix-cache.json"
GDN_BENCH = [path for path in RESULTS if path not in [*OTHERS, PREFIX_CACHE]]


def test_recorded_host_times_of_a_prefix_cache():
    report = json.loads(PREFIX_CACHE.read_text())["host"]
    assert REPORT_FIELDS - set(report) <= {"ceilings", "versions"}
    assert {row["config"]["variant"] for row in report["rows"]} == {"match", "insert", "evict"}
    for row in report["rows"]:
        assert row["suite"] == "prefix-cache" and row["mallocs"] == 0
        assert row["us_min"] <= row["us"] <= row["us_p99"]
        assert row["us"] <= (row["limit_us"] or row["us"])


@pytest.mark.parametrize("path", GDN_BENCH, ids=[path.stem for path in GDN_BENCH])
def test_recorded_reports_have_one_format(path):
    """Those of the GPU from Python and those of the CPU from C++."""
    report = json.loads(path.read_text())
    assert REPORT_FIELDS - set(report) <= {"ceilings"}
    for row in report["rows"]:
        assert row["suite"] in ALL_SUITES
        assert {"impl", "config", "us"} <= set(row), row
        assert set(row) <= ROW_FIELDS, set(row) - ROW_FIELDS
        assert "variant" in row["config"]
        assert row["us_min"] <= row["us"] <= row.get("us_max", row["us"])


def test_a_step_through_a_layer_is_as_fast_as_its_kernel():
    """In a graph, with dependent launches as they are by default."""
    report = json.loads((ROOT / "runtime/bench/results/step-h100.json").read_text())
    times = {
        (row["impl"], row["config"]["state"], row["config"]["N"]): row["us"]
        for row in report["rows"]
        if row["config"]["variant"] == "dependent"
    }
    kernels = {key[1:] for key in times if key[0] == "gdn kernel"}
    assert {rows for _, rows in kernels} >= {1, 64, 512}
    for key in kernels:
        assert times["gdn layer", *key] <= 1.03 * times["gdn kernel", *key]
    assert times["gdn layer", "float32", 1] <= 3.5
    # In the mean of all sizes, where peers were measured.
    for peer, values in step_tables.ratios(report).items():
        assert peer != "vLLM rule alone" or step_tables.mean(values) >= 1.15
    table = step_tables.markdown(report)
    assert "| 16, 32 | float32 | 1 |" in table
    assert step_tables.markdown(report | {"rows": []}) == ""


def step_row(impl: str, variant: str, us: float, state: str = "float32", **more) -> dict:
    config = {"Hk": 16, "Hv": 32, "state": state, "N": 1, "step": "decode", "variant": variant}
    return {"suite": "step", "impl": impl, "config": config, "us": us, "error_o": 1e-3} | more


def test_steps_beside_the_rule_alone_of_others():
    rows = [step_row("gdn layer", "dependent", 4.0), step_row("gdn layer", "waits", 5.0)]
    rows += [step_row("vLLM rule alone", name, us) for name, us in (("a", 9.0), ("b", 6.0))]
    rows += [step_row("gdn layer", "dependent", 2.0, "bfloat16")]
    rows += [step_row("vLLM rule alone", "a", 4.0, "bfloat16", error_o=2e-3)]
    report = REPORT | {"rows": rows}
    (values,) = step_tables.ratios(report).values()
    assert list(values.values()) == [1.5, 2.0]
    text = step_tables.markdown(report)
    assert "| 16, 32 | float32 | 1 | 4.00 | 6.00 | 1.50 | 1.0e-03 | 1.0e-03 |" in text
    assert "| 16, 32 | bfloat16 | 1 | 2.00 | 4.00 | 2.00 | 1.0e-03 | 2.0e-03 |" in text
    assert "Means: vLLM rule alone 1.75." in text
    assert "layer to kernel" not in text  # the kernel was not measured


def test_a_step_of_all_kinds_of_sequences():
    config = {"Hk": 16, "Hv": 32, "state": "float32", "step": "mixed", "decodes": 64}
    config |= {"verifies": 16, "columns": 4, "prefills": 4, "prompt": 1024}
    times = {
        ("gdn layer", "graph"): 300.0,
        ("gdn layer", "launches"): 310.0,
        ("gdn layer split", "launches"): 400.0,
        ("gdn kernel", "verify alone"): 150.0,
        ("gdn kernel", "prefill alone"): 130.0,
    }
    rows = [
        step_row(impl, variant, us) | {"config": config | {"variant": variant}}
        for (impl, variant), us in times.items()
    ]
    text = step_tables.markdown(REPORT | {"rows": rows})
    what = "64 of 1 token, 16 verified of 4, 4 of 1024"
    assert f"| {what} | 300.0 | 310.0 | 400.0 | 150.0 | 130.0 | 1.07 | 0.75 | 1.0e-03 |" in text
    assert step_tables.markdown(REPORT | {"rows": rows[1:]}) == ""


HOST_ROW = {
    "suite": "host",
    "impl": "gdn layer",
    "config": {"variant": "idle", "step": "decode", "N": 256, "layers": 1},
    "us": 1.5,
    "build_us": 1.0,
    "upload_us": 0.25,
    "forward_us": 2.25,
    "launch_us": 2.0,
    "launches": 1,
    "driver_calls": 3,
    "allocations": 0,
    "synchronisations": 0,
}


def test_what_a_step_costs_the_host():
    report = REPORT | {"rows": [HOST_ROW]}
    text = step_tables.markdown(report)
    assert "| decode | idle | 256 | 1.50 | 1.00 | 0.25 | 2.25 | 2.00 | 1 | 3 | 0 | 0 |" in text
    assert tables.host(report) == ""  # which has rows without parts


def test_what_was_not_measured():
    report = REPORT | {"refused": ["verify, flashinfer replay: needs\nSM100", "x rule: no time"]}
    text = tables.markdown(report)
    assert (
        "\nNot measured:\n\n- verify, flashinfer replay: needs SM100\n- x rule: no time\n" in text
    )
    assert "Not measured" not in tables.markdown(report, "verify") + tables.markdown(REPORT)


def test_reports_are_joined(tmp_path, capsys):
    one = REPORT | {"commit": "1", "versions": {"torch": "2"}, "rows": REPORT["rows"][:1]}
    two = one | {"versions": {"vllm": "3"}, "rows": REPORT["rows"][1:2]}
    one, two = one | {"refused": ["b: no"]}, two | {"refused": ["a: no", "b: no"]}
    parts = {"one": one, "two": two, "rows": [HOST_ROW], "other": one | {"device": "GPU 2"}}
    for name, part in parts.items():
        (tmp_path / name).write_text(json.dumps(part))
    output = tmp_path / "joined.json"

    def join(*names):
        paths = [str(tmp_path / name) for name in names]
        return bench.main(["join", *paths, f"--output={output}"])

    assert join("one", "two", "rows") == 0
    joined = json.loads(output.read_text())
    assert joined["rows"] == [*REPORT["rows"][:2], HOST_ROW]
    assert joined["versions"] == {"torch": "2", "vllm": "3"}
    assert joined["refused"] == ["a: no", "b: no"]
    for names, message in (
        (["one", "other"], "device: expected GPU <1>, got GPU 2"),
        (["rows"], "parts: expected a report"),
    ):
        with pytest.raises(SystemExit):
            join(*names)
        assert message in capsys.readouterr().err


def test_table_command(tmp_path, capsys):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    assert bench.main(["table", str(report)]) == 0
    assert "of the stream" in capsys.readouterr().out
    assert bench.heads("2,8") == (2, 8)


PRINTED = """\
us per launch
verify T4 mode1 fp32          8.10( 1.2)    16.70(48.2)    96.00(66.0)
verify T4 mode1 fp32  pdl     6.80( 1.2)            -
verify T4 mode2 fp32          7.70( 1.2)    15.00(48.2)
verify T8 mode0 bf16          8.90( 1.2)    18.50(48.2)   116.20(66.0)   224.00(66.0)    33.00(60.0)
done
"""


def test_the_hand_written_verify_is_read():
    times = prototype.verify_times(PRINTED)
    assert times["lazy", "float32", False, 4, 16, 32, 64] == 96.0
    assert times["lazy", "float32", True, 4, 16, 32, 1] == 6.8
    assert times["slots", "bfloat16", False, 8, 2, 8, 64] == 33.0
    assert len(times) == 9  # what keeps no state to go back to, and what was left out, is not
    assert prototype.verify_sizes(times, "lazy", "float32") == [
        (16, 32, 1, 4),
        (16, 32, 8, 4),
        (16, 32, 64, 4),
    ]


def test_the_hand_written_verify_sets_limits():
    same = {"T": 4, "mode": "lazy"}
    rows = [
        row("gdn", "rows", 1, 8.0, part="step", **same),
        row("gdn", "rows pdl", 1, 6.0, part="step", **same),
        row("gdn", "rows", 256, 8.0, part="step", **same),
    ]
    found = prototype.verify_rows(prototype.verify_times(PRINTED), rows)
    assert [(r["impl"], r["us"]) for r in found] == [("prototype", 8.1), ("prototype pdl", 6.8)]
    assert found[0]["suite"] == "verify"
    limits.add_limits(rows + found)
    assert [r.get("limit_us") for r in rows] == [8.1 * 1.03, 6.8 * 1.03, None]
    assert rows[0]["limit_by"] == "prototype + 3 %"


def test_the_hand_written_decode_is_read(tmp_path):
    csv = tmp_path / "bench.csv"
    csv.write_text(
        "A S1 pdl0,16,32,64,76.5,0,1,1\nC pdl0,16,32,64,77.5,0,1,1\nC pdl2,16,32,64,74.5,0,1,1\n"
        "Cb pdl0 bf16,16,32,64,43.5,0,1,1\nA S1 pdl0,16,32,8,12.5,0,1,1\n"
    )
    measured = [row("gdn", "rows", 64, 75.0), row("gdn", "lazy", 64, 90.0, T=4, mode="lazy")]
    found = prototype.rows(csv, measured)
    assert [(r["impl"], r["us"], r["config"]["variant"]) for r in found] == [
        ("prototype", 76.5, "A S1 pdl0"),
        ("prototype pdl", 74.5, "C pdl2"),
    ]
    assert {r["suite"] for r in found} == {"decode"}
