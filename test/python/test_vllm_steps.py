# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches from metadata in vLLM's form, and the layer's kernels over them on this CPU, against
float64. Arrays are NumPy's: neither vLLM nor PyTorch is needed."""

import numpy as np
import pytest
import vllm_kinds
from vllm_metadata import i32, make_metadata

from gdn.integrations.vllm.layer_core import LayerCore
from gdn.integrations.vllm.steps import runs_of
from gdn.integrations.vllm.warm_up import warm_up_runs
from gdn.reference import Layer, evaluate

HK, HV, D, SLOTS, COLUMNS = 1, 2, 16, 40, 3
CHANNELS = 2 * HK * D + HV * D
KIND = vllm_kinds.KIND._replace(num_speculative_tokens=2)


def table_of(rows):
    """Slots of their own, in no order, for every sequence."""
    slots = np.random.default_rng(1).permutation(np.arange(1, SLOTS))
    return slots[: rows * COLUMNS].reshape(rows, COLUMNS)


def runs(metadata):
    return runs_of(metadata, np.ascontiguousarray)


STEPS = {
    "decode": make_metadata([1, 1, 1], table_of(3)),
    "padded decode": make_metadata([1, 1], [[5, 0, 0], [0, 0, 0]], padding=0),
    "prompts": make_metadata([7, 70, 3], table_of(3), initial=[False, True, False]),
    "mixed": make_metadata([1, 1, 66, 2], table_of(4), initial=[True, True, False, True]),
    "padding behind": make_metadata([1, 5, 4], table_of(3), padding=6),
    "drafts": make_metadata([3, 1, 2], table_of(3), drafts=[True] * 3, accepted=[1, 3, 2]),
    "drafts, padded": make_metadata(
        [3, 2, 0], [[4, 5, 6], [7, 8, 9], [0, 0, 0]], drafts=[True] * 3, accepted=[2, 1, 1],
        padding=1,
    ),
    "drafts ahead of prompts": make_metadata(
        [3, 2, 9, 1], table_of(4), drafts=[True, True, False, False], accepted=[2, 3, 1, 1]
    ),
    "drafts behind prompts": make_metadata(
        [9, 1, 3], table_of(3), drafts=[False, False, True], accepted=[1, 1, 2]
    ),
    "drafts between prompts": make_metadata(
        [4, 3, 5, 2], table_of(4), drafts=[False, True, False, True], accepted=[1, 3, 1, 1],
        initial=[False, True, True, True],
    ),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_each_token_is_in_one_launch(step):
    metadata = STEPS[step]
    tokens = np.arange(metadata.num_actual_tokens)
    taken = np.concatenate([tokens[run.tokens] for run in runs(metadata)])
    wanted = metadata.num_decode_tokens + metadata.num_prefill_tokens
    wanted += metadata.num_spec_decode_tokens
    assert set(range(wanted)) <= set(taken.tolist())
    assert len(set(taken.tolist())) == len(taken)


def test_the_kinds_of_launches():
    def entries(step):
        return [run.entry for run in runs(STEPS[step])]

    assert entries("decode") == ["decode"]
    assert entries("mixed") == ["decode", "prefill"]
    assert entries("drafts ahead of prompts") == ["verify", "prefill"]
    assert entries("drafts behind prompts") == ["verify", "prefill"]
    ranges = [isinstance(r.tokens, slice) for r in runs(STEPS["drafts behind prompts"])]
    assert ranges == [True, True]
    ranges = [isinstance(r.tokens, slice) for r in runs(STEPS["drafts between prompts"])]
    assert ranges == [False, False]


def test_sequences_without_tokens_among_those_that_decode():
    """They have no token that a decode could be given: prefill takes the step."""
    metadata = make_metadata([1, 0, 5], table_of(3))
    (run,) = runs(metadata)
    assert (run.entry, run.tokens) == ("prefill", slice(0, 6))
    assert run.rows["cu_seqlens"].tolist() == [0, 1, 1, 6]
    assert runs(make_metadata([0, 0], table_of(2))) == []


@pytest.fixture(scope="module", params=["flat", "split"])
def kernels(request, build_dir, tool, tmp_path_factory):
    kind = KIND._replace(layout=request.param)
    return kind, vllm_kinds.make_kernels(kind, build_dir, tool, tmp_path_factory.mktemp("image"))


@pytest.mark.parametrize("step", STEPS)
def test_steps_against_float64(kernels, step):
    """Slots that no sequence reads hold NaN, and so does padding's; others keep their bits."""
    kind, made = kernels
    rng = np.random.default_rng(2)
    metadata = STEPS[step]
    size = metadata.num_actual_tokens

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    weights = {
        "conv_weight": normal(CHANNELS, 4),
        "A_log": np.log(rng.uniform(1, 16, HV)).astype(np.float32),
        "dt_bias": normal(HV),
        "norm_weight": normal(D),
        "norm_constants": np.array([1e-6, 1], np.float32),
    }
    qkvz, ba = normal(size, CHANNELS + HV * D), normal(size, 2 * HV)
    if kind.has_norm:
        tokens = {"qkvz": qkvz, "ba": ba}
    else:
        tokens = {"qkv": qkvz[:, :CHANNELS], "b": ba[:, :HV], "a": ba[:, HV:]}
    # Windows have room for drafts, channels last, as the engine keeps them.
    windows, states = normal(SLOTS, 3 + COLUMNS - 1, CHANNELS), normal(SLOTS, HV, D, D)
    pools = {"conv_pool": windows.transpose(0, 2, 1)[..., :3], "state_pool": states}
    launches = runs(metadata)
    read = slots_that_are_read(launches)
    for slot in set(range(SLOTS)) - read:
        windows[slot] = states[slot] = np.nan
    expected = {name: pool.copy() for name, pool in pools.items()}
    layer = Layer(kind.layout, D, D)
    want, first = np.zeros((size, HV, D)), 0
    for count, slots, has_drafts, initial, accepted in metadata.sequences:
        part, first = slice(first, first + count), first + count
        if count == 0:
            continue
        rows = {"cu_seqlens": i32([0, count])}
        if has_drafts:
            rows |= {"token_slots": slots[None], "num_accepted": i32([accepted])}
        else:
            rows |= {"slots": slots[:1], "has_initial": np.array([initial])}
        given = {name: array[part] for name, array in tokens.items()}
        result = evaluate(layer, given | weights | expected | rows)
        want[part] = result["out" if kind.has_norm else "core"]
        expected = {name: result[name] for name in expected}

    out = np.zeros((size, HV, D), np.float32)
    core = LayerCore(made, weights, np.ones(8, bool))
    core.run(launches, tokens, pools, out)
    np.testing.assert_allclose(out, want, atol=2e-4)
    for name, pool in pools.items():
        np.testing.assert_allclose(pool, expected[name], atol=2e-4, equal_nan=True)


def test_windows_that_the_engine_copies(kernels):
    """Steps with drafts, after each of which vLLM copies what is accepted to blocks of other slots,
    give the bits of steps that stay in their slots. A window has vLLM's form."""
    kind, made = kernels
    rng = np.random.default_rng(3)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    weights = {
        "conv_weight": normal(CHANNELS, 4),
        "A_log": np.log(rng.uniform(1, 16, HV)).astype(np.float32),
        "dt_bias": normal(HV),
        "norm_weight": normal(D),
        "norm_constants": np.array([1e-6, 1], np.float32),
    }
    windows, states = normal(SLOTS, 3 + COLUMNS - 1, CHANNELS), normal(SLOTS, HV, D, D)
    # What drafts have not written holds nothing.
    windows[:, 3:] = np.nan
    slots = rng.permutation(np.arange(1, SLOTS))[: 4 * 3 * COLUMNS].reshape(4, 3, COLUMNS)
    stay = (windows.copy(), states.copy(), False)
    move = (windows.copy(), states.copy(), True)
    steps = (([3, 1, 2], [1, 1, 1]), ([2, 3, 3], [3, 1, 2]), ([1, 3, 2], [1, 3, 2]))
    results = []
    for step, (counts, accepted) in enumerate(steps):
        size = sum(counts)
        qkvz, ba = normal(size, CHANNELS + HV * D), normal(size, 2 * HV)
        tokens = {"qkvz": qkvz, "ba": ba}
        if not kind.has_norm:
            tokens = {"qkv": qkvz[:, :CHANNELS], "b": ba[:, :HV], "a": ba[:, HV:]}
        for conv, state, moves in (stay, move):
            table, read = slots[0], accepted
            if moves and step > 0:
                table, before, read = slots[step], slots[step - 1], [1] * 3
                for n, bias in enumerate(np.array(accepted) - 1):
                    conv[table[n, 0], : len(conv[0]) - bias] = conv[before[n, 0], bias:]
                    state[table[n, 0]] = state[before[n, bias]]
            last = [conv[row[m - 1], :3].copy() for row, m in zip(table, read, strict=True)]
            turned = conv.transpose(0, 2, 1)
            pools = {"conv_pool": turned[..., :3], "state_pool": state, "windows": turned}
            out = np.zeros((size, HV, D), np.float32)
            metadata = make_metadata(counts, table, drafts=[True] * 3, accepted=read)
            core = LayerCore(made, weights, np.ones(8, bool), joins_windows=moves)
            core.run(runs(metadata), tokens, pools, out)
            results.append(out)
            for n, count in enumerate(counts if moves else ()):
                rows = slice(sum(counts[:n]), sum(counts[: n + 1]))
                inputs = np.concatenate([last[n], qkvz[rows, :CHANNELS]])[1:]
                assert np.array_equal(conv[table[n, 0], : 2 + count], inputs)
                kept = (pool[table[n, :count]] for pool in (state, conv[:, :3]))
                was = (pool[slots[0][n, :count]] for pool in (stay[1], stay[0][:, :3]))
                assert all(np.array_equal(*pair) for pair in zip(kept, was, strict=True))
        assert np.isfinite(out).all() and np.array_equal(*results[-2:])


def test_warming_up(kernels):
    """All entries run, for one sequence to the most, and touch no slot."""
    _, made = kernels
    size = 21
    shapes = {"qkvz": CHANNELS + HV * D, "ba": 2 * HV, "qkv": CHANNELS, "b": HV, "a": HV}
    tokens = {name: np.zeros((size, width), np.float32) for name, width in shapes.items()}
    weights = {
        "conv_weight": np.zeros((CHANNELS, 4), np.float32),
        "A_log": np.zeros(HV, np.float32),
        "dt_bias": np.zeros(HV, np.float32),
        "norm_weight": np.zeros(D, np.float32),
        "norm_constants": np.array([1e-6, 1], np.float32),
    }
    pools = {
        "conv_pool": np.full((1, CHANNELS, 3), np.nan, np.float32),
        "state_pool": np.full((1, HV, D, D), np.nan, np.float32),
    }
    out, counts = np.ones((size, HV, D), np.float32), []
    core = LayerCore(made, weights, np.ones(12, bool))

    def array(values):
        return np.array(values, bool if values[0] is False else np.int32)

    for launches in warm_up_runs(size, 12, COLUMNS, array):
        core.run(launches, tokens, pools, out)
        counts.append([(run.entry, len(next(iter(run.rows.values())))) for run in launches])
    assert not out.any()
    assert [step[0] for step in counts] == [("decode", n) for n in (1, 2, 4, 8, 12)]
    assert [len(step) for step in counts] == [3, 3, 3, 2, 2]


def slots_that_are_read(launches):
    read = set()
    for run in launches:
        rows = run.rows
        if run.entry == "verify":
            chosen = zip(rows["token_slots"], rows["num_accepted"], strict=True)
            read |= {int(slots[count - 1]) for slots, count in chosen}
        else:
            initial = rows.get("has_initial", np.ones(len(rows["slots"]), bool))
            read |= set(rows["slots"][initial].tolist())
    return read - {0}


REFUSED = vllm_kinds.REFUSED | {
    "platform": ({"platform": "cpu"}, "platform: expected cuda, found cpu"),
    "activation": ({"activation": "gelu"}, "activation: expected silu, found gelu"),
    "rounding": ({"rounds_at_random": True}, "enable_stochastic_rounding: expected False"),
    "heads": ({"value_dim": 20}, "head_v_dim: expected a multiple of 16, found 20"),
    "heads of prefill": ({"key_dim": 24}, "head_k_dim: expected a multiple of 16, found 24"),
}


@pytest.mark.parametrize("change", REFUSED)
def test_layers_without_kernels(change):
    vllm_kinds.check_refusal(KIND, *REFUSED[change])


def test_layers_with_kernels():
    aligned = KIND._replace(cache_mode="align")
    assert aligned.find_refusal() is None and aligned.copies_windows
    aligned = aligned._replace(num_speculative_tokens=0)
    assert aligned.find_refusal() is None and not aligned.copies_windows
    assert not KIND.copies_windows
    # Without the norm its weight is of no interest.
    assert KIND._replace(layout="split", norm_weight="float16").find_refusal() is None
    assert KIND.options()["outputs"] == "norm"
    assert KIND._replace(layout="split").options()["outputs"] == "core"
    assert KIND._replace(layout="interleaved").config()["model_type"] == "qwen3_next"
