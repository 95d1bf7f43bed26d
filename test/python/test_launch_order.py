# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch that begins before the one ahead has ended, and takes its result: with a
griddepcontrol.wait taken away, the PTX machine says which access is in a race with which."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Two decodes, of which the second takes the result of the first as queries.
STEPS = """
import sys
import ml_dtypes
import numpy as np
from gdn import Pool, Runtime
library, driver, path = sys.argv[1:]
gpu = Runtime(library).cuda(driver=driver)
kernel = gpu.kernel(gpu._runtime.image(path), "decode")
kernel.variant = "rows"
rng = np.random.default_rng(1)
def draw(*shape, type=ml_dtypes.bfloat16):
    return gpu.array(rng.standard_normal(shape).astype(type))
fixed = {"k": draw(3, 1, 128), "v": draw(3, 1, 128), "slots": gpu.array(np.arange(3, dtype="i4"))}
fixed["log_decay"] = gpu.array(np.full((3, 1), -0.5, "f4"))
bindings, q = [], draw(3, 1, 128)
for _ in range(2):
    pool, core = Pool(draw(3, 1, 128, 128, type="f4"), -1), draw(3, 1, 128)
    bindings.append(kernel.bind(q=q, state_pool=pool, core=core, **fixed))
    bindings[-1].allow_dependent_launch()
    q = core
for binding in bindings:
    binding.launch()
gpu.synchronize()
"""


@pytest.fixture(scope="module")
def image(ptx_driver):
    path = ptx_driver / "linear_attention.gdnk"
    if not path.exists():
        pytest.skip("the image of test/PTX is not built")
    return path


def find_waits(image):
    """The lines of decode's waits."""
    data = image.read_bytes()
    begin = data.rindex(b"\0", 0, data.index(b".version")) + 1
    waits, name = [], None
    for n, line in enumerate(data[begin : data.index(b"\0", begin)].decode().split("\n"), 1):
        if ".entry" in line:
            name = line.split()[-1].rstrip("(")
        if name == "decode" and line.strip().startswith("griddepcontrol.wait"):
            waits.append(n)
    return waits


def run(image, ptx_driver, build_dir, report, edit=None):
    environment = os.environ | {"GDN_PTX_REPORT": str(report), "PYTHONPATH": str(ROOT / "python")}
    if edit:
        environment["GDN_PTX_EDIT"] = edit
    paths = [build_dir / "lib/libgdnrt.so", ptx_driver / "libcuda.so.1", image]
    command = [sys.executable, "-c", STEPS, *map(str, paths)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    found = report.read_text().splitlines() if report.exists() else []
    return done, [json.loads(line) for line in found]


def test_a_step_that_waits(image, ptx_driver, build_dir, tmp_path):
    done, findings = run(image, ptx_driver, build_dir, tmp_path / "findings")
    assert done.returncode == 0 and not findings, done.stdout + done.stderr


def test_a_step_that_does_not_wait(image, ptx_driver, build_dir, tmp_path):
    waits, texts = find_waits(image), []
    assert waits
    for n in waits:
        report = tmp_path / f"findings_{n}"
        done, findings = run(image, ptx_driver, build_dir, report, f"{n} ")
        assert (done.returncode == 0) == (not findings), done.stdout + done.stderr
        assert all((f["kernel"], f["kind"]) == ("decode", "launches") for f in findings)
        texts += [finding["text"] for finding in findings]
    for text in texts:
        assert "(an earlier launch) over global memory" in text
        assert "no griddepcontrol.wait before it here" in text
    assert any("reads what that writes" in text for text in texts), texts
