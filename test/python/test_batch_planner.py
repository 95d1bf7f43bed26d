# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps whose lengths, slots and counts are on the device: the plan is that of the builder, the
layer gives what the float64 model gives, and what is out of range is skipped."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from gdn_layer_model import compile_image, relative_error
from test_gdn_layer import FULL, ROWS, SLOTS, Fixture, S
from test_mixed_batch import draw_step

from gdn import GdnError, Runtime
from gdn.layers.attention import (
    BatchPlanner,
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
    layer_kernels,
)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def loaded(runtime, tool, tmp_path_factory):
    """The kernels of a layer, and the plan."""
    folder = tmp_path_factory.mktemp("planned")
    image = runtime.image(compile_image(tool, folder, *FULL, "--verify=slots", "--mixed-batch"))
    device = runtime.device(num_workers=2)
    return SimpleNamespace(
        kernels=layer_kernels(device, image), plan=device.kernel(image, "plan"), device=device
    )


@pytest.fixture(scope="module")
def plans(runtime, tool, tmp_path_factory):
    """The entry `plan` of each kind of verify."""
    device, folder = runtime.device(num_workers=2), tmp_path_factory.mktemp("plans")
    made = {}
    for kind in ("slots", "tree", "lazy", "buffer"):
        options = [*FULL, f"--verify={kind}", "--mixed-batch", "--only=plan"]
        (folder / kind).mkdir()
        path = compile_image(tool, folder / kind, *options)
        made[kind] = device.kernel(runtime.image(path), "plan")
    return made


class Planned:
    """Builds metadata by a plan: arrays of `rows` sequences, of which the last have no tokens."""

    def __init__(self, plan, rows=ROWS, most=0, kind="slots"):
        self.planner = BatchPlanner(
            plan, max_num_seqs=rows, num_speculative_tokens=S, verify_states=kind
        )
        self.rows, self.most = rows, most

    def build(self, _, common, accepted, drafts, **options):
        self.arrays = arrays_of(common, accepted, drafts, self.rows)
        tables = {}
        for name in ("token_slots", "parents"):
            if (table := getattr(common, name)) is not None:
                tables[name] = padded(table, 3, self.rows)
        return self.planner.plan(
            *self.arrays,
            num_tokens=common.num_actual_tokens,
            max_num_prefills=self.most,
            **tables,
        )


def padded(values, fill, size):
    made = np.full((size, *values.shape[1:]), fill, np.int32)
    made[: len(values)] = values
    return made


def arrays_of(common, accepted, drafts, rows):
    """Padded with what an engine may leave there."""
    if drafts is None:
        drafts = np.full(common.num_reqs, -1, np.int32)
    last = common.query_start_loc[-1]
    return (
        padded(common.query_start_loc, last, rows + 1),
        padded(common.seq_lens, 7, rows),
        padded(common.block_table_tensor, 3, rows),
        padded(drafts, 1, rows),
        padded(accepted, 2, rows),
    )


def array_of(field, kind):
    pointer = ctypes.cast(field.data, ctypes.POINTER(kind))
    return np.ctypeslib.as_array(pointer, (field.size,)).copy()


INTS, FLAGS = ctypes.c_int32, ctypes.c_uint8


def lists_of(raw, tokens):
    """What prefill reads of the first `tokens`, element by element."""
    taken = array_of(raw.non_spec_is_prefill, FLAGS)
    starts = array_of(raw.non_spec_query_start_loc, INTS)
    read = array_of(raw.non_spec_read_indices, INTS)
    write = array_of(raw.non_spec_state_indices, INTS)
    initial = array_of(raw.run_has_initial, FLAGS)
    return [
        (
            starts[e],
            min(starts[e + 1], tokens),
            bool(taken[e]),
            bool(initial[e]),
            *((read[e], write[e]) if taken[e] else ()),
        )
        for e in range(len(taken))
        if starts[e] < min(starts[e + 1], tokens)
    ]


def verified_of(raw, rows, kind):
    """What verify reads of sequences that it takes."""
    takes = array_of(raw.run_is_prefill, FLAGS)[:rows] == 0
    starts = array_of(raw.spec_query_start_loc, INTS)[: rows + 1]
    takes &= np.diff(starts) > 0
    found = {"starts": starts.tolist(), "takes": takes.tolist()}
    if kind in ("slots", "lazy"):
        found["accepted"] = array_of(raw.num_accepted_tokens, INTS)[:rows][takes].tolist()
    if kind != "slots":
        found["slots"] = array_of(raw.spec_slots, INTS)[:rows][takes].tolist()
    return found


def commits_of(raw):
    """Slots and counts of what commits, and the first slot of its tokens."""
    slots, counts = array_of(raw.commit_slots, INTS), array_of(raw.commit_num_accepted, INTS)
    commits = np.flatnonzero(counts)
    assert (slots[commits] >= 0).all()
    found = list(zip(slots[commits].tolist(), counts[commits].tolist(), strict=True))
    if raw.commit_token_slots.data:
        table = array_of(raw.commit_token_slots, INTS).reshape(-1, S + 1)
        found = [(*each, *table[i]) for each, i in zip(found, commits, strict=True)]
    return found


@pytest.mark.parametrize("kind", ["slots", "tree", "lazy", "buffer"])
@pytest.mark.parametrize("seed", range(4))
def test_the_plan_is_that_of_the_builder(runtime, plans, seed, kind):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 40))
    builder = GDNAttentionMetadataBuilder.from_options(
        runtime,
        max_num_seqs=rows,
        max_num_tokens=4096,
        num_speculative_tokens=S,
        mixed_batch=True,
        verify_states=kind,
    )
    planned = Planned(plans[kind], rows, kind=kind)
    waits = kind in ("lazy", "buffer")
    for _ in range(20):
        n = int(rng.integers(0, rows + 1))
        kinds = rng.integers(0, 4, n)  # empty, decode, verified, prefill
        drafts = np.where(kinds == 2, rng.integers(0, S + 1, n), -1).astype(np.int32)
        lengths = np.select([kinds == 1, kinds == 2, kinds == 3], [1, drafts + 1, 30], 0)
        lengths = np.where(kinds == 3, rng.integers(1, 60, n), lengths)
        before = np.where((kinds == 3) & (rng.random(n) < 0.5), 0, rng.integers(1, 50, n))
        table = rng.integers(0, 99, (n, S + 1)).astype(np.int32)
        common = CommonAttentionMetadata(
            query_start_loc=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
            seq_lens=(before + lengths).astype(np.int32),
            num_reqs=n,
            num_actual_tokens=int(lengths.sum()) + 3,
            block_table_tensor=table,
            token_slots=table + 100 if kind in ("tree", "buffer") else None,
            parents=np.full((n, S + 1), -1, np.int32) if kind == "tree" else None,
        )
        accepted = rng.integers(0 if waits else 1, S + 2, n).astype(np.int32)
        expected = builder.build(0, common, accepted, drafts).raw
        found = planned.build(0, common, accepted, drafts).raw
        assert found.on_device == 1
        tokens = int(lengths.sum())
        assert lists_of(found, tokens) == lists_of(expected, tokens)
        live = int(np.flatnonzero(lengths)[-1]) + 1 if lengths.any() else 0
        assert verified_of(found, live, kind) == verified_of(expected, live, kind)
        if waits:
            assert commits_of(found) == commits_of(expected)
        flags = array_of(found.run_is_prefill, FLAGS)
        assert flags[:n].tolist() == array_of(expected.run_is_prefill, FLAGS).tolist()
        assert not flags[n:].any()
        # Sequences behind the last one with tokens share the padding.
        starts = array_of(found.spec_query_start_loc, INTS)
        assert starts[-1] == tokens + (3 if live < rows else 0)
        shared = np.diff(starts)[live:]
        assert shared.max(initial=0) <= -(-3 // max(1, rows - live)) and shared.min(initial=0) >= 0


class PlannedFixture(Fixture):
    def __init__(self, runtime, loaded, seed, rows=ROWS, most=0):
        super().__init__(runtime, loaded.kernels, seed=seed, mixed_batch=True)
        self.builder = Planned(loaded.plan, rows, most)


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture(runtime, loaded, seed):
    layer = PlannedFixture(runtime, loaded, seed, rows=ROWS + seed)
    rng = np.random.default_rng(100 + seed)
    for _ in range(12):
        requests, lengths, drafts = draw_step(layer, rng)
        core, expected, _ = layer.step(requests, lengths, drafts, padding=int(rng.integers(3)))
        assert relative_error(core, expected) < 1e-5
        assert not core[sum(lengths) :].any()
        layer.check_states()


def test_few_prefills(runtime, loaded):
    layer = PlannedFixture(runtime, loaded, seed=5, rows=ROWS, most=1)
    none = np.full(3, -1, np.int32)
    for requests in ([0], [1], [2]):
        core, expected, m = layer.step(requests, [9], none[:1])
        assert relative_error(core, expected) < 1e-5
    core, expected, m = layer.step([0, 3, 2], [1, 40, 3], np.array([-1, -1, 2], np.int32))
    assert relative_error(core, expected) < 1e-5
    rows = [m.raw.runs[i].num_rows for i in range(m.raw.num_runs)]
    assert (rows, m.raw.num_expected_prefills) == ([ROWS, 3], 1)
    layer.check_states()


def corrupted(arrays, what):
    """Arrays in which sequence 1 of three has something out of range."""
    starts, lens, table, drafts, accepted = (array.copy() for array in arrays)
    if what == "slot":
        table[1] = SLOTS + 5
    elif what == "negative slot":
        table[1] = -7
    elif what == "count":
        accepted[1] = S + 2
    elif what == "no count":
        accepted[1] = 0
    elif what == "seq_lens":
        lens[1] = 1
    return starts, lens, table, drafts, accepted


WRONG = ["slot", "negative slot", "count", "no count", "seq_lens"]


@pytest.mark.parametrize("kind", ["prefill", "verified"])
@pytest.mark.parametrize("what", WRONG)
def test_out_of_range_is_skipped(runtime, loaded, kind, what):
    layer = PlannedFixture(runtime, loaded, seed=6, rows=3)
    layer.step([0, 1, 2], [5, 6, 7])
    planned = layer.builder
    original = planned.build

    def build(*arguments, **options):
        original(*arguments, **options)
        planned.arrays = corrupted(planned.arrays, what)
        return planned.planner.plan(*planned.arrays, num_tokens=arguments[1].num_actual_tokens)

    planned.build = build
    before = layer.state.copy(), layer.conv.copy()
    drafts = np.array([1, -1 if kind == "prefill" else 2, -1], np.int32)
    core, expected, _ = layer.step([0, 1, 2], [2, 3, 1], drafts)
    assert not core[2:5].any()
    expected[2:5] = 0
    assert relative_error(core, expected) < 1e-5
    own = layer.table[1]
    np.testing.assert_array_equal(layer.state[own], before[0][own])
    np.testing.assert_array_equal(layer.conv[own], before[1][own])


def test_what_ends_past_the_tokens_is_skipped(runtime, loaded):
    layer = PlannedFixture(runtime, loaded, seed=10, rows=4)
    layer.step([0, 1, 2], [5, 6, 7])
    planned = layer.builder
    original = planned.build

    def build(*arguments, **options):
        original(*arguments, **options)
        planned.arrays[0][2:] = 1 << 20
        return planned.planner.plan(*planned.arrays, num_tokens=arguments[1].num_actual_tokens)

    planned.build = build
    before = layer.state.copy()
    core, expected, _ = layer.step([0, 1, 2], [2, 3, 1])
    assert not core[2:].any()
    expected[2:] = 0
    assert relative_error(core, expected) < 1e-5
    for request in (1, 2):
        own = layer.table[request]
        np.testing.assert_array_equal(layer.state[own], before[own])


def test_starts_that_decrease_have_no_tokens(runtime, loaded):
    """Padding that an engine left at zero; a start past the tokens."""
    layer = PlannedFixture(runtime, loaded, seed=7, rows=4)
    planned = layer.builder
    original = planned.build

    def build(*arguments, **options):
        original(*arguments, **options)
        planned.arrays[0][3:] = [0, 0]
        return planned.planner.plan(*planned.arrays, num_tokens=arguments[1].num_actual_tokens)

    planned.build = build
    core, expected, _ = layer.step([1, 2], [4, 6], padding=2)
    assert relative_error(core, expected) < 1e-5
    assert not core[10:].any()
    layer.check_states()


def plan_of(planner, **changes):
    arrays = {
        "query_start_loc": np.array([0, 2, 3], np.int32),
        "seq_lens": np.array([2, 9], np.int32),
        "block_table": np.zeros((2, S + 1), np.int32),
        "num_decode_draft_tokens": np.full(2, -1, np.int32),
        "num_accepted_tokens": np.ones(2, np.int32),
        "num_tokens": 3,
    }
    return planner.plan(**arrays | changes)


def test_what_does_not_fit_is_refused(runtime, loaded, tool, tmp_path_factory):
    with pytest.raises(GdnError, match=r"NOT_FOUND.* expected the kernel plan \(--mixed-batch\)"):
        BatchPlanner(loaded.kernels["prefill"], max_num_seqs=4)
    with pytest.raises(GdnError, match="verify_states: expected slots for plan, got tree"):
        BatchPlanner(loaded.plan, max_num_seqs=4, verify_states="tree")
    with pytest.raises(GdnError, match="verify_states: expected slots for plan, got lazy"):
        BatchPlanner(loaded.plan, max_num_seqs=4, verify_states="lazy")
    planner = BatchPlanner(loaded.plan, max_num_seqs=2, num_speculative_tokens=S)
    assert plan_of(planner).raw.num_runs == 2
    with pytest.raises(GdnError, match="num_accepted_tokens: expected an array, got null"):
        plan_of(planner, num_accepted_tokens=None)
    with pytest.raises(GdnError, match=f"block_table: expected at least {S + 1} columns, got 1"):
        plan_of(planner, block_table=np.zeros((2, 1), np.int32))
    with pytest.raises(GdnError, match="max_num_prefills: expected 0 to 2, got 3"):
        plan_of(planner, max_num_prefills=3)
    with pytest.raises(ValueError, match="query_start_loc: expected 3 elements, got 2"):
        plan_of(planner, query_start_loc=np.zeros(2, np.int32))
    with pytest.raises(TypeError, match="num_decode_draft_tokens: expected one of int32"):
        plan_of(planner, num_decode_draft_tokens=np.zeros(2, np.int64))
    small = BatchPlanner(loaded.plan, max_num_seqs=1)
    with pytest.raises(GdnError, match="num_seqs: expected 0 to 1, got 2"):
        plan_of(small)


def test_kernels_without_the_parameters_are_refused(runtime, tool, tmp_path_factory):
    options = [option for option in FULL if option != "--has-initial"]
    path = compile_image(
        tool, tmp_path_factory.mktemp("less"), *options, "--verify=slots", "--mixed-batch"
    )
    device, image = runtime.device(num_workers=1), runtime.image(path)
    kernels, plan = layer_kernels(device, image), device.kernel(image, "plan")
    layer = PlannedFixture(runtime, SimpleNamespace(kernels=kernels, plan=plan), seed=8)
    with pytest.raises(GdnError, match=r"expected a parameter has_initial \(--has-initial\)"):
        layer.step([0], [3])
    assert np.isnan(layer.state).all()


def test_padding_without_sequences_is_zeros(runtime, loaded):
    layer = PlannedFixture(runtime, loaded, seed=9)
    layer.builder.rows = 0
    core, _, _ = layer.step([], [], padding=3)
    assert core.shape[0] == 3 and not core.any()


def test_a_batch_without_sequences(loaded):
    planner = BatchPlanner(loaded.plan, max_num_seqs=2, num_speculative_tokens=S)
    none = np.zeros(0, np.int32)
    table = np.zeros((0, S + 1), np.int32)
    for tokens in (0, 3):
        planned = planner.plan(np.zeros(1, np.int32), none, table, none, none, num_tokens=tokens)
        assert (planned.raw.num_runs, planned.raw.num_run_tokens) == (0, 0)
