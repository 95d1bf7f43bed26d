# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer from hidden states to output, made up from a seed, with steps of it and what
they give in float64: what gdn.layer_check runs with PyTorch, and tests without it.
Numbers are those that bf16 has, but for A_log and the states."""

from types import SimpleNamespace

import numpy as np

from .layers.attention import (
    CommonAttentionMetadata,
    ForwardBatch,
    ForwardMode,
    GDNAttnBackend,
    RadixLinearAttention,
)
from .reference import Layer, evaluate
from .state_pool import StatePool, StatePoolShape

HK, HV, D, HIDDEN = 4, 8, 128, 256
CHANNELS = 2 * HK * D + HV * D
SLOTS = 12

SIZES = SimpleNamespace(
    hidden_size=HIDDEN,
    linear_num_key_heads=HK,
    linear_num_value_heads=HV,
    linear_key_head_dim=D,
    linear_value_head_dim=D,
    linear_conv_kernel_dim=4,
    rms_norm_eps=1e-6,
    hidden_act="silu",
)


def rounded(array: np.ndarray) -> np.ndarray:
    """To the nearest that bf16 has, ties to even, as f32."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def checkpoint(order: str) -> dict[str, np.ndarray]:
    """Weights by the checkpoint's names: one layer, whatever the order ("interleaved" or
    "flat") of in_proj_qkvz and in_proj_ba."""
    rng = np.random.default_rng(1)

    def normal(*shape):
        return rng.standard_normal(shape)

    each = HV // HK
    # By key head: that is the order interleaved.
    q, k = normal(HK, D, HIDDEN), normal(HK, D, HIDDEN)
    v, z = normal(HK, each * D, HIDDEN), normal(HK, each * D, HIDDEN)
    b, a = normal(HK, each, HIDDEN), normal(HK, each, HIDDEN)

    def packed(*parts):
        if order == "interleaved":
            return np.concatenate(parts, axis=1).reshape(-1, HIDDEN) / HIDDEN**0.5
        return np.concatenate([part.reshape(-1, HIDDEN) for part in parts]) / HIDDEN**0.5

    weights = {
        "in_proj_qkvz.weight": packed(q, k, v, z),
        "in_proj_ba.weight": packed(b, a),
        "conv1d.weight": normal(CHANNELS, 1, 4),
        "dt_bias": normal(HV),
        "norm.weight": 1 + 0.2 * normal(D),
        "out_proj.weight": normal(HIDDEN, HV * D) / (HV * D) ** 0.5,
    }
    weights = {name: rounded(weight) for name, weight in weights.items()}
    weights["A_log"] = np.log(rng.uniform(1, 16, HV)).astype(np.float32)
    return weights


def first_states() -> tuple[np.ndarray, np.ndarray]:
    """Windows [SLOTS, 3, CHANNELS] and states [SLOTS, HV, D, D] before the first step."""
    rng = np.random.default_rng(2)
    windows = rounded(rng.standard_normal((SLOTS, 3, CHANNELS)))
    return windows, 0.1 * rng.standard_normal((SLOTS, HV, D, D), np.float32)


def part_of_states(windows, states, ranks: int, rank: int):
    """What a rank has of the whole layer's: its channels of q, of k and of v, and its heads.
    NumPy arrays or tensors; the windows are a list of three views."""

    def part(array, axis: int, first: int, size: int):
        first, size = first + size // ranks * rank, size // ranks
        return array[(slice(None),) * axis + (slice(first, first + size),)]

    channels = [(0, HK * D), (HK * D, HK * D), (2 * HK * D, HV * D)]
    return [part(windows, 2, *each) for each in channels], part(states, 1, 0, HV)


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


def prompt_after(slots: list[int], tokens: int) -> CommonAttentionMetadata:
    """One token of each request but the last, of which a piece of the prompt comes: it has a
    state, so that entries without has_initial take it."""
    metadata = step_of(slots)
    metadata.query_start_loc[-1] += tokens - 1
    metadata.seq_lens[-1] += tokens - 1
    metadata.num_actual_tokens += tokens - 1
    return metadata


def steps_of(kernels) -> list[CommonAttentionMetadata]:
    """A step of decode, and one with a prompt where there is a prefill."""
    steps = [step_of([3, 9, 1, 5])]
    return [*steps, prompt_after([9, 5, 2], 70)] if "prefill" in kernels else steps


def hidden_states(tokens: int, seed: int) -> np.ndarray:
    """[tokens, HIDDEN]"""
    return rounded(np.random.default_rng(3 + seed).standard_normal((tokens, HIDDEN)))


def expected(order: str, steps: list[CommonAttentionMetadata]):
    """The outputs of steps, then windows and states, from the weights in an order. Step i
    runs on hidden_states(tokens, i)."""
    weights = {name: weight.astype(np.float64) for name, weight in checkpoint(order).items()}
    layer = Layer(layout=order, key_dim=D, value_dim=D)
    windows, states = first_states()
    pools = {"conv_pool": windows.swapaxes(1, 2), "state_pool": states}
    outputs = []
    for seed, step in enumerate(steps):
        x = hidden_states(step.num_actual_tokens, seed).astype(np.float64)
        arguments = {
            "qkvz": x @ weights["in_proj_qkvz.weight"].T,
            "ba": x @ weights["in_proj_ba.weight"].T,
            "conv_weight": weights["conv1d.weight"][:, 0],
            "norm_weight": weights["norm.weight"],
            "A_log": weights["A_log"],
            "dt_bias": weights["dt_bias"],
            "cu_seqlens": step.query_start_loc,
            "slots": step.block_table_tensor[:, 0],
        }
        result = evaluate(layer, arguments | pools)
        pools = {name: result[name] for name in pools}
        outputs.append(result["out"].reshape(len(x), -1) @ weights["out_proj.weight"].T)
    return outputs, pools["conv_pool"].swapaxes(1, 2), pools["state_pool"]


# Tokens of each request in batches of an attention backend: prompts, pieces of prompts that go
# on, and a step of decode.
BATCHES = ((5, 70, 130), (64, 1, 3), (1, 1, 1))


def backend_inputs(batch: int) -> dict[str, np.ndarray]:
    """What the projections of a batch give, by name."""
    rng, tokens = np.random.default_rng(7 + batch), sum(BATCHES[batch])
    sizes = {"qkv": CHANNELS, "a": HV, "b": HV}
    return {name: rounded(rng.standard_normal((tokens, n))) for name, n in sizes.items()}


def make_backend(device, kernels, put):
    """GDNAttnBackend on a pool of zeros, a layer, and its types by the names of parameters. `put`
    makes an array of the device of a NumPy array, in a type by its name."""
    dtypes = {param.name: param.dtype for param in kernels["decode"].params}
    shape = StatePoolShape(1, SLOTS - 1, HK, HV, D, D, conv_dtype=dtypes["conv_pool"])
    pool = StatePool(device, shape)
    backend = GDNAttnBackend(pool, device, kernels=kernels)
    weights = checkpoint("interleaved")
    given = {
        "conv_weight": np.ascontiguousarray(weights["conv1d.weight"][:, 0]),
        "A_log": weights["A_log"],
        "dt_bias": weights["dt_bias"],
    }
    given = {name: put(array, dtypes[name]) for name, array in given.items()}
    return backend, RadixLinearAttention(0, 0, HK, HV, D, D, **given), dtypes


def run_backend(device, kernels, put) -> list:
    """What GDNAttnBackend gives for BATCHES; `put` is that of make_backend."""
    backend, layer, dtypes = make_backend(device, kernels, put)
    slots = np.array(backend.gdn_pool.allocate(len(BATCHES[0])), np.int64)
    outputs = []
    for index, lengths in enumerate(BATCHES):
        is_decode = max(lengths) == 1
        batch = ForwardBatch(
            ForwardMode.DECODE if is_decode else ForwardMode.EXTEND,
            len(slots),
            req_pool_indices=slots,
            attn_backend=backend,
            extend_seq_lens=None if is_decode else np.array(lengths, np.int32),
        )
        backend.init_forward_metadata(batch)
        inputs = {name: put(x, dtypes[name]) for name, x in backend_inputs(index).items()}
        outputs.append(layer(batch, inputs["qkv"], inputs["a"], inputs["b"]))
        device.synchronize()
    return outputs


def expected_of_backend() -> list[np.ndarray]:
    """The outputs of run_backend in float64."""
    weights, rows = checkpoint("interleaved"), len(BATCHES[0])
    pools = {
        "conv_pool": np.zeros((rows + 1, CHANNELS, 3)),
        "state_pool": np.zeros((rows + 1, HV, D, D)),
    }
    outputs = []
    for index, lengths in enumerate(BATCHES):
        arguments = backend_inputs(index) | {
            "conv_weight": weights["conv1d.weight"][:, 0],
            "A_log": weights["A_log"],
            "dt_bias": weights["dt_bias"],
            "cu_seqlens": np.cumsum([0, *lengths]),
            "slots": np.arange(1, rows + 1),
        }
        result = evaluate(Layer(layout="split", key_dim=D, value_dim=D), arguments | pools)
        pools = {name: result[name] for name in pools}
        outputs.append(result["core"].reshape(sum(lengths), -1))
    return outputs
