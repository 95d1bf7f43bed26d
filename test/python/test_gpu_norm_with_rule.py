# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gated norms in the recurrence (norm=with-rule of the prefill policy), on a driver that runs PTX
on the CPU: whole heads and halves have the same bits, and large gates, weights and values stay
finite where they do so in a norm that is a stage of its own."""

import json
import sys
from pathlib import Path

import pytest

# What each part of the inputs is multiplied by: values, gates, the norm's weight.
FACTORS = {
    "plain": (1, 1, 1),
    "values": (1e4, 1, 1),
    "gates": (1, 1e36, 1),
    "both": (1e4, 1e36, 1),
    "small": (1, 1e-36, 1),
    "weights": (1, 1, 1e37),
}
# The halves have it behind them, in the same order of sums.
WITH_RULE = (
    "fused",
    "fused-by-lengths",
    "fused-stay",
    "fused-v-split-2",
    "fused-segments-4",
    "fused-v-split-2-followed",
    "fused-segments-3-followed",
)


def run_variants(image: str, library: str) -> None:
    """The results of all factors as JSON. For a process of its own: the driver is found when it
    starts."""
    import numpy as np

    from gdn import problems
    from gdn.problems import Sizes
    from gdn.runtime import Pool, Runtime

    runtime = Runtime(library)
    device, loaded = runtime.cuda(0), runtime.image(image)
    kernel = device.kernel(loaded, "prefill")
    made = problems.make(kernel.params, Sizes(1, 2, (130, 70), seed=5))
    keys, values = 2 * 128, 2 * 128  # of a token: q and k, v of both value heads
    report = {}
    for name, (of_values, of_gates, of_weights) in FACTORS.items():
        arguments = dict(made)
        tokens = made["qkvz"].astype(np.float32)
        tokens[:, keys : keys + values] *= of_values
        tokens[:, keys + values :] *= of_gates
        arguments["qkvz"] = tokens.astype(made["qkvz"].dtype)
        weight = made["norm_weight"].astype(np.float32) * of_weights
        arguments["norm_weight"] = weight.astype(made["norm_weight"].dtype)
        outputs = {}
        for variant in (*WITH_RULE, "staged"):
            kernel.variant = variant
            arrays = {p.name: device.array(arguments[p.name].copy()) for p in kernel.params}
            pools = [p.name for p in kernel.params if p.kind == "pool"]
            binding = kernel.bind(**arrays | {pool: Pool(arrays[pool]) for pool in pools})
            if binding.workspace_bytes:
                binding.set_workspace()
            binding.launch()
            device.synchronize()
            outputs[variant] = arrays["out"].numpy().astype(np.float64)
        want = outputs["staged"] / np.abs(outputs["staged"]).max()
        report[name] = {
            variant: {
                "finite": bool(np.isfinite(got).all()),
                "error": float(
                    np.sqrt(np.mean((got / np.abs(outputs["staged"]).max() - want) ** 2))
                    / np.sqrt(np.mean(want**2))
                ),
                "bits": bool((got == outputs[WITH_RULE[0]]).all()),
            }
            for variant, got in outputs.items()
        }
    print(json.dumps(report))


def test_large_numbers_and_bits(build_dir, on_ptx_driver, tool, tmp_path):
    image = tmp_path / "norm.gdnk"
    options = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--state=f32", "--only=prefill"]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--ptxas=none", "-o", image)
    assert done.returncode == 0, done.stderr
    printed = on_ptx_driver(Path(__file__), image, build_dir / "lib/libgdnrt.so")
    report = json.loads(printed.splitlines()[-1])
    assert set(report) == set(FACTORS)
    for name, variants in report.items():
        for variant in WITH_RULE:
            assert variants[variant]["finite"], (name, variant)
            # Segments add up in an order of their own.
            same_bits = variants[variant]["bits"] or "segments" in variant
            assert same_bits, (name, variant)
            # Either rounds to bf16 at the end, from sums in orders of their own.
            assert variants[variant]["error"] < 5e-3, (name, variant)


@pytest.mark.parametrize("given, wanted", [("norm", True), ("both", False), ("core", False)])
def test_which_outputs_have_it(tool, given, wanted):
    """A rule whose output is a result has its norm behind it, if any."""
    options = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--only=prefill", f"--outputs={given}"]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--emit=gpu", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert ('bits = "fused-norm"' in done.stdout) == wanted


if __name__ == "__main__":
    run_variants(*sys.argv[1:])
