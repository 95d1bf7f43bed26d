# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The demo: all recorded models on the CPU where there is no GPU, and one with a driver that
runs PTX on the CPU (test/PTX), all of it on the GPU."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

RECORDING = ROOT / "test/data/qwen3_5_tiny.safetensors"


def demo(gdn_compile, *options: object, **environment: str) -> list[str]:
    cache = gdn_compile[1:]
    command = [sys.executable, ROOT / "tools/scripts/demo.py", *cache, *map(str, options)]
    done = subprocess.run(command, env=os.environ | environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def places(lines: list[str]) -> dict[str, set[str]]:
    """Where rows of each phase ran."""
    found: dict[str, set[str]] = {}
    for line in lines:
        row = re.match(r"qwen3_5 +(prefill|decode) .*\d  +(cpu|gpu|cpu / gpu)  +ok$", line)
        if row:
            found.setdefault(row[1], set()).add(row[2])
    return found


def test_on_the_cpu(gdn_compile):
    lines = demo(gdn_compile)
    if lines[0].startswith("GPU:"):
        pytest.skip("this machine has a GPU")
    assert lines[0] == "no GPU: the CPU runs everything"
    assert places(lines) == {"prefill": {"cpu"}, "decode": {"cpu"}}
    assert lines[-1] == "all 136 results within bounds"


def test_on_a_gpu(gdn_compile, ptx_driver, tmp_path):
    shutil.copy(RECORDING, tmp_path)
    options = ["--ptxas=none", "--recordings", tmp_path]
    lines = demo(gdn_compile, *options, LD_LIBRARY_PATH=str(ptx_driver))
    assert lines[0].startswith("GPU: PTX on the CPU, sm_90")
    assert places(lines) == {"prefill": {"gpu"}, "decode": {"gpu"}}
    assert lines[-1] == "all 36 results within bounds"
