# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes and dtypes of states, and tensor parallelism: the ranks' core outputs, side by
side, are the whole layer's, bit for bit."""

import numpy as np
import pytest
from gdn_layer_model import compile_image

from gdn import GdnError, Pool, Runtime
from gdn.layers.attention import (
    GDNLayer,
    LayerHeads,
    gated_delta_net_state_dtype,
    gated_delta_net_state_shape,
    layer_kernels,
    shard_weights,
    weight_slices,
)
from gdn.layers.attention.gdn_metadata import (
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
)

HEADS = LayerHeads(8, 16, 64, 64)
HIDDEN, LENGTHS = 32, (5, 70)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def test_state_shapes(runtime):
    """Qwen3-Next-80B-A3B: 16 key heads, 32 value heads."""
    arguments = (16, 32, 128, 128, 4)
    assert gated_delta_net_state_shape(runtime, 1, *arguments) == ((3, 8192), (32, 128, 128))
    assert gated_delta_net_state_shape(runtime, 4, *arguments, num_spec=2) == (
        (5, 2048),
        (8, 128, 128),
    )
    assert gated_delta_net_state_shape(runtime, 8, *arguments, conv_state_layout="DS") == (
        (1024, 3),
        (4, 128, 128),
    )
    with pytest.raises(GdnError, match="num_key_heads: expected a multiple of 32, the ranks"):
        gated_delta_net_state_shape(runtime, 32, *arguments)


def test_state_dtypes(runtime):
    def dtypes(*names):
        return gated_delta_net_state_dtype(runtime, *names)

    assert dtypes("bfloat16") == ("bfloat16", "bfloat16")
    assert dtypes("bfloat16", "auto", "float32") == ("bfloat16", "float32")
    assert dtypes("bfloat16", "float16") == ("float16", "float16")
    assert dtypes("float16", "float32", "bfloat16") == ("float32", "bfloat16")
    with pytest.raises(GdnError, match="mamba_cache_dtype: expected f32, bf16, f16 or -1"):
        dtypes("bfloat16", "int32")


def test_slices_by_hand(runtime):
    """Two key heads of 2, four value heads of 3, on rank 1 of 2."""
    heads = LayerHeads(2, 4, 2, 3)

    def ranges(weight, order="interleaved"):
        axis, slices = weight_slices(runtime, heads, weight, 2, 1, order)
        return axis, [(s.start, s.stop) for s in slices]

    # q 0..4, k 4..8, v 8..20, z 20..32
    assert ranges("in_proj_qkvz", "flat") == (0, [(2, 4), (6, 8), (14, 20), (26, 32)])
    assert ranges("in_proj_qkvz") == (0, [(16, 32)])
    assert ranges("in_proj_ba", "flat") == (0, [(2, 4), (6, 8)])
    assert ranges("in_proj_ba") == (0, [(4, 8)])
    assert ranges("in_proj_qkv") == ranges("conv1d") == (0, [(2, 4), (6, 8), (14, 20)])
    assert ranges("in_proj_z") == (0, [(6, 12)])
    for weight in ("A_log", "dt_bias", "in_proj_a", "in_proj_b"):
        assert ranges(weight) == (0, [(2, 4)])
    assert ranges("norm") == (0, [(0, 3)])
    assert ranges("out_proj") == (1, [(6, 12)])
    with pytest.raises(GdnError, match="bias: no weight of the layer") as caught:
        ranges("bias")
    assert caught.value.status == "NOT_FOUND"
    with pytest.raises(GdnError, match="rank: expected 0 to 1, got 2"):
        weight_slices(runtime, heads, "A_log", 2, 2)


@pytest.mark.parametrize("order", ["interleaved", "flat"])
@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_every_row_is_on_one_rank(runtime, tp, order):
    sizes = {"in_proj_qkvz": 3072, "in_proj_ba": 32, "in_proj_qkv": 2048, "in_proj_z": 1024}
    sizes |= {"conv1d": 2048, "A_log": 16, "out_proj": 1024}
    for weight, size in sizes.items():
        counted = np.zeros(size, int)
        for rank in range(tp):
            for part in weight_slices(runtime, HEADS, weight, tp, rank, order)[1]:
                counted[part] += 1
        assert (counted == 1).all(), weight


def run_core(runtime, kernels, layout, weights, hidden) -> np.ndarray:
    """Projections in NumPy, then the core over two prompts and a decode step."""
    runs = []
    heads = len(weights["A_log"])
    channels = len(weights["conv1d.weight"])
    conv = np.zeros((4, channels, 3), np.float32)
    state = np.zeros((4, heads, 64, 64), np.float32)
    layer = GDNLayer(
        kernels,
        conv_weight=weights["conv1d.weight"][:, 0],
        A_log=weights["A_log"],
        dt_bias=weights["dt_bias"],
        conv_pool=Pool(conv),
        state_pool=Pool(state),
    )
    names = {"qkv": "in_proj_qkv", "b": "in_proj_b", "a": "in_proj_a"}
    if layout != "split":
        names = {"qkvz": "in_proj_qkvz", "ba": "in_proj_ba"}
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=4, max_num_tokens=128)
    done = np.zeros(2, np.int32)
    first = 0
    for lengths in (LENGTHS, (1, 1)):
        tokens = sum(lengths)
        done += np.array(lengths, np.int32)
        common = CommonAttentionMetadata(
            query_start_loc=np.array([0, lengths[0], tokens], np.int32),
            seq_lens=done,
            num_reqs=2,
            num_actual_tokens=tokens,
            block_table_tensor=np.array([[1], [3]], np.int32),
        )
        rows = hidden[first : first + tokens]
        first += tokens
        # One product per output: a matrix product may sum in another order on a part.
        inputs = {
            ours: np.einsum("th,oh->to", rows, weights[f"{name}.weight"], optimize=False)
            for ours, name in names.items()
        }
        core = np.empty((tokens, heads, 64), np.float32)
        layer.forward(builder.build(0, common), **inputs, core=core)
        runs.append(core)
    return np.concatenate(runs)


@pytest.mark.parametrize("layout", ["interleaved", "flat", "split"])
def test_ranks_together_are_the_layer(runtime, tool, tmp_path, layout):
    path = compile_image(tool, tmp_path, f"--layout={layout}", "--outputs=core", "--has-initial")
    kernels = layer_kernels(runtime.device(num_workers=2), runtime.image(path))
    rng = np.random.default_rng(9)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    weights = {
        "in_proj_qkvz.weight": normal(3072, HIDDEN),
        "in_proj_ba.weight": normal(32, HIDDEN),
        "in_proj_qkv.weight": normal(2048, HIDDEN),
        "in_proj_b.weight": normal(16, HIDDEN),
        "in_proj_a.weight": normal(16, HIDDEN),
        "conv1d.weight": normal(2048, 1, 4) * 0.5,
        "A_log": np.log(rng.uniform(1, 16, 16)).astype(np.float32),
        "dt_bias": normal(16),
        "norm.weight": normal(64),
        "out_proj.weight": normal(HIDDEN, 1024),
    }
    hidden = normal(sum(LENGTHS) + 2, HIDDEN)
    whole = run_core(runtime, kernels, layout, weights, hidden)
    assert np.isfinite(whole).all() and np.abs(whole).max() > 0.01
    order = "interleaved" if layout == "interleaved" else "flat"
    for tp in (2, 4, 8):
        ranks = []
        for rank in range(tp):
            share = shard_weights(runtime, HEADS, weights, tp, rank, order)
            assert share["norm.weight"].shape == (64,)
            assert share["out_proj.weight"].shape == (HIDDEN, 1024 // tp)
            ranks.append(run_core(runtime, kernels, layout, share, hidden))
        assert np.concatenate(ranks, axis=1).tobytes() == whole.tobytes(), f"tp {tp}"
