# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What roles make of a chunk with a decay per channel, as code for a GPU that the PTX machine
runs, against float64: decays of all sizes, also such that 16 tokens forget everything."""

import json

import pytest
from conftest import ROOT

KERNEL = ROOT / "test/Conversion/GPUToNVVM/chunk-decays.mlir"
LARGEST = {"from_query": 1e-3, "from_key": 5e-4, "to_end": 5e-4, "inverse": 5e-4, "scores": 5e-4}
LARGEST["end"] = 2e-4  # logs are taken as tf32


NARROW = [
    ("%g: !inf,", "%g: !narrow_in, %n: !norms_in,"),
    (
        "!inf = ",
        "!narrow = !gdn_gpu.shared<32x128xf16, swizzled, apart = 2>\n"
        "!norms = !gdn_gpu.shared<2x32xf32>\n"
        "!row = !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>\n"
        "!narrow_in = memref<32x128xf16, strided<[128, 1]>>\n"
        "!norms_in = memref<2x32xf32, strided<[32, 1]>>\n!inf = ",
    ),
    (
        "%log = gdn_gpu.alloc : !logs\n",
        "%log = gdn_gpu.alloc : !logs\n%narrow = gdn_gpu.reshape %log : !logs to !narrow\n"
        "%norms = gdn_gpu.alloc : !norms\n",
    ),
    (
        "gdn_gpu.begin_copy %g[%c0, %c0] dims [0, 1], %log : !inf, !logs\n",
        "gdn_gpu.begin_copy %g[%c0, %c0] dims [0, 1], %narrow : !narrow_in, !narrow\n"
        "gdn_gpu.warps 0 for 1 {\n%c1 = arith.constant 1 : index\n"
        "%n0 = gdn_gpu.load %n[%c0, %c0] dims [1] : !norms_in, !row\n"
        "%n1 = gdn_gpu.load %n[%c1, %c0] dims [1] : !norms_in, !row\n"
        "gdn_gpu.store_shared %n0, %norms row(%c0) : !row, !norms\n"
        "gdn_gpu.store_shared %n1, %norms row(%c1) : !row, !norms\n}\n",
    ),
    (
        "%key, %log, %keys, %d : !tile, !logs, !first, !decays",
        "%key, %narrow, %keys, %d norms(%norms) : !tile, !narrow, !first, !decays, !norms",
    ),
]


def with_narrow_logs(text: str) -> str:
    """The kernel with log decays of f16, and norms of rows."""
    for old, new in NARROW:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("narrow", [False, True])
def test_against_float64(tool, on_ptx_driver, tmp_path, narrow):
    kernel = KERNEL
    if narrow:
        kernel = tmp_path / "narrow.mlir"
        kernel.write_text(with_narrow_logs(KERNEL.read_text()))
    lowered = tool("gdn-gpu-opt", kernel, "--gdn-gpu-to-llvm")
    assert lowered.returncode == 0, lowered.stderr
    program = tmp_path / "chunk.mlir"
    program.write_text(lowered.stdout)
    ptx = tmp_path / "chunk.ptx"
    done = tool("gdn-compile", program, "--target=sm_90a", "--emit=ptx", "-o", ptx)
    assert done.returncode == 0, done.stderr
    # The kernel stores all of the tile of logs, also what is between panels of f16.
    given, variables = (["narrow"], {"GDN_PTX_UNWRITTEN": "0"}) if narrow else ([], {})
    cases = ROOT / "test/python/chunk_decay_cases.py"
    errors = json.loads(on_ptx_driver(cases, ptx, *given, **variables))
    for kind, worst in errors.items():
        for name, error in worst.items():
            assert error < LARGEST[name], (kind, name, error)
