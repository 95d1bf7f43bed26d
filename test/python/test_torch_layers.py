# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers as modules of PyTorch, on a CPU: parameters that get other memory once a layer has run."""

import numpy as np
import pytest
import torch
from gdn_layer_model import compile_image
from test_gated_delta_net import CONFIG, SLOTS, hidden_states, make_weights, metadata_of

from gdn import Runtime
from gdn.layers.attention import GDNAttentionMetadataBuilder, layer_kernels
from gdn.layers.attention.torch_gated_delta_net import GatedDeltaNetAttention

pytestmark = pytest.mark.once(compiler="cpu")

LENGTHS = (5, 9)


@pytest.fixture(scope="module")
def kernels(build_dir, tool, tmp_path_factory):
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    options = ("--layout=interleaved", "--outputs=core", "--has-initial")
    path = compile_image(tool, tmp_path_factory.mktemp("layer"), *options)
    return layer_kernels(runtime.device(), runtime.image(path))


def checkpoint(scale: float = 1.0) -> dict[str, torch.Tensor]:
    weights = make_weights("interleaved")
    weights["out_proj.weight"] = scale * weights["out_proj.weight"]
    return {name: torch.from_numpy(weight) for name, weight in weights.items()}


def make_layer(kernels, weights) -> GatedDeltaNetAttention:
    layer = GatedDeltaNetAttention(CONFIG, kernels, device="cpu", dtype=torch.float32)
    layer.load_weights(weights)
    return layer


def run(layer, bind: bool = True) -> np.ndarray:
    if bind:
        shapes = layer.get_state_shape()
        layer.bind_kv_cache(*(torch.zeros(SLOTS, *shape) for shape in shapes))
    hidden = torch.from_numpy(hidden_states()[0])
    output = torch.full_like(hidden, float("nan"))
    builder = GDNAttentionMetadataBuilder.from_options(
        layer._runtime, max_num_seqs=4, max_num_tokens=64
    )
    layer(hidden, output, metadata_of(builder, np.zeros(2, np.int32), LENGTHS))
    return output.numpy()


def test_other_memory_of_parameters_is_what_counts(kernels):
    layer = make_layer(kernels, checkpoint())
    assert np.array_equal(run(make_layer(kernels, checkpoint())), run(layer))
    other = make_layer(kernels, checkpoint(2.0))
    layer.load_state_dict(other.state_dict(), assign=True)
    with pytest.raises(ValueError, match="expected bind_kv_cache before a step"):
        run(layer, bind=False)
    assert np.array_equal(run(layer), run(other))


def test_the_same_memory_keeps_the_layer(kernels):
    layer = make_layer(kernels, checkpoint())
    run(layer)
    made = layer._layer
    layer.load_state_dict(make_layer(kernels, checkpoint(2.0)).state_dict())
    layer.to("cpu", torch.float32)
    assert layer._layer is made
    assert np.array_equal(run(layer), run(make_layer(kernels, checkpoint(2.0))))
