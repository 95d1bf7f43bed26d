# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch-invariant launches of the fused kernels of prefill, on a driver that runs PTX on the CPU:
random sequences have the same bits alone, in batches that take another variant, in any order, and
from run to run."""

import json
import sys
from pathlib import Path

import pytest

FUSED = {"fused", "fused-stay", "fused-v-split-2"}
CHANNELS = {"fused-channels", "fused-channels-v-split-2"}
READY = ["--layout=ready", "--outputs=core"]
QWEN, KIMI = "--preset=qwen3-next-80b-a3b", "--preset=kimi-linear-48b-a3b"
LAYERS = {
    "ready": ([QWEN, *READY], FUSED),
    "norm": ([QWEN], FUSED),
    "channels": ([KIMI, *READY], CHANNELS),
    "channels-norm": ([KIMI], CHANNELS),
}
# So many sequences of 2 value heads, most of them empty, that whole heads are taken.
SEQUENCES = 34


def compare(image: str, library: str, key_heads: str, seed: str) -> None:
    """The variants that were taken and what differs, as JSON. For a process of its own: the driver
    is found when it starts."""
    import numpy as np

    from gdn import checks, problems
    from gdn.problems import Sizes
    from gdn.runtime import Binding, Runtime

    runtime = Runtime(library)
    device = runtime.cuda(0)
    kernel = device.kernel(runtime.image(image), "prefill")
    kernel.batch_invariant = True
    variants, findings = set(), checks.Findings()
    launch = Binding.launch

    def launched(binding, *arguments):
        variants.add(binding.variant)
        launch(binding, *arguments)

    Binding.launch = launched
    generator = np.random.default_rng(int(seed))
    filled = [int(length) for length in generator.integers(1, 150, 4)]
    places = generator.permutation(SEQUENCES)
    lengths = np.zeros(SEQUENCES, int)
    lengths[places[:4]] = filled
    sizes = Sizes(
        int(key_heads), 2, tuple(int(n) for n in lengths), seed=int(seed), decay="near_one"
    )
    whole = problems.make(kernel.params, sizes)
    batch = checks.run(device, kernel, whole)
    again = checks.run(device, kernel, whole)
    findings.expect(all(batch[n].tobytes() == again[n].tobytes() for n in batch), "run to run")
    some = [int(place) for place in places[:4]]
    for picked in (some, some[::-1], some[:1], some[1:3]):
        checks.check_picked(device, kernel, whole, batch, picked, findings)
    print(json.dumps({"variants": sorted(variants), "failures": findings.failures}))


# With a norm the stages of `ready` run, too.
@pytest.mark.parametrize(
    "layer",
    [
        "norm",
        pytest.param("ready", marks=pytest.mark.long),
        "channels",
        pytest.param("channels-norm", marks=pytest.mark.long),
    ],
)
def test_same_bits_in_any_batch(build_dir, on_ptx_driver, tool, tmp_path, layer):
    form, variants = LAYERS[layer]
    image = tmp_path / f"{layer}.gdnk"
    options = ["--io=bf16", "--state=f32", "--only=prefill", *form]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--ptxas=none", "-o", image)
    assert done.returncode == 0, done.stderr
    key_heads = 2 if KIMI in form else 1
    for seed in (1, 2):
        library = build_dir / "lib/libgdnrt.so"
        printed = on_ptx_driver(Path(__file__), image, library, key_heads, seed)
        found = json.loads(printed.splitlines()[-1])
        assert found == {"variants": sorted(variants), "failures": []}, seed


if __name__ == "__main__":
    compare(*sys.argv[1:])
