# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kimi Delta Attention in vLLM: the layer's kernels over metadata in vLLM's form and states in its
pages on this CPU, step after step against float64, and layers that have no kernels. Arrays are
NumPy's: neither vLLM nor PyTorch is needed."""

import numpy as np
import pytest
import vllm_kinds
from vllm_kinds import KDA, make_kernels
from vllm_metadata import i32, make_metadata

from gdn.integrations.pool_options import PoolOptions
from gdn.integrations.vllm.kda_tokens import kda_tokens
from gdn.integrations.vllm.layer_core import LayerCore
from gdn.integrations.vllm.steps import runs_of
from gdn.integrations.vllm.warm_up import warm_up_runs
from gdn.reference import Layer, evaluate, is_live

H, D, BLOCKS, COLUMNS = 2, 16, 14, 3
CHANNELS = 3 * H * D
DRAFTED = KDA._replace(num_speculative_tokens=COLUMNS - 1)
# By what is unlike KDA's softplus in f32: the kind, and how far results may be off.
KINDS = {
    "softplus": (DRAFTED, 2e-4),
    "bounded": (DRAFTED._replace(decay_bound=-5.0), 2e-4),
    # As models are served, with f16 for bf16, which NumPy lacks.
    "short": (
        DRAFTED._replace(
            io="float16", conv_state="float16", norm_weight="float16", conv_weight="float32"
        ),
        2e-2,
    ),
}
# One behind the other: sequences go on in the blocks in which they have been, and new ones begin in
# blocks of others.
STEPS = {
    "prompts": make_metadata([7, 70, 3], [[5, 0, 0], [2, 0, 0], [9, 0, 0]], initial=[False] * 3),
    "decode beside pieces of prompts": make_metadata(
        [1, 1, 66, 2], [[5, 0, 0], [9, 0, 0], [2, 0, 0], [7, 0, 0]],
        initial=[True, True, True, False],
    ),
    "decode": make_metadata([1, 1, 1], [[2, 0, 0], [5, 0, 0], [7, 0, 0]]),
    "padded decode": make_metadata([1, 1, 1], [[7, 0, 0], [0, 0, 0], [2, 0, 0]], padding=2),
    "drafts": make_metadata(
        [3, 1, 2], [[5, 4, 3], [7, 6, 1], [2, 8, 9]], drafts=[True] * 3, accepted=[1, 1, 1]
    ),
    "drafts between prompts": make_metadata(
        [4, 3, 5, 2], [[10, 0, 0], [5, 4, 3], [11, 0, 0], [2, 8, 9]],
        drafts=[False, True, False, True], accepted=[1, 2, 1, 2],
        initial=[False, True, False, True],
    ),
    "a new sequence in an old block": make_metadata(
        [5, 2], [[2, 0, 0], [10, 0, 0]], initial=[False, True]
    ),
}  # fmt: skip


def normal(rng, *shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


def weights_of(rng, kind):
    return {
        "conv_weight": 0.5 * normal(rng, CHANNELS, 4),
        "A_log": np.log(rng.uniform(1, 16, H)).astype(np.float32),
        "dt_bias": normal(rng, H, D) - 3,
        "norm_weight": normal(rng, D, dtype=kind.io),
        "norm_constants": np.array([kind.norm_eps, 0], np.float32),
    }


class Pages:
    """Blocks as vLLM binds them, with other bytes behind the window and the state of each. All that
    no step has written is NaN."""

    def __init__(self, kind):
        window, state = (3 + COLUMNS - 1, CHANNELS), (H, D, D)
        sizes = [int(np.prod(window)) * np.dtype(kind.io).itemsize, int(np.prod(state)) * 4]
        self.size = sum(sizes)
        self.bytes = np.full((BLOCKS, self.size + 64), 255, np.uint8)
        self.windows = self._view(0, sizes[0], kind.io, window)
        self.states = self._view(sizes[0], sizes[1], "float32", state)

    def _view(self, offset, size, dtype, shape):
        array = self.bytes[:, offset : offset + size].view(dtype).reshape(BLOCKS, *shape)
        assert np.shares_memory(array, self.bytes)
        return array

    def pools(self):
        windows = self.windows.transpose(0, 2, 1)
        return {"conv_pool": windows[..., :3], "windows": windows, "state_pool": self.states}


@pytest.fixture(scope="module", params=KINDS)
def kernels(request, build_dir, tool, tmp_path_factory):
    kind, limit = KINDS[request.param]
    return kind, limit, make_kernels(kind, build_dir, tool, tmp_path_factory.mktemp("image"))


def tokens_of(rng, kind, count):
    """What projections give, parts of wide rows behind one another, by the names of kernels."""
    wide = normal(rng, count, 4 * H * D + D + H, dtype=kind.io)
    *heads, _ = np.split(wide, np.arange(1, 5) * H * D, axis=1)
    q, k, v, gate = (part.reshape(count, H, D) for part in heads)
    beta, decay = wide[:, -H:], normal(rng, count, H, D, dtype=kind.io)
    tokens = kda_tokens(wide, decay, gate, beta, D)
    wanted = {"q": q, "k": k, "v": v, "z": gate, "b": beta, "a": decay}
    assert tokens.keys() == wanted.keys()
    for name, array in wanted.items():
        assert np.array_equal(tokens[name], array)
        assert np.shares_memory(tokens[name], decay if name == "a" else wide)
    return tokens


def test_steps_against_float64(kernels):
    kind, limit, made = kernels
    rng = np.random.default_rng(7)
    weights, pages = weights_of(rng, kind), Pages(kind)
    core = LayerCore(made, weights, np.ones(8, bool))
    constants = Layer("separate", D, D, "sigmoid", norm_eps=1e-5, decay_bound=kind.decay_bound)
    for step, metadata in STEPS.items():
        size = metadata.num_actual_tokens
        tokens = tokens_of(rng, kind, size)
        pools = pages.pools()
        expected = {name: pools[name].astype(np.float64) for name in ("conv_pool", "state_pool")}
        want, first, written = np.zeros((size, H, D)), 0, set()
        for count, slots, has_drafts, initial, accepted in metadata.sequences:
            part, first = slice(first, first + count), first + count
            rows = {"cu_seqlens": i32([0, count])}
            if has_drafts:
                rows |= {"token_slots": slots[None], "num_accepted": i32([accepted])}
            else:
                rows |= {"slots": slots[:1], "has_initial": np.array([initial])}
            given = {name: array[part] for name, array in tokens.items()}
            result = evaluate(constants, given | weights | expected | rows)
            want[part] = result["out"]
            expected = {name: result[name] for name in expected}
            written |= set(slots[: count if has_drafts else 1].tolist())
        before = pages.bytes.copy()
        out = np.zeros((size, H, D), kind.io)
        core.run(runs_of(metadata, np.ascontiguousarray), tokens, pools, out)
        options = {"atol": limit, "rtol": limit, "err_msg": step}
        np.testing.assert_allclose(out, want, **options)
        for name, pool in expected.items():
            np.testing.assert_allclose(pools[name], pool, equal_nan=True, **options)
        # Padding, blocks of nobody, and what lies behind a block keep their bytes.
        kept = [slot for slot in range(BLOCKS) if slot not in written or slot == 0]
        assert all(is_live(slot, BLOCKS, 0) for slot in written - {0})
        assert np.array_equal(pages.bytes[kept], before[kept])
        assert (pages.bytes[:, pages.size :] == 255).all()


def test_pieces_of_a_prompt(kernels):
    """Give what the whole prompt gives, and the same state and window."""
    kind, limit, made = kernels
    rng = np.random.default_rng(8)
    weights, size = weights_of(rng, kind), 150
    tokens, whole = tokens_of(rng, kind, size), Pages(kind)
    core = LayerCore(made, weights, np.ones(8, bool))

    def run(pages, first, last):
        step = make_metadata([last - first], [[3, 0, 0]], initial=[first > 0])
        part = {name: array[first:last] for name, array in tokens.items()}
        out = np.zeros((last - first, H, D), kind.io)
        core.run(runs_of(step, np.ascontiguousarray), part, pages.pools(), out)
        return out

    want, pieces = run(whole, 0, size), Pages(kind)
    ends = [0, 64, 66, 67, 68, 130, size]
    got = np.concatenate([run(pieces, *ends[i : i + 2]) for i in range(len(ends) - 1)])
    np.testing.assert_allclose(got, want, atol=limit, rtol=limit)
    np.testing.assert_allclose(pieces.states[3], whole.states[3], atol=limit, rtol=limit)
    assert np.array_equal(pieces.windows[3, :3], whole.windows[3, :3])


def test_warming_up(kernels):
    """All entries run on padding."""
    kind, _, made = kernels
    rng = np.random.default_rng(9)
    pages, size = Pages(kind), 12
    core = LayerCore(made, weights_of(rng, kind), np.ones(12, bool))
    before, out = pages.bytes.copy(), np.ones((size, H, D), kind.io)

    def array(values):
        return np.array(values, bool if values[0] is False else np.int32)

    for launches in warm_up_runs(size, 4, COLUMNS, array):
        core.run(launches, tokens_of(rng, kind, size), pages.pools(), out)
    assert not out.any() and np.array_equal(pages.bytes, before)


REFUSED = vllm_kinds.REFUSED | {
    "platform": ({"platform": "rocm"}, "platform: expected cuda, found rocm"),
    "planes": ({"pool_options": PoolOptions("i8x2")}, "gdn_state: expected None, found i8x2"),
    "deferred": (
        {"pool_options": PoolOptions(deferred_writes=16)},
        "gdn_deferred_writes: expected 0, found 16",
    ),
    "gate": ({"gate": "silu"}, "o_norm.activation: expected sigmoid, found silu"),
    "heads": ({"key_dim": 24, "value_dim": 24}, "head_k_dim: expected a multiple of 16"),
}


@pytest.mark.parametrize("change", REFUSED)
def test_layers_without_kernels(change):
    vllm_kinds.check_refusal(KDA, *REFUSED[change])


def test_layers_with_kernels():
    served = KDA._replace(
        io="bfloat16", conv_state="bfloat16", norm_weight="bfloat16", conv_weight="float32"
    )
    assert served.find_refusal() is None
    assert served.options() == {
        "io": "bf16",
        "state": "f32",
        "layout": "separate",
        "outputs": "norm",
        "conv_weight": "f32",
    }
    assert served.compile_options == ("--norm-constants",)
    bounded = served._replace(decay_bound=-5.0).config()
    assert bounded["linear_attn_config"]["gate_lower_bound"] == -5.0
    assert "conv_weight" not in served._replace(conv_weight="bfloat16").options()
    assert DRAFTED._replace(cache_mode="align").copies_windows
