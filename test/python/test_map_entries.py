# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The entries combine_maps and apply_maps against float64: on CPUs in f32, and as code for GPUs, on
a driver that runs PTX, with operands in two parts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import map_cases
import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT

from gdn import Runtime

ONLY = "--only=combine_maps,apply_maps"


def configuration(folder: Path, dv: int, dk: int) -> Path:
    path = folder / f"config_{dv}_{dk}.json"
    path.write_text(
        json.dumps(
            {
                "model_type": "qwen3_5_text",
                "num_hidden_layers": 1,
                "hidden_size": 1024,
                "rms_norm_eps": 1e-6,
                "linear_num_key_heads": 2,
                "linear_num_value_heads": 2,
                "linear_key_head_dim": dk,
                "linear_value_head_dim": dv,
                "linear_conv_kernel_dim": 4,
                "hidden_act": "silu",
            }
        )
    )
    return path


def compiled(tool, folder: Path, dv: int, dk: int, *options: str) -> Path:
    path = folder / "maps.gdnk"
    forms = ["--layout=ready", "--outputs=core", "--io=bf16", "--combine-maps", ONLY]
    given = [*forms, *options, f"--config={configuration(folder, dv, dk)}"]
    done = tool("gdn-compile", *given, "-o", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("dv, dk", [(128, 128), (16, 16), (192, 96), (32, 64), (24, 8)])
@pytest.mark.parametrize("state", ["f32", "bf16"])
def test_on_cpu(tool, build_dir, tmp_path, dv, dk, state):
    path = compiled(tool, tmp_path, dv, dk, f"--state={state}")
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    dtype = ml_dtypes.bfloat16 if state == "bf16" else np.float32
    sizes = dv, dk, 2
    worst = map_cases.check(runtime.device(), runtime.image(path), 20, sizes, dtype)
    assert worst["maps"] < 1e-6 and worst["states"] < 1e-6
    assert worst["pool"] < (3e-3 if state == "bf16" else 1e-6)


def test_as_code_for_a_gpu(tool, build_dir, tmp_path, ptx_driver):
    path = compiled(tool, tmp_path, 128, 128, "--state=f32", "--target=sm_90a", "--ptxas=none")
    paths = [path, build_dir / "lib/libgdnrt.so", ptx_driver / "libcuda.so.1"]
    command = [sys.executable, ROOT / "test/python/map_cases.py", *map(str, paths)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    worst = json.loads(done.stdout)
    assert max(worst.values()) < 2e-5, worst


def test_states_in_planes_are_refused(tool, tmp_path):
    config = configuration(tmp_path, 16, 16)
    done = tool(
        "gdn-compile",
        f"--config={config}",
        "--layout=ready",
        "--outputs=core",
        "--io=bf16",
        "--state=i8x2",
        "--combine-maps",
        "-o",
        tmp_path / "none.gdnk",
    )
    assert done.returncode != 0
    assert "maps of tokens expect states of numbers, but got i8x2" in done.stderr
