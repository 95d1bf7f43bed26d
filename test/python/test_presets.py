# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of presets, entries, types and targets is what gdn-compile makes: one preset of each
head geometry in each run, all of it with --long."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import presets
import run_once

ROWS = json.loads(presets.RECORD.read_text())
DEFAULT = [row for row in ROWS if not row["engine"]]


def test_every_preset_is_there(tool):
    (known,) = re.findall(r"--preset=<name> .*?: (.*)$", tool("gdn-compile", "--help").stdout, re.M)
    for io, target in {(row["io"], row["target"]) for row in DEFAULT}:
        here = [row for row in DEFAULT if (row["io"], row["target"]) == (io, target)]
        assert sorted(p for row in here for p in row["presets"]) == sorted(known.split(", "))


def test_nothing_is_without_a_reason():
    for row in ROWS:
        missing = set(presets.ENTRIES) - set(row["entries"])
        assert not missing or row["no"], row


def test_every_preset_has_prefill_and_decode_on_every_gpu():
    """ptxas has made code of them."""
    found = {}
    for row in DEFAULT:
        if row["target"] in presets.GPUS and {"prefill", "decode"} <= set(row["entries"]):
            found.setdefault((row["io"], row["target"]), set()).update(row["presets"])
    every = {preset for row in DEFAULT for preset in row["presets"]}
    assert {"kimi-linear-48b-a3b", "kimi-k3", "glm-5.3-flash", "ling-3.0-flash"} <= every
    assert set(found) == {(io, target) for io in presets.IOS for target in presets.GPUS}
    assert {key: every - had for key, had in found.items() if had != every} == {}


@pytest.mark.parametrize(
    "preset, io, target",
    [
        ("qwen3.5-4b", "bf16", "sm_90a"),
        ("olmo-hybrid-7b", "bf16", "sm_90a"),
        ("kimi-linear-48b-a3b", "bf16", "sm_90a"),
        ("kimi-k3", "bf16", "sm_90a"),
        ("kimi-k3", "bf16", "sm_80"),
        ("glm-5.3-flash", "f16", "sm_120a"),
        ("ling-3.0-flash", "f32", "sm_100a"),
        ("qwen3.5-4b", "f32", "sm_90a"),
    ],
)
def test_entries_are_as_recorded(tool, preset, io, target):
    """Whether there is a program; that code comes of it is for --long."""
    (row,) = (
        row
        for row in DEFAULT
        if preset in row["presets"] and (row["io"], row["target"]) == (io, target)
    )
    options = [f"--preset={preset}", f"--io={io}", "--state=f32", f"--target={target}"]
    done = tool("gdn-compile", *options, "--emit=gpu")
    assert done.returncode == 0, done.stderr
    names = r"stage_of = \"(\w+)\"", r"func\.func @(\w+)"
    found = {name for pattern in names for name in re.findall(pattern, done.stdout)}
    assert found & set(presets.ENTRIES) == set(row["entries"]), "run tools/scripts/presets.py"


@pytest.mark.long
def test_all_of_it_is_as_recorded(build_dir):
    command = [sys.executable, Path(presets.__file__), "--check", f"--build-dir={build_dir}"]
    command.append(f"--cache={run_once.image_cache(build_dir) or ''}")
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


CPU = {"presets": ["a1-b", "a1-c"], "engine": "", "io": "bf16", "target": "x86-64-v3"}
GPU = CPU | {"target": "sm_90a"}


def test_cells(monkeypatch):
    monkeypatch.setattr(presets, "devices", lambda: {"d1": "H200"})
    entries = {"prefill": "d1", "decode": "d2"}
    rows = [
        CPU | {"entries": {"prefill": "ran", "decode": "ran", "copy_slots": ""}},
        GPU | {"entries": entries, "no": {"copy_slots": "no schedule"}},
        GPU | {"io": "f16", "entries": entries, "no": {"copy_slots": "no schedule"}},
    ]
    _, _, *lines = presets.table(rows)
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    assert [(line[:3], line[3:]) for line in cells] == [
        (["`prefill`", "bf16", "all"], ["runs", "runs (H200)"]),
        (["`prefill`", "f16", "all"], ["", "runs (H200)"]),
        (["`decode`", "bf16", "all"], ["runs", "assembled"]),
        (["`decode`", "f16", "all"], ["", "assembled"]),
        (["`copy_slots`, `zero_slots`", "bf16", "all"], ["runs", "no"]),
        (["`copy_slots`, `zero_slots`", "f16", "all"], ["", "no"]),
    ]
    page = presets.markdown(rows)
    assert "- `copy_slots`: no schedule (a1-b bf16 sm_90a, a1-b f16 sm_90a)" in page


def test_numbers_of_presets(monkeypatch):
    monkeypatch.setattr(presets, "devices", lambda: {"d1": "H200"})
    entries = dict.fromkeys(presets.ENTRIES, "d1")
    other = GPU | {
        "presets": ["c"],
        "entries": {"decode": "d2"},
        "no": {"prefill": "", "copy_slots": ""},
    }
    _, _, *lines = presets.summary([GPU | {"entries": entries}, other])
    assert lines == [
        "| `prefill` | bf16 | runs (H200): 2, no: 1 |",
        "| `prefill` | f16, f32 |  |",
        "| `decode` | bf16 | runs (H200): 2, assembled: 1 |",
        "| `decode` | f16, f32 |  |",
        "| `copy_slots`, `zero_slots` | bf16 | runs (H200): 2, no: 1 |",
        "| `copy_slots`, `zero_slots` | f16, f32 |  |",
    ]


def test_what_is_not_compiled_stays():
    old = [CPU | {"entries": {}}, GPU | {"entries": {"decode": "d1"}}]
    new = [GPU | {"entries": {"decode": "d2"}}]
    assert presets.merged(old, new) == [old[0], new[0]]


def test_the_check_sees_entries_that_come_and_go(capsys):
    old = [GPU | {"entries": {"decode": "d1"}}]
    assert presets.check(old, [GPU | {"entries": {"decode": "d2"}}]) == 0
    assert presets.check(old, [GPU | {"entries": {}, "no": {"decode": "no schedule"}}]) == 1
    assert "bf16 sm_90a a1-b: recorded" in capsys.readouterr().out


def test_the_readme_keeps_what_is_around_the_table():
    text = f"before\n{presets.BEGIN}\nold\n{presets.END}\nafter\n"
    made = presets.readme(text, [CPU | {"entries": {"prefill": "ran"}}])
    assert made.startswith("before\n") and made.endswith("\nafter\n") and "old" not in made
    assert presets.readme(made, [CPU | {"entries": {"prefill": "ran"}}]) == made
