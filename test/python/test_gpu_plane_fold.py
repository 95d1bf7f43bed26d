# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Planes that receive pending tokens in f16, on a driver that runs PTX on the CPU: rows of all
sizes, of zeros, and such as are not finite, in each form of the kernel, beside float64."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

PROGRAM = """
import sys
import numpy as np
from gdn import Runtime, checks, problems
library, driver, path, *variants = sys.argv[1:]
runtime = Runtime(library)
gpu = runtime.cuda(driver=driver)
kernel = gpu.kernel(runtime.image(path), "decode")
made = problems.make(kernel.params, problems.Sizes(1, 2, (1,) * 3, slots=5, seed=5))
rng = np.random.default_rng(8)
slots = made["slots"]
room = made["pending_keys"].shape[2]
has_low = "state_low" in made
parts = 256 if has_low else 1

def states(pools):
    x = pools["state_pool"].astype("f8") - 128
    if has_low:
        x += (pools["state_low"].astype("f8") - 128) / 256
    return x * pools["state_scales"].astype("f8")[..., None]

made["pending_counts"][:] = room
for name in ("state_pool", "state_low"):
    if name in made:
        made[name] = rng.integers(1, 256, made[name].shape).astype(made[name].dtype)
keys = rng.standard_normal(made["pending_keys"].shape)
made["pending_keys"] = (keys / np.linalg.norm(keys, axis=-1, keepdims=True)).astype("f2")
made["pending_deltas"] = rng.uniform(-1.9, 1.9, made["pending_deltas"].shape).astype("f2")
made["pending_decays"] = rng.uniform(-0.3, 0, made["pending_decays"].shape).astype("f4")
scales = rng.uniform(0.5, 2, made["state_scales"].shape) / 128
deltas, powers = made["pending_deltas"], made["pending_scales"]
powers[:] = 2.0 ** rng.integers(-3, 3, powers.shape)
powers[slots[0], 1] *= 2.0**-70
powers[slots[1], 0] *= 2.0**40
# Rows that no token changes, of zeros, small, and large; rows that begin with zeros; one that
# is no number.
deltas[:, :, :, 8:12] = 0
scales[..., 8], scales[..., 9], scales[..., 10] = 0, 1e-15, 1e20
scales[..., 12:16] = 0
scales[..., 20] = np.nan
deltas[slots[2], 0, 3, 30], deltas[slots[2], 0, 5, 31] = np.inf, np.nan
powers[slots[2], 0, 3] = powers[slots[2], 0, 5] = 2.0**126
for token in (3, 5):
    others = np.setdiff1d(np.arange(128), (30, 31))
    deltas[slots[2], 0, token, others] = 0
made["state_scales"] = scales.astype("f4")
before = states(made)
for variant in variants:
    kernel.variant = variant
    after = checks.run(gpu, kernel, made)
    found = states(made | after)
    for slot in slots:
        for head in range(2):
            decays = made["pending_decays"][slot, head].astype("f8")
            left = np.exp(np.cumsum(decays[::-1])[::-1])
            weights = np.append(left[1:], 1.0) * powers[slot, head].astype("f8")
            given = deltas[slot, head].astype("f8") * weights[:, None]
            rows = made["pending_keys"][slot, 0].astype("f8")
            with np.errstate(all="ignore"):
                want = left[0] * before[slot, head] + given.T @ rows
                most = (np.abs(given).T @ np.abs(rows)).max(-1)
            for row in range(128):
                got = after["state_scales"][slot, head, row]
                if not np.isfinite(want[row]).all():
                    assert np.isnan(got), (variant, slot, head, row)
                    continue
                largest = np.abs(want[row]).max()
                if largest == 0:
                    assert got == 0, (variant, slot, head, row)
                    continue
                bound = 0.51 / 127 / parts * largest + 2.0 ** -LOST * most[row] + 1e-30
                error = np.abs(found[slot, head, row] - want[row]).max()
                assert error <= bound, (variant, slot, head, row, error / largest)
"""


@pytest.mark.parametrize(
    ("state", "variants", "lost"),
    [
        ("i8x2", ["rows", "crowded"], 18),
        ("i8x2_upper", ["rows", "crowded", "sparse"], 11),
        pytest.param("i8", ["rows", "crowded", "sparse"], 11, marks=pytest.mark.long),
    ],
)
def test_rows_of_all_sizes(tool, build_dir, ptx_driver, tmp_path, state, variants, lost):
    image = tmp_path / "decode.gdnk"
    options = ["--preset=qwen3-next-80b-a3b", "--layout=ready", "--outputs=core", "--io=bf16"]
    options += ["--l2norm", f"--state={state}", "--defer-writes=16", "--pending=f16"]
    done = tool(
        "gdn-compile", *options, "--only=decode", "--target=sm_90a", "--ptxas=none", "-o", image
    )
    assert done.returncode == 0, done.stderr
    paths = [build_dir / "lib/libgdnrt.so", ptx_driver / "libcuda.so.1", image]
    program = PROGRAM.replace("LOST", str(lost))
    command = [sys.executable, "-c", program, *map(str, paths), *variants]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
