# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the classes of gdn.layers.attention with PyTorch on a GPU: the layer from hidden
states to output against float64, graphs against eager, padding, refusals, and, where
torchrun started several ranks, tensor parallel against one rank. Of an image of --mixed-batch
with --verify=slots, steps of all kinds of sequences in a graph.

    python3 -m gdn.layer_check layer.gdnk
    torchrun --nproc-per-node=2 -m gdn.layer_check layer.gdnk

The image is for bf16 with f32 states, in any layout from projections; the layer is that of
gdn.layer_problem in the order of projections that the image's kernels take.
"""

import argparse
import datetime
import json
import os
import sys
from pathlib import Path

import numpy as np
import torch

from . import GdnError, Runtime, StatePool, StatePoolShape, layer_problem
from .layer_problem import CHANNELS, HK, HV, SIZES, SLOTS, D, part_of_states, step_of
from .layers.attention import (
    CommonAttentionMetadata,
    ForwardBatch,
    ForwardMode,
    GDNAttentionMetadataBuilder,
    GDNAttnBackend,
    RadixLinearAttention,
    layer_kernels,
    order_of,
)
from .layers.attention.torch_gated_delta_net import GatedDeltaNetAttention

LIMIT = 1e-2


def checkpoint(kernels) -> dict[str, torch.Tensor]:
    """The weights in the order that kernels take, bf16 but for A_log."""
    weights = layer_problem.checkpoint(order_of(kernels) or "interleaved")
    tensors = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    return {name: x if name == "A_log" else x.bfloat16() for name, x in tensors.items()}


def hidden_states(tokens: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(layer_problem.hidden_states(tokens, seed)).bfloat16()


def parts_of(layer, windows, states):
    """This rank's part of the whole layer's states."""
    parts, states = part_of_states(windows, states, layer.tp_size, layer.tp_rank)
    return torch.cat(parts, dim=2), states.contiguous()


def error_of(got: torch.Tensor, want: torch.Tensor | np.ndarray) -> float:
    got, want = (torch.as_tensor(x).double().cpu() for x in (got, want))
    return float(((got - want).square().sum() / want.square().sum()).sqrt())


class Check:
    """Counts what holds."""

    def __init__(self):
        self.failed, self.rows = 0, []

    def that(self, name: str, holds: bool, detail: str = "") -> None:
        self.failed += not holds
        self.rows.append({"check": name, "holds": bool(holds), "detail": detail})
        if not holds or int(os.environ.get("RANK", 0)) == 0:
            print(f"{'ok' if holds else 'FAILED':7} {name} {detail}", flush=True)


def make_layer(kernels):
    """The layer with states that are parts of the same for all ranks."""
    weights, order = checkpoint(kernels), order_of(kernels) or "interleaved"
    place = next(iter(kernels.values()))._device.kind
    layer = GatedDeltaNetAttention(
        SIZES, kernels, order=order, device=place, mamba_ssm_cache_dtype="float32"
    )
    taken = layer.load_weights(weights.items())
    assert taken == set(weights), set(weights) - taken
    windows, states = map(torch.from_numpy, layer_problem.first_states())
    history, states = parts_of(layer, windows.bfloat16(), states)
    history, states = history.to(place), states.to(place)
    conv, state = layer.get_state_shape()
    assert history.shape[1:] == conv and states.shape[1:] == state
    layer.bind_kv_cache(history, states)
    return layer, history, states


def check_layer(check: Check, runtime, device, kernels) -> None:
    layer, history, states = make_layer(kernels)
    builder = GDNAttentionMetadataBuilder.from_options(
        runtime, device, max_num_seqs=8, max_num_tokens=64, use_full_cuda_graph=True
    )
    # Rows behind those of the step are padding.
    x, slots = torch.nn.functional.pad(hidden_states(4), (0, 0, 0, 2), value=1), [3, 9, 1, 5]
    before = states.clone(), history.clone()

    def run(output):
        metadata = builder.build(0, step_of(slots), num_padded_reqs=6)
        layer(x.cuda(), output, metadata)

    eager = torch.full((6, SIZES.hidden_size), torch.nan, device="cuda", dtype=torch.bfloat16)
    run(eager)
    (want,), conv, state = layer_problem.expected(layer.order, [step_of(slots)])
    found = error_of(eager[:4], want)
    check.that("output", found < LIMIT, f"error {found:.1e}")
    check.that("state", error_of(states[slots], state[slots]) < LIMIT)
    check.that("window", error_of(history[slots], conv[slots]) < LIMIT)
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
    weights = checkpoint(kernels)
    dtypes = {param.name: param.dtype for param in kernels["decode"].params}
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
        weights["dt_bias"].to("cuda", getattr(torch, dtypes["dt_bias"])),
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
    backend.init_forward_metadata_replay_cuda_graph(4, stale, np.full(4, 7, np.int32), num_reqs=3)
    graph.replay()
    torch.cuda.synchronize()
    check.that("backend's graph", torch.equal(replayed, eager))
    idle = ForwardBatch(ForwardMode.IDLE, 0, attn_backend=backend)
    check.that("idle", bool((layer(idle, qkv, a, b) == 0).all()))


def check_extend_graph(check: Check, device, kernels) -> None:
    """A graph of extend, replayed for fewer prompts and tokens than it has room for, against
    eager batches of as many, in which those that pad are in the null slot. Each goes on from
    the states of the one before."""

    def put(array: np.ndarray, dtype: str) -> torch.Tensor:
        return torch.from_numpy(array).to("cuda", getattr(torch, dtype))

    rows, tokens = 3, 150
    outputs = []
    for replays in (False, True):
        backend, layer, dtypes = layer_problem.make_backend(device, kernels, put)
        slots = backend.gdn_pool.allocate(rows)
        generator = torch.Generator().manual_seed(6)
        inputs = [
            torch.randn(tokens, n, generator=generator).to("cuda", getattr(torch, dtypes["qkv"]))
            for n in (CHANNELS, HV, HV)
        ]
        extend = {"forward_mode": ForwardMode.EXTEND, "num_tokens": tokens}
        batch = ForwardBatch(ForwardMode.EXTEND, rows, attn_backend=backend)
        graph = torch.cuda.CUDAGraph()
        if replays:
            backend.init_cuda_graph_state(rows, tokens)
            none = np.zeros(rows, np.int64)
            backend.init_forward_metadata_capture_cuda_graph(rows, none, None, **extend)
            layer(batch, *inputs)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                output = layer(batch, *inputs)
        for lengths in ([70, 9], [1, 0, 149], [], [64, 1], [5]):
            count = len(lengths)
            ids = np.array([*slots[:count], *[0] * (rows - count)], np.int64)
            sizes = np.array([*lengths, *[0] * (rows - count)], np.int32)
            if replays:
                backend.init_forward_metadata_replay_cuda_graph(
                    rows, ids, None, num_reqs=count, extend_seq_lens=sizes, **extend
                )
                graph.replay()
            else:
                sizes[-1] += tokens - sizes.sum()
                batch.req_pool_indices, batch.extend_seq_lens = ids, sizes
                backend.init_forward_metadata(batch)
                output = layer(batch, *inputs)
            torch.cuda.synchronize()
            outputs.append(output.clone())
    half = len(outputs) // 2
    pairs = zip(outputs[:half], outputs[half:], strict=True)
    check.that("backend's graph of extend", all(torch.equal(a, b) for a, b in pairs))


def draw_mixed_step(rng, rows: int, drafts_most: int, tokens: int):
    """A step of decodes, verified sequences and at most two prompts, in any order: what the
    scheduler says of it, accepted counts and drafts."""
    count = int(rng.integers(0, rows + 1))
    kinds = rng.permutation(["prompt", "prompt", *rng.choice(["decode", "verify"], rows)])[:count]
    drafts = np.where(kinds == "verify", rng.integers(0, drafts_most + 1, count), -1)
    lengths = np.where(kinds == "prompt", rng.integers(1, 80, count), np.maximum(drafts, 0) + 1)
    before = np.where(kinds == "prompt", rng.choice([0, 7], count), rng.integers(1, 50, count))
    columns = drafts_most + 1
    table = 1 + np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    step = CommonAttentionMetadata(
        query_start_loc=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        seq_lens=(before + lengths).astype(np.int32),
        num_reqs=count,
        num_actual_tokens=tokens,
        block_table_tensor=table[:count],
    )
    accepted = rng.integers(1, columns + 1, count).astype(np.int32)
    return step, accepted, drafts.astype(np.int32)


def check_mixed(check: Check, runtime, device, kernels) -> None:
    """One graph of the layer for steps of all kinds of sequences, against eager steps."""
    rows, drafts, tokens = 5, 1, 192
    layer, history, states = make_layer(kernels)
    builder = GDNAttentionMetadataBuilder.from_options(
        runtime,
        device,
        max_num_seqs=rows,
        max_num_tokens=tokens,
        num_speculative_tokens=drafts,
        mixed_batch=True,
        use_full_cuda_graph=True,
        max_num_prefills=2,
    )
    pools = history, states
    first = [pool.clone() for pool in pools]
    inputs = torch.zeros(tokens, SIZES.hidden_size, device="cuda", dtype=torch.bfloat16)
    output = torch.full_like(inputs, torch.nan)
    rng = np.random.default_rng(1)
    bounds = CommonAttentionMetadata(
        query_start_loc=np.zeros(rows + 1, np.int32),
        seq_lens=np.zeros(rows, np.int32),
        num_reqs=rows,
        num_actual_tokens=tokens,
        block_table_tensor=np.zeros((rows, drafts + 1), np.int32),
    )
    metadata = builder.build_for_cudagraph_capture(bounds)
    layer(inputs, output, metadata)
    torch.cuda.synchronize()
    untouched = all(torch.equal(pool, was) for pool, was in zip(pools, first, strict=True))
    check.that("what is captured writes no slot", untouched)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layer(inputs, output, metadata)
    same = changed = finite = True
    for seed in range(20):
        step, accepted, counts = draw_mixed_step(rng, rows, drafts, tokens)
        inputs.copy_(hidden_states(tokens, seed))
        before = [pool.clone() for pool in pools]
        found = []
        for replays in (True, False):
            for pool, was in zip(pools, before, strict=True):
                pool.copy_(was)
            output.fill_(torch.nan)
            metadata = builder.build(0, step, accepted, counts, num_padded_reqs=rows)
            if replays:
                graph.replay()
            else:
                layer(inputs, output, metadata)
            torch.cuda.synchronize()
            found.append([x.clone() for x in (output, *pools)])
        same &= all(torch.equal(a, b) for a, b in zip(*found, strict=True))
        finite &= bool(output.isfinite().all())
        changed &= step.num_reqs == 0 or not torch.equal(states, before[1])
    check.that("graph of mixed steps has the bits of eager", same)
    check.that("mixed steps are computed", changed and finite)


def check_extend(check: Check, device, kernels) -> None:
    """Prompts, pieces of prompts and a step of the backend against float64."""

    def put(array: np.ndarray, dtype: str) -> torch.Tensor:
        return torch.from_numpy(array).to(device.kind, getattr(torch, dtype))

    got = layer_problem.run_backend(device, kernels, put)
    wanted = layer_problem.expected_of_backend()
    names = ("prompts", "pieces of prompts", "decode behind them")
    for name, found, want in zip(names, got, wanted, strict=True):
        error = error_of(found, want)
        check.that(f"backend's {name}", error < LIMIT, f"error {error:.1e}")


def run_steps(runtime, device, kernels):
    """Outputs of a step of decode, and of one with a prompt where there is a prefill; the
    layer, and its windows and states after them."""
    layer, history, states = make_layer(kernels)
    builder = GDNAttentionMetadataBuilder.from_options(
        runtime, device, max_num_seqs=8, max_num_tokens=128
    )
    outputs = []
    for seed, step in enumerate(layer_problem.steps_of(kernels)):
        x = hidden_states(step.num_actual_tokens, seed).to(device.kind)
        output = torch.full_like(x, torch.nan)
        layer(x, output, builder.build(0, step))
        outputs.append(output)
    device.synchronize()
    return outputs, layer, history, states


def check_steps(check: Check, runtime, device, kernels) -> None:
    """A step of decode, and one with a prompt after it, against float64."""
    outputs, layer, history, states = run_steps(runtime, device, kernels)
    wanted, *pools = layer_problem.expected(layer.order, layer_problem.steps_of(kernels))
    names = ("first step", "step with a prompt")[: len(outputs)]
    got_and_wanted = zip((*outputs, history, states), (*wanted, *pools), strict=True)
    for name, (got, want) in zip(
        (*names, "windows of steps", "states of steps"), got_and_wanted, strict=True
    ):
        error = error_of(got, want)
        check.that(name, error < LIMIT, f"error {error:.1e}")


def check_ranks(check: Check, runtime, device, kernels, rank: int) -> None:
    """This rank's part with the all-reduce against the whole layer on this GPU."""
    wanted, _, *whole = run_steps(runtime, device, kernels)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    outputs, layer, *pools = run_steps(runtime, device, kernels)
    for name, got, want in zip(("decode", "prompt"), outputs, wanted, strict=False):
        error = error_of(got, want)
        check.that(f"{layer.tp_size} ranks equal one: {name}", error < LIMIT, f"error {error:.1e}")
    for name, got, want in zip(("windows", "states"), pools, parts_of(layer, *whole), strict=True):
        error = error_of(got, want)
        check.that(f"this rank's {name} are its part", error < LIMIT, f"error {error:.1e}")
    torch.distributed.destroy_process_group()


def takes(kernel, name: str) -> bool:
    return any(param.name == name for param in kernel.params)


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
    parser.add_argument("--library", help="libgdnrt, else the installed one")
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
        if "prefill" in kernels and takes(kernels["prefill"], "is_prefill"):
            check_mixed(check, runtime, device, kernels)
        else:
            check_steps(check, runtime, device, kernels)
            if takes(kernels["decode"], "qkv"):
                check_backend(check, runtime, device, kernels)
                if "prefill" in kernels:
                    check_extend(check, device, kernels)
                    check_extend_graph(check, device, kernels)
    print(f"{device.name}: {check.failed} failed")
    if arguments.output and rank == 0:
        arguments.output.write_text(json.dumps(report(device, ranks, check), indent=1) + "\n")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
