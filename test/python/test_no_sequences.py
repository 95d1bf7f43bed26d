# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill of tokens without sequences, on a driver that runs PTX on the CPU: all outputs are zeros,
each of which one block stores, and the pools stay as they are."""

import json
import sys
from pathlib import Path

import pytest

LAYERS = {"ready": ["--layout=ready", "--outputs=core"], "norm": []}
# More than 32 chunks of 64 tokens: what few long sequences would cut into segments.
TOKENS = 2100


def launch(image: str, library: str) -> None:
    """The variant that was taken, and what is wrong, as JSON. For a process of its own: the driver
    is found when it starts."""
    import numpy as np

    from gdn import checks, problems
    from gdn.problems import Sizes
    from gdn.runtime import Binding, Runtime

    runtime = Runtime(library)
    device = runtime.cuda(0)
    kernel = device.kernel(runtime.image(image), "prefill")
    arguments = problems.make(kernel.params, Sizes(1, 2, (TOKENS,)))
    for param in kernel.params:
        if param.dims[:1] == ("N",):
            arguments[param.name] = arguments[param.name][:0]
        elif param.dims[:1] == ("N + 1",):
            arguments[param.name] = np.zeros(1, arguments[param.name].dtype)
    taken, launched = [], Binding.launch

    def launching(binding, *others):
        taken.append(binding.variant)
        launched(binding, *others)

    Binding.launch = launching
    after = checks.run(device, kernel, arguments)
    pools = {param.name for param in kernel.params if param.kind == "pool"}
    wrong = [
        name
        for name, array in after.items()
        if (name in pools and array.tobytes() != arguments[name].tobytes())
        or (name not in pools and array.astype(np.float32).any())
    ]
    print(json.dumps({"variants": taken, "written": sorted(after), "wrong": wrong}))


@pytest.mark.parametrize("layer", ["norm", pytest.param("ready", marks=pytest.mark.long)])
def test_zeros_without_sequences(build_dir, on_ptx_driver, tool, tmp_path, layer):
    image = tmp_path / f"{layer}.gdnk"
    options = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--state=f32", "--only=prefill"]
    form = [*LAYERS[layer], "--target=sm_90a", "--ptxas=none", "-o", image]
    done = tool("gdn-compile", *options, *form)
    assert done.returncode == 0, done.stderr
    printed = on_ptx_driver(Path(__file__), image, build_dir / "lib/libgdnrt.so")
    found = json.loads(printed.splitlines()[-1])
    assert found["wrong"] == []
    assert len(found["written"]) >= 2
    # Places of segments in one grid would all be the padding's.
    assert found["variants"] not in (["staged-segments-8"], ["fused-segments-4"])


if __name__ == "__main__":
    launch(*sys.argv[1:])
