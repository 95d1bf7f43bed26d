# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The prologue of packed prefill, whose blocks copy a chunk of inputs with the window ahead of it,
on a driver that runs PTX on the CPU: projections that lie at multiples of 16 bytes, and others,
have the same bits of all that a layer writes."""

import json
import sys
from pathlib import Path

LENGTHS = (70, 2, 0, 129, 64)
HEADS = (1, 2)


def run(image: str, library: str) -> None:
    """Which results are the same, as JSON. For a process of its own: the driver is found when it
    starts."""
    import numpy as np

    from gdn import problems
    from gdn.arrays import View, view
    from gdn.problems import Sizes
    from gdn.runtime import Pool, Runtime

    runtime = Runtime(library)
    device, loaded = runtime.cuda(0), runtime.image(image)
    kernel = device.kernel(loaded, "prefill")
    kernel.variant = "staged"
    made = problems.make(kernel.params, Sizes(*HEADS, LENGTHS, seed=7))
    made["has_initial_state"] = np.array([1, 0, 1, 0, 1], dtype=np.uint8)

    def results(lead: int) -> list[bytes]:
        """With rows of projections that begin `lead` elements behind a multiple of 16 bytes."""
        arrays = {p.name: device.array(made[p.name].copy()) for p in kernel.params}
        rows, columns = made["qkvz"].shape
        wide = np.zeros((rows, columns + lead), made["qkvz"].dtype)
        wide[:, lead:] = made["qkvz"]
        whole = view("qkvz", device.array(wide))
        place = (whole.data + 2 * lead, whole.dtype, (rows, columns), whole.strides)
        given = arrays | {"qkvz": View(*place, whole.device, whole.owner, whole.ordinal)}
        pools = [p.name for p in kernel.params if p.kind == "pool"]
        binding = kernel.bind(**given | {pool: Pool(arrays[pool]) for pool in pools})
        binding.set_workspace()
        binding.launch()
        device.synchronize()
        return [arrays[key].numpy().tobytes() for key in ("out", "state_pool", "conv_pool")]

    aligned = results(0)
    print(json.dumps({lead: results(lead) == aligned for lead in (1, 3, 8)}))


def test_any_alignment(build_dir, on_ptx_driver, tool, tmp_path):
    image = tmp_path / "prologue.gdnk"
    options = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--has-initial", "--only=prefill"]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--ptxas=none", "-o", image)
    assert done.returncode == 0, done.stderr
    printed = on_ptx_driver(Path(__file__), image, build_dir / "lib/libgdnrt.so")
    assert json.loads(printed.splitlines()[-1]) == {"1": True, "3": True, "8": True}


if __name__ == "__main__":
    run(*sys.argv[1:])
