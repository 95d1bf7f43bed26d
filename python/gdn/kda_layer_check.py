# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks gdn.layers.attention.torch_kimi_delta_attention on a device: layers with projections of
every rank against float64, and, where torchrun started several ranks, tensor parallel against
float64 as well. On a GPU a graph of a step of decode has the bits of an eager one.

    python3 -m gdn.kda_layer_check layer.gdnk
    torchrun --nproc-per-node=2 -m gdn.kda_layer_check layer.gdnk

The image is for the layout separate with a decay of each channel, prefill and decode.
"""

import argparse
import itertools
import os
import sys

import torch

from . import Runtime, image_facts, kda_layer_problem
from .layer_check import LIMIT, Check, error_of
from .layers.attention import GDNAttentionMetadataBuilder, layer_kernels
from .layers.attention.layer_config import LONG_TYPES
from .layers.attention.torch_delta_layer import DTYPES
from .layers.attention.torch_kimi_delta_attention import KimiDeltaAttention
from .model_config import ModelConfig

_HEADS, _HIDDEN = 8, 256


def model_of(image, *, full_rank_decay: bool, full_rank_gate: bool) -> ModelConfig:
    """A small model of the image's layers."""
    facts = image_facts.facts_of(image)["facts"]
    return ModelConfig(
        name="problem",
        model_type="kimi_linear",
        layout=facts["layout"],
        hidden_size=_HIDDEN,
        num_layers=1,
        num_gdn_layers=1,
        key_heads=_HEADS,
        value_heads=_HEADS,
        key_dim=facts["key_dim"],
        value_dim=facts["value_dim"],
        conv_width=facts["conv_width"],
        output_gate=facts["output_gate"],
        per_channel_decay=facts["decay"] == "channel",
        decay_bound=facts["decay_bound"],
        full_rank_decay=full_rank_decay,
        full_rank_gate=full_rank_gate,
        norm_eps=facts["norm_eps"],
        io=facts["io"],
        state=facts["state"],
    )


def make_layer(model: ModelConfig, kernels, place: str) -> KimiDeltaAttention:
    layer = KimiDeltaAttention(model, kernels, device=place)
    weights = kda_layer_problem.checkpoint(model)
    taken = layer.load_weights({name: torch.from_numpy(w) for name, w in weights.items()})
    assert taken == set(weights), set(weights) - taken
    shapes, types = layer.get_state_shape(), layer.get_state_dtype()
    # Nothing of a new request is read.
    states = [
        torch.full((kda_layer_problem.SLOTS, *shape), torch.nan, dtype=dtype, device=place)
        for shape, dtype in zip(shapes, types, strict=True)
    ]
    layer.bind_kv_cache(*states)
    return layer


def check_layer(check: Check, runtime, device, model: ModelConfig, kernels, place: str) -> None:
    layer, io = make_layer(model, kernels, place), DTYPES[LONG_TYPES[model.io or "bf16"]]
    builder = GDNAttentionMetadataBuilder.from_options(
        runtime, device, max_num_seqs=4, max_num_tokens=64, use_full_cuda_graph=True
    )
    ranks = f"decay {model.full_rank_decay:d}, gate {model.full_rank_gate:d}"
    wanted, _ = kda_layer_problem.expected(model)
    inputs, steps = kda_layer_problem.hidden_states(model), kda_layer_problem.steps()
    for number, (hidden, step) in enumerate(zip(inputs, steps, strict=True)):
        x = torch.from_numpy(hidden).to(place, io)
        output = torch.full_like(x, torch.nan)
        layer(x, output, builder.build(0, step))
        device.synchronize()
        error = error_of(output, wanted[number])
        check.that(f"step {number}, {ranks}", error < LIMIT, f"error {error:.1e}")
    if place != "cpu":
        check_graph(check, layer, builder, ranks, x[:2])
    output.fill_(torch.nan)
    layer(x, output)
    check.that(f"profile run, {ranks}", bool((output == 0).all()))


def check_graph(check: Check, layer, builder, ranks: str, x: torch.Tensor) -> None:
    """A step of one token of each request: eager, and replayed from the same states."""
    states = layer._made().kv_cache
    before = [state.clone() for state in states]
    step = kda_layer_problem.steps()[1]
    eager, output = torch.empty_like(x), torch.empty_like(x)
    metadata = builder.build(0, step, num_padded_reqs=2)
    layer(x, eager, metadata)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layer(x, output, metadata)
    for state, was in zip(states, before, strict=True):
        state.copy_(was)
    graph.replay()
    torch.cuda.synchronize()
    check.that(f"graph has the bits of eager, {ranks}", torch.equal(output, eager))


def main() -> int:
    parser = argparse.ArgumentParser(prog="kda_layer_check", description=__doc__)
    parser.add_argument("image")
    parser.add_argument("--library", help="libgdnrt, else the installed one")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    arguments = parser.parse_args()
    rank, ranks = (
        int(os.environ.get(name, n)) for name, n in (("LOCAL_RANK", 0), ("WORLD_SIZE", 1))
    )
    runtime = Runtime(arguments.library)
    if arguments.device == "cpu":
        device, place = runtime.device(), "cpu"
    else:
        torch.cuda.set_device(rank)
        torch.zeros(1, device="cuda")
        device, place = runtime.cuda(rank), "cuda"
    if ranks > 1:
        torch.distributed.init_process_group("gloo" if place == "cpu" else "nccl")
    image, check = runtime.image(arguments.image), Check()
    kernels = layer_kernels(device, image)
    for decay, gate in itertools.product((False, True), repeat=2):
        model = model_of(image, full_rank_decay=decay, full_rank_gate=gate)
        check_layer(check, runtime, device, model, kernels, place)
    if ranks > 1:
        torch.distributed.destroy_process_group()
    print(f"{device.name}: {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
