# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of which heads GPUs have kernels for: how reports are read, and that what is
left out today is what the record says."""

import json
import subprocess

import gpu_support

REPORT = """kernel target registers shared dynamic stack spills loads code threads cluster sm pdl
prefill__intra_chunk sm_86 206 41984 0 0 0 0 52352 128 1 0 no
prefill__inter_chunk sm_86 243 0 93440 8 12 16 60544 256 1 0 no
decode_persistent sm_86 94 0 105376 0 0 0 47744 288 1 2 yes
decode sm_86 128 3616 0 0 0 0 39168 256 1 0 no
"""
SAID = (
    "<unknown>:0: remark: 'prefill__inter_chunk_v_split_2' would take about 342 registers\n"
    "<unknown>:0: remark: entry 'verify' has no schedule for a GPU and is left out\n"
)


def test_facts_are_the_largest_of_an_entrys_kernels():
    found = gpu_support.facts(REPORT, SAID, ["prefill", "decode"])
    prefill, decode = found["prefill"], found["decode"]
    assert (prefill["kernels"], prefill["registers"], prefill["shared"]) == (2, 243, 93440)
    assert prefill["spills"] == 12
    assert prefill["left_out"] == {"inter_chunk_v_split_2": "would take about 342 registers"}
    assert (decode["kernels"], decode["registers"], decode["shared"]) == (2, 128, 105376)
    assert decode["left_out"] == {}


def test_the_page_has_figures_or_reasons():
    where = {"heads": [64, 64], "layout": "ready", "io": "bf16", "target": "sm_86"}
    found = gpu_support.facts(REPORT, SAID, ["prefill"])
    text = gpu_support.markdown([where | {"entry": "prefill"} | found["prefill"]])
    cells = ["243, 93440, 12" if name == "sm_86" else "" for name in gpu_support.TARGETS]
    assert f"| 64 x 64 | bf16, ready | `prefill` | {' | '.join(cells)} |" in text
    assert (
        "- `prefill__inter_chunk_v_split_2` would take about 342 registers: 64 x 64 ready (" in text
    )


def test_prefill_of_mma_sync_spills_nothing():
    rows = json.loads(gpu_support.RECORD.read_text())
    others = [row for row in rows if row["entry"] == "prefill" and row["target"] != "sm_90a"]
    assert len(others) == 4 * len(gpu_support.HEADS) * (len(gpu_support.TARGETS) - 1)
    assert [row for row in others if row["spills"]] == []
    assert max(row["shared"] for row in others) <= 99 * 1024


def test_what_is_left_out_is_as_recorded(build_dir, tmp_path):
    """Reasons are given before ptxas is asked, so they cost no time."""
    rows = [row for row in json.loads(gpu_support.RECORD.read_text()) if row["heads"] == [256, 256]]
    config = tmp_path / "config.json"
    dims = {"linear_key_head_dim": 256, "linear_value_head_dim": 256}
    config.write_text(json.dumps(gpu_support.MODEL | dims))
    for row in rows:
        if row["entry"] != "prefill" or row["layout"] != "ready":
            continue
        command = [build_dir / "bin/gdn-compile", "--config", config, f"--io={row['io']}"]
        command += [*gpu_support.LAYOUTS["ready"], "--state=f32", "--only=prefill"]
        command += [f"--target={row['target']}", "--emit=gpu", "-o", tmp_path / "gpu"]
        done = subprocess.run(command, text=True, capture_output=True)
        found = gpu_support.facts("", done.stderr, ["prefill"])
        assert found["prefill"]["left_out"] == row["left_out"], "run tools/scripts/gpu_support.py"
        assert row["kernels"] > 0
