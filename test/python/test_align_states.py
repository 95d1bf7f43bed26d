# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Block tables of mode align: which states move between columns ahead of a step and behind it,
by hand, and requests that are served so against float64."""

import numpy as np
import pytest
from gdn_layer_model import CoreModel, compile_image, make_inputs, make_weights, relative_error

from gdn import GdnError, Pool, Runtime, StatePool, StatePoolShape
from gdn.layers.attention import (
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
    GDNLayer,
    layer_kernels,
)

BLOCK, S = 4, 2
TABLE = np.array([[10, 11, 12, 13, 14, 15]], np.int32)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def kernels(runtime, tool, tmp_path_factory):
    options = ("--layout=split", "--outputs=core", "--write-slots", "--has-initial")
    path = compile_image(tool, tmp_path_factory.mktemp("layer"), *options, "--verify=slots")
    return layer_kernels(runtime.device(num_workers=2), runtime.image(path))


def make_builder(runtime, num_spec=0, mode="align", states="slots"):
    return GDNAttentionMetadataBuilder.from_options(
        runtime,
        max_num_seqs=4,
        max_num_tokens=64,
        num_speculative_tokens=num_spec,
        mamba_cache_mode=mode,
        block_size=BLOCK,
        verify_states=states,
    )


def step_of(done: int, tokens: int, table=TABLE) -> CommonAttentionMetadata:
    """One request with `done` tokens before the step."""
    return CommonAttentionMetadata(
        query_start_loc=np.array([0, tokens], np.int32),
        seq_lens=np.array([done + tokens], np.int32),
        num_reqs=1,
        num_actual_tokens=tokens,
        block_table_tensor=table,
    )


@pytest.mark.parametrize(
    "done, tokens, column, moves, after",
    [
        (0, 3, -1, ([], []), 0),  # a new request
        (3, 1, 0, ([], []), 0),  # the block becomes full
        (4, 1, 0, ([10], [11]), 1),  # and the next one begins
        (4, 7, 0, ([10], [12]), 2),  # a piece that passes a block
        (8, 2, -1, ([11], [12]), 2),  # behind a prefix from a cache
        (8, 0, 1, ([], []), 1),  # no token, no move
    ],
)
def test_before_a_step(runtime, done, tokens, column, moves, after):
    columns = np.array([column], np.int32)
    assert make_builder(runtime).align_states_before(step_of(done, tokens), columns) == moves
    assert columns == [after]


@pytest.mark.parametrize(
    "done, tokens, column, accepted, moves, after, count",
    [
        (4, 3, 0, 1, ([10], [11]), 1, 1),
        (5, 3, 0, 2, ([], []), 1, 1),  # the state after the second token is there already
        (6, 3, 0, 3, ([], []), 2, 1),  # so is that after the third
        (4, 1, 1, 2, ([], []), 1, 2),  # the same block: the count holds
        (8, 3, 1, 3, ([13], [12]), 2, 1),
    ],
)
def test_counts_before_a_step(runtime, done, tokens, column, accepted, moves, after, count):
    columns, counts = np.array([column], np.int32), np.array([accepted], np.int32)
    builder = make_builder(runtime, S)
    assert builder.align_states_before(step_of(done, tokens), columns, counts) == moves
    assert (columns, counts) == ([after], [count])


@pytest.mark.parametrize(
    "done, drafts, column, accepted, moves, count",
    [
        (3, 2, 1, 1, ([11], [10]), 1),  # the first token fills the block
        (3, 2, 1, 3, ([11], [10]), 3),  # others stand behind it
        (1, 2, 0, 2, ([], []), 2),  # not full yet
        (5, 2, 1, 3, ([13], [11]), 1),  # the last draft fills it, in whose column states begin
        (2, 0, 0, 1, ([], []), 1),
    ],
)
def test_after_a_step(runtime, done, drafts, column, accepted, moves, count):
    columns, counts = np.array([column], np.int32), np.array([accepted], np.int32)
    given = step_of(done, 1 + drafts), columns, counts, np.array([drafts], np.int32)
    assert make_builder(runtime, S).align_states_after(*given) == moves
    assert (columns, counts) == ([column], [count])


def test_refusals(runtime):
    columns, counts = np.array([0], np.int32), np.array([3], np.int32)
    with pytest.raises(GdnError, match=r"mamba_cache_mode: expected align, .* got none"):
        make_builder(runtime, mode="none").align_states_before(step_of(4, 1), columns)
    builder = make_builder(runtime, S)
    with pytest.raises(GdnError, match="accepted: expected counts, got null"):
        builder.align_states_before(step_of(4, 1), columns)
    with pytest.raises(GdnError, match="accepted: expected 1 to 3 in row 0, got 4"):
        builder.align_states_before(step_of(4, 1), columns, np.array([4], np.int32))
    # Nothing has changed.
    assert (columns, counts) == ([0], [3])
    with pytest.raises(ValueError, match="columns: expected an int32 array of 1 elements"):
        builder.align_states_before(step_of(4, 1), np.array([0]), counts)
    with pytest.raises(GdnError, match="UNSUPPORTED: verify_states: expected slots"):
        lazy = make_builder(runtime, S, states="lazy")
        lazy.align_states_after(step_of(4, 1), columns, counts, np.array([0], np.int32))


def test_requests_with_drafts(runtime, kernels):
    """Steps of random drafts, right ones and wrong ones: outputs of right tokens, and what the
    columns of full blocks hold."""
    heads, dim, total = (1, 2), 64, 40
    rng = np.random.default_rng(0)
    weights = make_weights(rng, *heads)
    right, wrong = make_inputs(rng, total, *heads), make_inputs(rng, total, *heads)
    num_columns = total // BLOCK + 1 + S
    shape = StatePoolShape(1, num_columns, *heads, dim, dim, conv_dtype="float32")
    pool = StatePool(kernels["decode"]._device, shape)
    state, conv = pool.get_layer_state(0)
    builder = make_builder(runtime, S)
    layer = GDNLayer(
        kernels, builder=builder, **weights, conv_pool=Pool(conv), state_pool=Pool(state)
    )
    model = CoreModel(weights, 1)
    expected, states = [], []
    for t in range(total):
        expected += list(model.row(right, slice(t, t + 1), 0 if t else None, [0]))
        states.append(model.state[0].copy())
    table = np.array([pool.allocate(num_columns)], np.int32)
    columns, counts = np.array([-1], np.int32), np.array([1], np.int32)
    done, num_full = 0, 0
    while done < total - 1 - S:
        drafts = int(rng.integers(0, S + 1)) if done else -1
        tokens = 1 + drafts if done else 6
        accepted = 1 + int(rng.integers(0, drafts + 1)) if done else 1
        known = tokens if drafts < 0 else accepted
        inputs = {
            name: np.concatenate(
                [array[done : done + known], wrong[name][done + known : done + tokens]]
            )
            for name, array in right.items()
        }
        common, given = step_of(done, tokens, table), np.array([drafts], np.int32)
        builder.align_states_before(common, columns, counts, pool=pool)
        core = np.zeros((tokens, heads[1], dim), np.float32)
        layer.forward(builder.build(0, common, counts, given), **inputs, core=core)
        assert relative_error(core[:known], np.array(expected[done : done + known])) < 1e-5
        counts[0] = accepted
        builder.align_states_after(common, columns, counts, given, pool=pool)
        done += known
        for block in range(num_full, done // BLOCK):
            # The first step passes a block without keeping its state.
            if block > 0:
                kept = state[table[0, block]]
                assert relative_error(kept, states[(block + 1) * BLOCK - 1]) < 1e-5
        num_full = done // BLOCK
    assert num_full > 6
