# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the classes of gdn.layers.attention with PyTorch on a GPU: the layer from hidden
states to output against float64, graphs against eager, padding, refusals, and, where
torchrun started several ranks, tensor parallel against one rank.

    python3 -m gdn.layer_check layer.gdnk --library libgdnrt.so
    torchrun --nproc-per-node=2 -m gdn.layer_check layer.gdnk --library libgdnrt.so

The image is of one model of SIZES, for bf16 with f32 states.
"""

import argparse
import datetime
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from . import GdnError, Runtime, StatePool, StatePoolShape
from .layers.attention import (
    CommonAttentionMetadata,
    ForwardBatch,
    ForwardMode,
    GDNAttentionMetadataBuilder,
    GDNAttnBackend,
    RadixLinearAttention,
    layer_kernels,
)
from .layers.attention.torch_gated_delta_net import GatedDeltaNetAttention

SIZES = SimpleNamespace(
    hidden_size=256,
    linear_num_key_heads=4,
    linear_num_value_heads=8,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_conv_kernel_dim=4,
    rms_norm_eps=1e-6,
    hidden_act="silu",
)
SLOTS, LIMIT = 12, 1e-2
HK, HV, D = 4, 8, 128
CHANNELS = 2 * HK * D + HV * D


def checkpoint() -> dict[str, torch.Tensor]:
    """Random weights by the checkpoint's names, in the order interleaved."""
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(shape, generator=generator) / shape[-1] ** 0.5

    hidden = SIZES.hidden_size
    weights = {
        "in_proj_qkvz.weight": normal(2 * HK * D + 2 * HV * D, hidden),
        "in_proj_ba.weight": normal(2 * HV, hidden),
        "conv1d.weight": normal(CHANNELS, 1, 4) * 2,
        "dt_bias": torch.randn(HV, generator=generator),
        "norm.weight": 1 + 0.2 * torch.randn(D, generator=generator),
        "out_proj.weight": normal(hidden, HV * D),
    }
    weights = {name: weight.bfloat16() for name, weight in weights.items()}
    weights["A_log"] = torch.log(1 + 15 * torch.rand(HV, generator=generator))
    return weights


def unpack(weights: dict, x: torch.Tensor):
    """q, k, v, z, b, a of the projections in float64; one block per key head."""
    packed = (x @ weights["in_proj_qkvz.weight"].T).reshape(len(x), HK, -1)
    share = HV // HK * D
    q, k, v, z = packed.split([D, D, share, share], dim=2)
    gates = (x @ weights["in_proj_ba.weight"].T).reshape(len(x), HK, 2, -1)
    b, a = (gates[:, :, i].reshape(len(x), HV) for i in (0, 1))
    return q.flatten(1), k.flatten(1), v.flatten(1), z.reshape(len(x), HV, D), b, a


def reference(weights, x, conv, state):
    """A decode step in float64: the output, and the states after it."""
    weights = {name: weight.double() for name, weight in weights.items()}
    q, k, v, z, b, a = unpack(weights, x.double())
    window = torch.cat([conv, torch.cat([q, k, v], dim=1)[:, :, None]], dim=2)
    mixed = torch.nn.functional.silu((window * weights["conv1d.weight"][:, 0]).sum(2))
    q, k, v = mixed.split([HK * D, HK * D, HV * D], dim=1)
    q, k = (part.reshape(-1, HK, D) for part in (q, k))
    q, k = (part * (part.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for part in (q, k))
    q, k = (part.repeat_interleave(HV // HK, dim=1) for part in (q, k))
    decay = -weights["A_log"].exp() * torch.nn.functional.softplus(a + weights["dt_bias"])
    state = state * decay.exp()[:, :, None, None]
    delta = v.reshape(-1, HV, D) - torch.einsum("nhvk,nhk->nhv", state, k)
    state = state + torch.einsum("nhv,nhk->nhvk", b.sigmoid()[:, :, None] * delta, k)
    core = torch.einsum("nhvk,nhk->nhv", state, q) / D**0.5
    scale = (core.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    normed = core * scale * weights["norm.weight"] * torch.nn.functional.silu(z)
    return normed.flatten(1) @ weights["out_proj.weight"].T, window[:, :, 1:], state


def error_of(got: torch.Tensor, want: torch.Tensor) -> float:
    got, want = got.double().cpu(), want.double().cpu()
    return float(((got - want).square().sum() / want.square().sum()).sqrt())


def step_of(slots: list[int]) -> CommonAttentionMetadata:
    """One token of each request, which has some already."""
    rows = len(slots)
    return CommonAttentionMetadata(
        query_start_loc=np.arange(rows + 1, dtype=np.int32),
        seq_lens=np.full(rows, 9, np.int32),
        num_reqs=rows,
        num_actual_tokens=rows,
        block_table_tensor=np.array(slots, np.int32)[:, None],
    )


class Check:
    """Counts what holds."""

    def __init__(self):
        self.failed, self.rows = 0, []

    def that(self, name: str, holds: bool, detail: str = "") -> None:
        self.failed += not holds
        self.rows.append({"check": name, "holds": bool(holds), "detail": detail})
        if not holds or int(os.environ.get("RANK", 0)) == 0:
            print(f"{'ok' if holds else 'FAILED':7} {name} {detail}", flush=True)


def make_layer(kernels, weights, **options):
    """The layer with random states."""
    options["mamba_ssm_cache_dtype"] = "float32"
    layer = GatedDeltaNetAttention(SIZES, kernels, **options)
    taken = layer.load_weights(weights.items())
    assert taken == set(weights), set(weights) - taken
    conv, state = layer.get_state_shape()
    generator = torch.Generator().manual_seed(2)
    states = torch.randn(SLOTS, HV, D, D, generator=generator) * 0.1
    # One history for all ranks, so that parts of it are those of the whole.
    q, k, v = (
        torch.randn(SLOTS, 3, CHANNELS, generator=generator)
        .bfloat16()
        .split([HK * D, HK * D, HV * D], dim=2)
    )

    def part(x):
        return x.chunk(layer.tp_size, dim=2)[layer.tp_rank]

    history = torch.cat([part(q), part(k), part(v)], dim=2).cuda().contiguous()
    states = states.chunk(layer.tp_size, dim=1)[layer.tp_rank].cuda().contiguous()
    assert history.shape[1:] == conv and states.shape[1:] == state
    layer.bind_kv_cache(history, states)
    return layer, history, states


def check_layer(check: Check, runtime, device, kernels) -> None:
    weights = checkpoint()
    layer, history, states = make_layer(kernels, weights)
    builder = GDNAttentionMetadataBuilder.from_options(
        runtime, device, max_num_seqs=8, max_num_tokens=64, use_full_cuda_graph=True
    )
    x = torch.randn(6, SIZES.hidden_size, generator=torch.Generator().manual_seed(3)).bfloat16()
    slots = [3, 9, 1, 5]
    conv, state = history.cpu().double().swapaxes(1, 2)[slots], states.cpu().double()[slots]
    before = states.clone(), history.clone()

    def run(output):
        metadata = builder.build(0, step_of(slots), num_padded_reqs=6)
        layer(x.cuda(), output, metadata)

    eager = torch.full((6, SIZES.hidden_size), torch.nan, device="cuda", dtype=torch.bfloat16)
    run(eager)
    want, conv, state = reference(weights, x[:4], conv, state)
    found = error_of(eager[:4], want)
    check.that("output", found < LIMIT, f"error {found:.1e}")
    check.that("state", error_of(states[slots], state) < 1e-2)
    check.that("window", error_of(history.swapaxes(1, 2)[slots], conv) < 1e-2)
    check.that("padding is zero", bool((eager[4:] == 0).all()))
    rest = [slot for slot in range(SLOTS) if slot not in slots]
    check.that("other slots", torch.equal(states[rest], before[0][rest]))
    after = states.clone(), history.clone()

    # A graph of six rows, captured on the null slot, replayed for these four.
    builder.build_for_cudagraph_capture(step_of([0] * 6))
    metadata = builder.build(0, step_of([0] * 6))
    inputs, output = x.cuda(), torch.empty_like(eager)
    layer(inputs, output, metadata)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layer(inputs, output, metadata)
    states.copy_(before[0])
    history.copy_(before[1])
    builder.build(0, step_of(slots), num_padded_reqs=6)
    graph.replay()
    torch.cuda.synchronize()
    check.that("graph has the bits of eager", torch.equal(output, eager))
    check.that("graph's states", torch.equal(states, after[0]) and torch.equal(history, after[1]))

    output = torch.full_like(eager, torch.nan)
    layer(inputs, output)
    check.that("profile run", bool((output == 0).all()) and torch.equal(states, after[0]))
    if "prefill" not in kernels:
        prompt = step_of(slots[:1])
        prompt.query_start_loc = np.array([0, 5], np.int32)
        prompt.num_actual_tokens = 5
        try:
            layer(inputs[:5], output, builder.build(0, prompt))
            refused = "nothing"
        except GdnError as error:
            refused = error.status
        check.that("prefill is refused", refused == "UNSUPPORTED", refused)


def check_backend(check: Check, runtime, device, kernels) -> None:
    """GDNAttnBackend on a pool of the device, eager and in a graph with a stale tail."""
    weights = checkpoint()
    pool = StatePool(device, StatePoolShape(1, SLOTS - 1, HK, HV, D, D))
    slots = pool.allocate(3)
    backend = GDNAttnBackend(pool, device, kernels=kernels)
    layer = RadixLinearAttention(
        0,
        0,
        HK,
        HV,
        D,
        D,
        weights["conv1d.weight"][:, 0].contiguous().cuda(),
        weights["A_log"].cuda(),
        weights["dt_bias"].cuda(),
    )
    generator = torch.Generator().manual_seed(5)
    qkv, b, a = (
        torch.randn(4, n, generator=generator).bfloat16().cuda() for n in (CHANNELS, HV, HV)
    )
    ids = torch.tensor([*slots, 0], dtype=torch.int64, device="cuda")
    batch = ForwardBatch(ForwardMode.DECODE, 4, req_pool_indices=ids, attn_backend=backend)
    backend.init_forward_metadata(batch)
    eager = layer(batch, qkv, a, b)
    torch.cuda.synchronize()
    check.that("backend's padding", bool((eager[3] == 0).all()))
    check.that("backend's output", bool(eager[:3].isfinite().all() and eager[:3].any()))

    backend.init_cuda_graph_state(4, 4)
    ones = np.ones(4, np.int32)
    backend.init_forward_metadata_capture_cuda_graph(4, torch.zeros(4, dtype=torch.int64), ones)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        replayed = layer(batch, qkv, a, b)
    pool.reset_states(slots)
    # The tail names a slot that lives.
    stale = torch.tensor([*slots, slots[0]], dtype=torch.int64)
    backend.init_forward_metadata_replay_cuda_graph(4, stale, np.array([7, 7, 7, 1], np.int32))
    graph.replay()
    torch.cuda.synchronize()
    check.that("backend's graph", torch.equal(replayed, eager))
    idle = ForwardBatch(ForwardMode.IDLE, 0, attn_backend=backend)
    check.that("idle", bool((layer(idle, qkv, a, b) == 0).all()))


def prompt_after(slots: list[int], tokens: int) -> CommonAttentionMetadata:
    """One token of each request but the last, of which a piece of the prompt comes: it has a
    state, so that entries without has_initial take it."""
    metadata = step_of(slots)
    metadata.query_start_loc[-1] += tokens - 1
    metadata.seq_lens[-1] += tokens - 1
    metadata.num_actual_tokens += tokens - 1
    return metadata


def run_steps(runtime, device, kernels) -> tuple[list[torch.Tensor], torch.Tensor, int]:
    """Output of a step of decode, and of one with a prompt where there is a prefill; the states
    after them; how many ranks made them."""
    layer, _, states = make_layer(kernels, checkpoint())
    builder = GDNAttentionMetadataBuilder.from_options(
        runtime, device, max_num_seqs=8, max_num_tokens=128
    )
    steps = [step_of([3, 9, 1, 5])]
    if "prefill" in kernels:
        steps.append(prompt_after([9, 5, 2], 70))
    outputs = []
    for seed, step in enumerate(steps):
        shape = (step.num_actual_tokens, SIZES.hidden_size)
        x = torch.randn(shape, generator=torch.Generator().manual_seed(3 + seed))
        output = torch.full(shape, torch.nan, device="cuda", dtype=torch.bfloat16)
        layer(x.bfloat16().cuda(), output, builder.build(0, step))
        outputs.append(output)
    torch.cuda.synchronize()
    return outputs, states, layer.tp_size


def check_ranks(check: Check, runtime, device, kernels, rank: int) -> None:
    """This rank's part with the all-reduce against the whole layer on this GPU."""
    wanted, whole, _ = run_steps(runtime, device, kernels)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    outputs, states, ranks = run_steps(runtime, device, kernels)
    for name, got, want in zip(("decode", "prompt"), outputs, wanted, strict=False):
        error = error_of(got, want)
        check.that(f"{ranks} ranks equal one: {name}", error < LIMIT, f"error {error:.1e}")
    error = error_of(states, whole.chunk(ranks, dim=1)[torch.distributed.get_rank()])
    check.that("this rank's states are its part", error < LIMIT, f"error {error:.1e}")
    torch.distributed.destroy_process_group()


def report(device, ranks: int, check: Check) -> dict:
    """What was checked on which device with how many ranks, and what came of it."""
    return {
        "device": device.name,
        "date": datetime.date.today().isoformat(),
        "versions": {"torch": torch.__version__},
        "ranks": ranks,
        "failed": check.failed,
        "checks": check.rows,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="layer_check", description=__doc__)
    parser.add_argument("image")
    parser.add_argument("--library", required=True)
    parser.add_argument("--output", type=Path, help="write the outcome as JSON, by rank 0")
    arguments = parser.parse_args()
    rank, ranks = (
        int(os.environ.get(name, n)) for name, n in (("LOCAL_RANK", 0), ("WORLD_SIZE", 1))
    )
    torch.cuda.set_device(rank)
    torch.zeros(1, device="cuda")
    runtime = Runtime(arguments.library)
    device = runtime.cuda(rank)
    kernels = layer_kernels(device, runtime.image(arguments.image))
    check = Check()
    if ranks > 1:
        check_ranks(check, runtime, device, kernels, rank)
    else:
        check_layer(check, runtime, device, kernels)
        if any(param.name == "qkv" for param in kernels["decode"].params):
            check_backend(check, runtime, device, kernels)
    print(f"{device.name}: {check.failed} failed")
    if arguments.output and rank == 0:
        arguments.output.write_text(json.dumps(report(device, ranks, check), indent=1) + "\n")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
