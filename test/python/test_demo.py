# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The demo: all recorded models on the CPU where there is no GPU, and with a driver that runs
PTX on the CPU (test/PTX), all of it on the GPU, one with a decay per head and those with one per
channel."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

PER_CHANNEL = ("kimi_linear", "kimi_k3", "glm5_next")


def demo(gdn_compile, *options: object, **environment: str) -> list[str]:
    cache = gdn_compile[1:]
    command = [sys.executable, ROOT / "tools/scripts/demo.py", *cache, *map(str, options)]
    done = subprocess.run(command, env=os.environ | environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def places(lines: list[str]) -> dict[tuple[str, str], set[str]]:
    """Where rows of each model and phase ran."""
    found: dict[tuple[str, str], set[str]] = {}
    for line in lines:
        row = re.match(r"(\w+) +(prefill|decode) .*\d  +(cpu|gpu|cpu / gpu)  +ok$", line)
        if row:
            found.setdefault((row[1], row[2]), set()).add(row[3])
    return found


def all_on(models: tuple[str, ...], place: str) -> dict[tuple[str, str], set[str]]:
    return {(model, phase): {place} for model in models for phase in ("prefill", "decode")}


def test_on_the_cpu(gdn_compile):
    lines = demo(gdn_compile)
    if lines[0].startswith("GPU:"):
        pytest.skip("this machine has a GPU")
    assert lines[0] == "no GPU: the CPU runs everything"
    models = ("qwen3_next", "qwen3_5", "olmo_hybrid", *PER_CHANNEL)
    assert places(lines) == all_on(models, "cpu")
    assert lines[-1] == "all 220 results within bounds"


def test_on_a_gpu(gdn_compile, ptx_driver, tmp_path):
    models = ("qwen3_5", *PER_CHANNEL)
    for model in models:
        shutil.copy(ROOT / f"test/data/{model}_tiny.safetensors", tmp_path)
    options = ["--ptxas=none", "--recordings", tmp_path]
    lines = demo(gdn_compile, *options, LD_LIBRARY_PATH=str(ptx_driver))
    assert lines[0].startswith("GPU: PTX on the CPU, sm_90")
    assert places(lines) == all_on(models, "gpu")
    assert lines[-1] == "all 120 results within bounds"
