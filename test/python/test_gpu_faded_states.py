# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States that fade inside a chunk with nothing written behind, on a driver that runs PTX on the
CPU: they are off by what docs/spec/numerics.md says of them, and the recurrent variant by less."""

import json
import sys
from pathlib import Path

import pytest

from gdn.checks import CHUNK_F32, CHUNK_STATE

CONFIG = Path(__file__).parents[1] / "PTX/small_heads.json"
KEY_DIM, TOKENS = 64, 40
DECAYS = (0.0, -5.0, -7.0)


def run(image: str, library: str) -> None:
    """Errors of states by variant and decay of the last token, as JSON. For a process of its own:
    the driver is found when it starts."""
    from gdn import checks, problems, reference
    from gdn.problems import Sizes
    from gdn.runtime import Runtime

    runtime = Runtime(library)
    device, loaded = runtime.cuda(0), runtime.image(image)
    kernel = device.kernel(loaded, "prefill")
    layer = reference.Layer.of(loaded.attributes("prefill"))
    made = problems.make(kernel.params, Sizes(1, 1, (TOKENS,), seed=3))
    made["state_pool"][:] = 0
    made["log_decay"][:] = 0
    made["beta"][:] = 1
    made["beta"][-1] = 0
    errors: dict[str, list[float]] = {}
    for decay in DECAYS:
        made["log_decay"][-1] = decay
        want = reference.evaluate(layer, made)["state_pool"][1]
        for variant in kernel.variants:
            kernel.variant = variant.name
            got = checks.run(device, kernel, made)["state_pool"][1].astype(want.dtype)
            errors.setdefault(variant.name, []).append(checks.relative_error(got, want))
    print(json.dumps(errors))


CASES = [("f32", CHUNK_F32), pytest.param("bf16", CHUNK_STATE, marks=pytest.mark.long)]


@pytest.mark.parametrize("io, bound", CASES)
def test_states_that_fade(build_dir, on_ptx_driver, tool, tmp_path, io, bound):
    image = tmp_path / "faded.gdnk"
    options = [f"--io={io}", "--layout=ready", "--outputs=core", "--only=prefill"]
    code = ["--target=sm_86", "--ptxas=none", "-o", image]
    done = tool("gdn-compile", "--config", CONFIG, *options, *code)
    assert done.returncode == 0, done.stderr
    printed = on_ptx_driver(Path(__file__), image, build_dir / "lib/libgdnrt.so")
    errors = json.loads(printed.splitlines()[-1])
    for variant, found in errors.items():
        for decay, error in zip(DECAYS, found, strict=True):
            lost = 0 if variant == "rows" else 2**-25 * KEY_DIM**0.5 * 2.718281828 ** (-decay)
            assert error < bound + lost, (variant, decay, error)


if __name__ == "__main__":
    run(*sys.argv[1:])
