# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What roles make of a chunk with a decay per channel, as code for a GPU that the PTX machine
runs, against float64: decays of all sizes, also such that 16 tokens forget everything."""

import json

from conftest import ROOT

KERNEL = ROOT / "test/Conversion/GPUToNVVM/chunk-decays.mlir"
LARGEST = {"from_query": 1e-3, "from_key": 5e-4, "to_end": 5e-4, "inverse": 5e-4, "scores": 5e-4}
LARGEST["end"] = 2e-4  # logs are taken as tf32


def test_against_float64(tool, on_ptx_driver, tmp_path):
    lowered = tool("gdn-gpu-opt", KERNEL, "--gdn-gpu-to-llvm")
    assert lowered.returncode == 0, lowered.stderr
    program = tmp_path / "chunk.mlir"
    program.write_text(lowered.stdout)
    ptx = tmp_path / "chunk.ptx"
    done = tool("gdn-compile", program, "--target=sm_90a", "--emit=ptx", "-o", ptx)
    assert done.returncode == 0, done.stderr
    errors = json.loads(on_ptx_driver(ROOT / "test/python/chunk_decay_cases.py", ptx))
    for kind, worst in errors.items():
        for name, error in worst.items():
            assert error < LARGEST[name], (kind, name, error)
