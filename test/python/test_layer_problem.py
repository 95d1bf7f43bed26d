# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layer of gdn.layer_problem, which device checks run with PyTorch, on images of every
layout: against float64, and the ranks of tensor parallelism against the whole layer."""

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT
from gdn_layer_model import relative_error

from gdn import Runtime, layer_problem
from gdn.layers.attention import (
    GatedDeltaNetAttention,
    GDNAttentionMetadataBuilder,
    gated_delta_net,
    layer_kernels,
    order_of,
)

LIMIT = 2e-5
LAYOUTS = ["default", "interleaved", "flat", "split"]


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def kernels_of(runtime, tool, tmp_path_factory):
    """Kernels of a model's preset, in its own layout ("default") or another."""
    made = {}

    def get(layout: str):
        if layout not in made:
            path = tmp_path_factory.mktemp("layer") / "layer.gdnk"
            options = ["--outputs=core", "--write-slots", "--has-initial", "--only=decode,prefill"]
            options += [] if layout == "default" else [f"--layout={layout}"]
            options += ["--io=f32", "--state=f32", "--target=native", "-o", path]
            result = tool("gdn-compile", "--preset=qwen3.5-0.8b", *options)
            assert result.returncode == 0, result.stderr
            made[layout] = layer_kernels(runtime.device(num_workers=2), runtime.image(path))
        return made[layout]

    return get


def run(runtime, kernels, order: str, ranks: int = 1, rank: int = 0):
    """What a rank gives in each step, and its windows and states after them."""
    layer = GatedDeltaNetAttention(
        layer_problem.SIZES,
        kernels,
        layer_problem.checkpoint(order),
        order=order,
        model_dtype="float32",
        tp_size=ranks,
        tp_rank=rank,
    )
    windows, states = layer_problem.part_of_states(*layer_problem.first_states(), ranks, rank)
    windows, states = np.concatenate(windows, axis=2), states.copy()
    layer.bind_kv_cache(windows, states)
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=8, max_num_tokens=128)
    outputs = []
    for seed, step in enumerate(layer_problem.steps_of(kernels)):
        x = layer_problem.hidden_states(step.num_actual_tokens, seed)
        outputs.append(np.full_like(x, np.nan))
        layer.forward(x, outputs[-1], builder.build(0, step))
    return outputs, windows, states


def worst(got, want) -> float:
    """Of all outputs and pools."""
    pairs = zip((*got[0], *got[1:]), (*want[0], *want[1:]), strict=True)
    return max(relative_error(a, b) for a, b in pairs)


def test_numbers_are_those_of_bf16():
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    x[:3] = 1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8  # ties
    assert (layer_problem.rounded(x) == x.astype(ml_dtypes.bfloat16).astype(np.float32)).all()


def test_one_layer_in_every_order():
    """Float64 gives the same for the weights in either order."""
    steps = layer_problem.steps_of({"prefill"})[1:]
    assert worst(*(layer_problem.expected(o, steps) for o in ("interleaved", "flat"))) < 1e-12


@pytest.mark.parametrize("layout", LAYOUTS)
def test_order_is_that_of_the_kernels(kernels_of, layout):
    expected = {"default": "flat", "split": None}.get(layout, layout)
    assert order_of(kernels_of(layout)) == expected


def test_kernels_of_two_orders_are_refused(kernels_of):
    kernels = {
        "decode": kernels_of("flat")["decode"],
        "prefill": kernels_of("interleaved")["prefill"],
    }
    with pytest.raises(ValueError, match="kernels: expected one order of projections, got flat"):
        order_of(kernels)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ranks_are_the_layer(runtime, kernels_of, layout, ranks):
    """With the image's own order: outputs add up, windows and states are parts."""
    kernels = kernels_of(layout)
    order = order_of(kernels) or "interleaved"
    outputs, *pools = layer_problem.expected(order, layer_problem.steps_of(kernels))
    assert len(outputs) == 2
    results = [run(runtime, kernels, order, ranks, rank) for rank in range(ranks)]
    sums = [sum(parts) for parts in zip(*(each[0] for each in results), strict=True)]
    assert max(map(relative_error, sums, outputs)) < LIMIT
    for rank, (_, windows, states) in enumerate(results):
        part, heads = layer_problem.part_of_states(*pools, ranks, rank)
        assert relative_error(windows, np.concatenate(part, axis=2)) < LIMIT
        assert relative_error(states, heads) < LIMIT


def test_other_order_is_another_layer(runtime, kernels_of, monkeypatch):
    """Weights in the order interleaved are nothing for kernels of the order flat: no rank is
    made with both. Were it, ranks would add up to something else than one rank gives."""
    kernels = kernels_of("flat")
    with pytest.raises(ValueError, match="order: expected flat for kernels with that, got inter"):
        run(runtime, kernels, "interleaved", 2, 1)
    monkeypatch.setattr(gated_delta_net, "order_of", lambda kernels: None)
    whole, *ranks = (
        run(runtime, kernels, "interleaved", *each)[0] for each in ((1, 0), (2, 0), (2, 1))
    )
    errors = [relative_error(a + b, c) for a, b, c in zip(*ranks, whole, strict=True)]
    assert min(errors) > 0.5


# As images of GPUs are checked with PyTorch.
ON_A_GPU = """
import ml_dtypes, numpy as np, sys
from gdn import Runtime, layer_problem
from gdn.arrays import DeviceArray
from gdn.layers.attention import layer_kernels

class Rows(DeviceArray):
    def new_empty(self, shape):
        return Rows(self._device, shape, self.dtype)
    def reshape(self, *shape):
        return self.numpy().reshape(shape)

def put(array, dtype):
    rows = Rows(device, array.shape, np.dtype(dtype))
    rows.write(array.astype(dtype))
    return rows

runtime = Runtime(sys.argv[1])
device = runtime.cuda()
kernels = layer_kernels(device, runtime.image(sys.argv[2]))
assert {kernel.code.target for kernel in kernels.values()} == {"sm_80"}
for got, want in zip(layer_problem.run_backend(device, kernels, put),
                     layer_problem.expected_of_backend(), strict=True):
    error = np.linalg.norm(got.astype(float) - want) / np.linalg.norm(want)
    assert error < 1e-2, error
"""


def test_backend_of_engines(runtime, kernels_of):
    """Prompts, pieces of prompts and decode on one pool."""
    kernels = kernels_of("split")
    device = next(iter(kernels.values()))._device
    got = layer_problem.run_backend(device, kernels, lambda x, _: x)
    assert max(map(relative_error, got, layer_problem.expected_of_backend())) < LIMIT


def test_backend_of_engines_on_a_gpu(build_dir, ptx_driver, tool, tmp_path):
    """The same through GPU kernels on the driver that runs PTX on the CPU."""
    image = tmp_path / "backend.gdnk"
    options = ["--preset=qwen3.5-0.8b", "--layout=split", "--outputs=core", "--io=bf16"]
    options += ["--state=f32", "--only=decode,prefill", "--target=sm_80", "--ptxas=none"]
    done = tool("gdn-compile", *options, "-o", image)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-c", ON_A_GPU, build_dir / "lib/libgdnrt.so", image]
    paths = {"PYTHONPATH": str(ROOT / "python"), "LD_LIBRARY_PATH": str(ptx_driver)}
    done = subprocess.run(command, env=os.environ | paths, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
