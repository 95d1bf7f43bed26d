# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values convolved in the recurrence (conv=with-rule of the prefill policy), on a driver that runs
PTX on the CPU, beside a variant with all convolutions ahead of it: sequences without tokens,
shorter than a window, whole chunks and others, skipped ones, and ones that begin with nothing. What
is in front of a sequence is its neighbour's and must not matter: there are NaNs."""

import json
import sys
from pathlib import Path

import pytest

WITH_RULE = ("fused", "fused-by-lengths", "fused-stay")
# Lengths of sequences, key and value heads, and which sequences are skipped.
CASES = {
    "lengths": ((1, 2, 0, 3, 63, 64, 65, 128, 5), (1, 2), {}),
    "first": ((2,), (1, 2), {}),
    "chunks": ((257,), (1, 2), {}),
    # Of as long as each other, which whole heads take by lengths where there are more halves than
    # multiprocessors; halves take the others.
    "whole": ((70, 70, 70, 1) + (0,) * 30, (1, 2), {}),
    "skipped": ((100, 50, 80, 3), (1, 3), {0: -1, 3: 99}),
}


def run_variants(image: str, library: str) -> None:
    """How far variants are from the one with all convolutions ahead, as JSON. For a process of its
    own: the driver is found when it starts."""
    import numpy as np

    from gdn import problems
    from gdn.problems import Sizes
    from gdn.runtime import Pool, Runtime

    runtime = Runtime(library)
    device, loaded = runtime.cuda(0), runtime.image(image)
    kernel = device.kernel(loaded, "prefill")
    report = {}
    for name, (lengths, heads, skipped) in CASES.items():
        made = problems.make(kernel.params, Sizes(*heads, lengths, seed=6, skipped=skipped))
        made["has_initial_state"] = np.arange(len(lengths), dtype=np.uint8) % 3 != 1
        made["has_initial_state"] = made["has_initial_state"].astype(np.uint8)
        if name == "skipped":  # NaN in front of the second and the last
            starts = made["cu_seqlens"]
            for row in skipped:
                made["qkvz"][starts[row] : starts[row + 1]] = np.nan
        results = {}
        for variant in (*WITH_RULE, "staged"):
            kernel.variant = variant
            arrays = {p.name: device.array(made[p.name].copy()) for p in kernel.params}
            pools = [p.name for p in kernel.params if p.kind == "pool"]
            binding = kernel.bind(**arrays | {pool: Pool(arrays[pool]) for pool in pools})
            if binding.workspace_bytes:
                binding.set_workspace()
            binding.launch()
            device.synchronize()
            results[variant] = {
                key: arrays[key].numpy() for key in ("out", "state_pool", "conv_pool")
            }
        want = results["staged"]

        def error(got, want):
            got, want = got.astype(np.float64), want.astype(np.float64)
            same = np.isnan(got) == np.isnan(want)
            if not same.all():
                return float("inf")
            return float(np.sqrt(np.nansum((got - want) ** 2) / np.nansum(want**2)))

        report[name] = {
            variant: {
                "finite": bool(np.isfinite(got["out"].astype(np.float32)).all()),
                "out": error(got["out"], want["out"]),
                "state": error(got["state_pool"], want["state_pool"]),
                "windows": got["conv_pool"].tobytes() == want["conv_pool"].tobytes(),
            }
            for variant, got in results.items()
        }
    print(json.dumps(report))


def test_values_and_windows(build_dir, on_ptx_driver, tool, tmp_path):
    image = tmp_path / "conv.gdnk"
    options = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--has-initial", "--only=prefill"]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--ptxas=none", "-o", image)
    assert done.returncode == 0, done.stderr
    printed = on_ptx_driver(Path(__file__), image, build_dir / "lib/libgdnrt.so")
    report = json.loads(printed.splitlines()[-1])
    assert set(report) == set(CASES)
    for name, variants in report.items():
        for variant in WITH_RULE:
            got = variants[variant]
            assert got["finite"] and got["windows"], (name, variant)
            # Chunks are computed in another order of products.
            assert got["out"] < 5e-3 and got["state"] < 2e-3, (name, variant, got)


@pytest.mark.parametrize(
    "options, wanted",
    [
        ([], True),
        (["--outputs=core"], True),
        (["--conv-state=f32"], False),
        (["--checkpoints"], False),
    ],
)
def test_which_entries_have_it(tool, options, wanted):
    """Windows lie in memory as inputs do, and states inside sequences have no such variants."""
    given = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--only=prefill", *options]
    done = tool("gdn-compile", *given, "--target=sm_90a", "--emit=gpu", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert ("gdn_gpu.conv_columns" in done.stdout) == wanted
    assert ("@prefill__prologue_keys" in done.stdout) == wanted


if __name__ == "__main__":
    run_variants(*sys.argv[1:])
