# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The core of a layer over metadata, against a float64 model that knows none: decodes,
prefills, verified rows and mixtures of them, padding, profile runs, refusals."""

import gc
import weakref

import numpy as np
import pytest
from gdn_layer_model import CoreModel, compile_image, make_inputs, make_weights, relative_error

from gdn import GdnError, Pool, Runtime, StatePool, StatePoolShape
from gdn.layers.attention import (
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
    GDNLayer,
    Workspace,
    layer_kernels,
)

HK, HV, D, S, ROWS = 1, 2, 64, 2, 6
SLOTS = 1 + ROWS * (S + 1)
FULL = ("--layout=split", "--outputs=core", "--write-slots", "--has-initial")


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def kernels(runtime, tool, tmp_path_factory):
    path = compile_image(tool, tmp_path_factory.mktemp("layer"), *FULL, "--verify=slots")
    return layer_kernels(runtime.device(num_workers=2), runtime.image(path))


class Fixture:
    """A layer with pools, its model, and requests with S + 1 slots each."""

    def __init__(self, runtime, kernels, seed: int, num_spec: int = S, **options):
        self.rng = np.random.default_rng(seed)
        self.weights = make_weights(self.rng, HK, HV)
        channels = len(self.weights["conv_weight"])
        # Whatever is not read may be NaN.
        self.conv = np.full((SLOTS, channels, 3), np.nan, np.float32)
        self.state = np.full((SLOTS, HV, D, D), np.nan, np.float32)
        self.layer = GDNLayer(
            kernels,
            **self.weights,
            conv_pool=Pool(self.conv),
            state_pool=Pool(self.state),
        )
        self.model = CoreModel(self.weights, SLOTS)
        self.builder = GDNAttentionMetadataBuilder.from_options(
            runtime,
            max_num_seqs=ROWS,
            max_num_tokens=512,
            num_speculative_tokens=num_spec,
            **options,
        )
        self.num_spec = num_spec
        self.is_mixed = options.get("mixed_batch", False)
        self.table = 1 + np.arange(ROWS * (S + 1), dtype=np.int32).reshape(ROWS, S + 1)
        self.done = np.zeros(ROWS, np.int64)
        self.accepted = np.ones(ROWS, np.int32)

    def step(self, requests, lengths, drafts=None, padding=0, **build):
        """Runs a step on the layer and on the model; returns outputs and metadata."""
        lengths = np.asarray(lengths)
        tokens = int(lengths.sum())
        common = CommonAttentionMetadata(
            query_start_loc=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
            seq_lens=(self.done[requests] + lengths).astype(np.int32),
            num_reqs=len(requests),
            num_actual_tokens=tokens + padding,
            block_table_tensor=self.table[requests],
        )
        accepted = self.accepted[requests] if self.num_spec else None
        m = self.builder.build(0, common, accepted, drafts, **build)
        inputs = make_inputs(self.rng, 300, HK, HV)
        inputs = {name: array[: tokens + padding] for name, array in inputs.items()}
        core = np.full((tokens + padding, HV, D), np.nan, np.float32)
        self.layer.forward(m, **inputs, core=core)
        expected = np.zeros(core.shape)
        for i, request in enumerate(requests):
            part = slice(*common.query_start_loc[i : i + 2])
            if part.stop == part.start:
                continue
            start = None
            if self.done[request]:
                start = int(self.table[request, self.accepted[request] - 1])
            verified = drafts is not None and drafts[i] >= 0
            verified &= self.is_mixed or m.spec_sequence_masks is not None
            slots = list(self.table[request]) if verified else [int(self.table[request, 0])]
            expected[part] = self.model.row(inputs, part, start, slots)
            # Of what is verified the scheduler keeps a part, and guesses again.
            kept = int(self.rng.integers(1, lengths[i] + 1)) if verified else lengths[i]
            self.done[request] += kept
            self.accepted[request] = kept if verified else 1
        return core, expected, m

    def check_states(self):
        for request in np.flatnonzero(self.done):
            slot = self.table[request, self.accepted[request] - 1]
            assert relative_error(self.state[slot], self.model.state[slot]) < 1e-5
            assert relative_error(self.conv[slot], self.model.conv[slot]) < 1e-6


@pytest.fixture
def layer(runtime, kernels):
    return Fixture(runtime, kernels, seed=1)


@pytest.mark.parametrize("name", ["conv_pool", "state_pool"])
def test_pools_of_another_type(runtime, kernels, name):
    """A layer refuses them when it is made, whether it has arrays or a pool."""
    weights = make_weights(np.random.default_rng(0), HK, HV)
    channels = len(weights["conv_weight"])
    pools = {
        "conv_pool": np.zeros((SLOTS, channels, 3), np.float32),
        "state_pool": np.zeros((SLOTS, HV, D, D), np.float32),
    }
    pools[name] = pools[name].astype(np.float16)
    message = f"{name}: expected dtype f32, that of decode, got f16"
    with pytest.raises(GdnError, match=message):
        GDNLayer(kernels, **weights, **{n: Pool(array) for n, array in pools.items()})
    types = {n.replace("_pool", "_dtype"): str(array.dtype) for n, array in pools.items()}
    shape = StatePoolShape(1, SLOTS, HK, HV, D, D, **types)
    with pytest.raises(GdnError, match=message):
        GDNLayer(kernels, pool=StatePool(runtime.device(), shape), **weights)


def test_prefill_then_decode(layer):
    core, expected, m = layer.step([2, 0, 4], [5, 70, 1])
    assert (m.num_decodes, m.num_prefills) == (0, 3)
    assert relative_error(core, expected) < 1e-5
    for _ in range(3):
        core, expected, m = layer.step([0, 4, 2], [1, 1, 1])
        assert m.num_decodes == 3
        assert relative_error(core, expected) < 1e-5
    layer.check_states()


def test_first_token_alone(layer):
    """A request of one token counts as a prefill: it has no state to start from."""
    layer.step([0, 1], [3, 4])
    core, expected, m = layer.step([0, 5, 4, 1], [1, 1, 1, 1])
    assert (m.num_decodes, m.num_prefills) == (1, 3)
    assert relative_error(core, expected) < 1e-5
    layer.check_states()


def test_decodes_and_prefills_in_one_step(layer):
    layer.step([0, 1], [3, 4])
    core, expected, m = layer.step([1, 0, 2, 3], [1, 1, 40, 1])
    assert (m.num_decodes, m.num_prefills) == (2, 2)
    assert relative_error(core, expected) < 1e-5
    layer.check_states()


def test_prompt_in_pieces(layer):
    for length in (64, 1, 30, 65):
        core, expected, _ = layer.step([3], [length])
        assert relative_error(core, expected) < 1e-5
    layer.check_states()


def test_verified_rows_alone(layer):
    layer.step([0, 1], [3, 4])
    for drafts in ([2, 2], [2, 1], [0, 2]):
        core, expected, m = layer.step([1, 0], np.array(drafts) + 1, np.array(drafts))
        assert m.num_spec_decodes == 2
        assert relative_error(core, expected) < 1e-5
        layer.check_states()


def test_verified_and_other_rows(layer):
    """D1: every row gets the gates of its own tokens. D2: a row that was verified before and
    is not now starts from the state of its last right token."""
    layer.step([0, 1, 2, 3], [3, 4, 2, 9])
    layer.step([0, 1, 2], [3, 3, 3], np.array([2, 2, 2]))
    # A new prompt, verified rows on both sides of plain ones, a row without tokens.
    core, expected, m = layer.step(
        [0, 2, 3, 1, 5, 4], [3, 1, 1, 2, 0, 66], np.array([2, -1, -1, 1, -1, -1])
    )
    assert (m.num_spec_decodes, m.num_prefills) == (2, 3)
    assert relative_error(core, expected) < 1e-5
    layer.check_states()
    core, expected, m = layer.step([0, 1, 4], [1, 1, 1])
    assert m.num_decodes == 3
    assert relative_error(core, expected) < 1e-5
    layer.check_states()


def test_random_steps(runtime, kernels):
    for seed in range(12):
        layer = Fixture(runtime, kernels, seed)
        for _ in range(6):
            count = int(layer.rng.integers(1, ROWS + 1))
            requests = layer.rng.permutation(ROWS)[:count]
            drafts = np.where(
                (layer.rng.random(count) < 0.5) & (layer.done[requests] > 0),
                layer.rng.integers(0, S + 1, count),
                -1,
            )
            other = layer.rng.choice([0, 1, 1, 2, 7, 65], count)
            core, expected, _ = layer.step(
                requests, np.where(drafts >= 0, drafts + 1, other), drafts
            )
            assert relative_error(core, expected) < 1e-5, f"seed {seed}"
            layer.check_states()


def test_accepted_out_of_range_is_skipped(layer):
    """D5: zeros, and no state is written."""
    layer.step([0, 1], [3, 4])
    layer.step([0, 1], [3, 3], np.array([2, 2]))
    before = layer.state.copy()
    for counts, drafts in (([0, 4], None), ([4, 0], np.array([2, 2]))):
        layer.accepted[:2] = counts
        length = 1 if drafts is None else 3
        common = CommonAttentionMetadata(
            query_start_loc=np.array([0, length, 2 * length], np.int32),
            seq_lens=np.array([20, 20], np.int32),
            num_reqs=2,
            num_actual_tokens=2 * length,
            block_table_tensor=layer.table[[0, 1]],
        )
        m = layer.builder.build(0, common, layer.accepted[:2], drafts)
        core = np.full((2 * length, HV, D), np.nan, np.float32)
        layer.layer.forward(m, **make_inputs(layer.rng, 2 * length, HK, HV), core=core)
        assert (core == 0).all()
        assert np.array_equal(layer.state, before, equal_nan=True)


def test_padding_of_graphs(runtime, kernels):
    """Rows of padding are zero and change nothing, whatever slots they had before (D8)."""
    layer = Fixture(runtime, kernels, 3, use_full_cuda_graph=True)
    layer.step([0, 1, 2], [3, 4, 5])
    live = {int(s) for s in layer.table[[0, 1, 2], 0]}
    others = [s for s in range(SLOTS) if s not in live]
    before = layer.state[others].copy()
    core, expected, m = layer.step([0, 1, 2], [1, 1, 1], padding=3, num_padded_reqs=6)
    assert m.non_spec_state_indices_tensor[3:].tolist() == [0, 0, 0]
    assert relative_error(core[:3], expected[:3]) < 1e-5
    assert (core[3:] == 0).all()
    assert np.array_equal(layer.state[others], before, equal_nan=True)

    core, expected, m = layer.step([0, 1], [3, 2], np.array([2, 1]), padding=7, num_padded_reqs=4)
    assert m.spec_state_indices_tensor.shape == (4, S + 1)
    assert relative_error(core[:5], expected[:5]) < 1e-5
    assert (core[5:] == 0).all()
    layer.check_states()


def test_graph_and_eager_have_the_same_bits(runtime, kernels):
    results = []
    for graph in (False, True):
        layer = Fixture(runtime, kernels, 4, use_full_cuda_graph=graph)
        layer.step([0, 1], [3, 4])
        extra = {"padding": 2, "num_padded_reqs": 4} if graph else {}
        core, _, _ = layer.step([0, 1], [1, 1], **extra)
        results.append((core[:2], layer.state[layer.table[:2, 0]]))
    for eager, graph in zip(*results, strict=True):
        assert eager.tobytes() == graph.tobytes()


def test_rows_behind_the_step_are_zero(layer):
    """R45: the output is longer than the step."""
    core, expected, _ = layer.step([0], [5], padding=4)
    assert relative_error(core, expected) < 1e-5
    assert (core[5:] == 0).all()


def test_profile_run_touches_nothing(layer):
    """R50: without metadata the output is zero, and pools are as they were."""
    before = layer.state.copy()
    core = np.full((7, HV, D), np.nan, np.float32)
    for _ in range(2):
        layer.layer.forward(None, **make_inputs(layer.rng, 7, HK, HV), core=core)
        assert (core == 0).all()
    assert np.array_equal(layer.state, before, equal_nan=True)


def test_checkpoints_at_block_ends(runtime, tool, tmp_path):
    """Mode all: the states at the ends of blocks are where the table says."""
    path = compile_image(tool, tmp_path, *FULL, "--checkpoints")
    kernels = layer_kernels(runtime.device(), runtime.image(path))
    layer = Fixture(runtime, kernels, 5, num_spec=0, mamba_cache_mode="all", block_size=64)
    table = np.array([[3, 4, 5, 6]], np.int32)
    inputs = make_inputs(layer.rng, 200, HK, HV)

    def run(first: int, last: int) -> np.ndarray:
        common = CommonAttentionMetadata(
            query_start_loc=np.array([0, last - first], np.int32),
            seq_lens=np.array([last], np.int32),
            num_reqs=1,
            num_actual_tokens=last - first,
            block_table_tensor=table,
        )
        core = np.full((last - first, HV, D), np.nan, np.float32)
        part = {name: array[first:last] for name, array in inputs.items()}
        layer.layer.forward(layer.builder.build(0, common), **part, core=core)
        return core

    core = np.concatenate([run(0, 128), run(128, 199), run(199, 200)])
    for end, slot in ((64, 3), (128, 4), (192, 5), (200, 6)):
        expected = layer.model.row(inputs, slice(0, end), None, [1])
        assert relative_error(layer.state[slot], layer.model.state[1]) < 1e-5
        assert relative_error(layer.conv[slot], layer.model.conv[1]) < 1e-6
    assert relative_error(core, expected) < 1e-5


def test_pieces_that_begin_and_end_inside_blocks(runtime, tool, tmp_path):
    """Mode all, whatever the pieces: outputs are those of one pass, and the states at the ends of
    blocks, and after the last token, are where the table says. Debug checks look at every slot."""
    path = compile_image(tool, tmp_path, *FULL, "--checkpoints")
    kernels = layer_kernels(runtime.device(debug_checks=True), runtime.image(path))
    rng = np.random.default_rng(12)
    for seed in range(6):
        layer = Fixture(runtime, kernels, seed, num_spec=0, mamba_cache_mode="all", block_size=64)
        table = 1 + np.arange(12, dtype=np.int32).reshape(3, 4)
        lengths = rng.integers(130, 250, 3)
        inputs = [make_inputs(layer.rng, length, HK, HV) for length in lengths]
        expected = [
            layer.model.row(each, slice(0, int(length)), None, [1])
            for each, length in zip(inputs, lengths, strict=True)
        ]
        outputs = [np.zeros((length, HV, D), np.float32) for length in lengths]
        done = np.zeros(3, np.int64)
        while (done < lengths).any():
            running = np.flatnonzero(done < lengths)
            budget = rng.integers(1, (3, 40, 170)[seed % 3], len(running))
            pieces = np.minimum(budget, (lengths - done)[running])
            parts = [
                slice(done[r], done[r] + piece) for r, piece in zip(running, pieces, strict=True)
            ]
            common = CommonAttentionMetadata(
                query_start_loc=np.concatenate([[0], np.cumsum(pieces)]).astype(np.int32),
                seq_lens=(done[running] + pieces).astype(np.int32),
                num_reqs=len(running),
                num_actual_tokens=int(pieces.sum()),
                block_table_tensor=table[running],
            )
            step = {
                name: np.concatenate(
                    [inputs[r][name][part] for r, part in zip(running, parts, strict=True)]
                )
                for name in inputs[0]
            }
            core = np.full((common.num_actual_tokens, HV, D), np.nan, np.float32)
            m = layer.builder.build(0, common)
            crosses = [p.start % 64 != 0 and p.stop > (p.start // 64 + 1) * 64 for p in parts]
            rows = np.repeat(np.arange(len(parts)), 1 + np.array(crosses))
            assert (m.non_spec_rows is None) != any(crosses)
            assert not any(crosses) or list(m.non_spec_rows) == list(rows)
            layer.layer.forward(m, **step, core=core)
            for i, (r, part) in enumerate(zip(running, parts, strict=True)):
                outputs[r][part] = core[slice(*common.query_start_loc[i : i + 2])]
            done[running] += pieces
        for r, length in enumerate(lengths):
            assert relative_error(outputs[r], expected[r]) < 1e-5
            for end in {*range(64, length, 64), int(length)}:
                layer.model.row(inputs[r], slice(0, end), None, [1])
                slot = table[r, (end - 1) // 64]
                assert relative_error(layer.state[slot], layer.model.state[1]) < 1e-5
                assert relative_error(layer.conv[slot], layer.model.conv[1]) < 1e-6


def test_refusals(runtime, kernels, layer, tool, tmp_path):
    decode_only = {"decode": kernels["decode"]}
    lacking = Fixture(runtime, decode_only, 6)
    with pytest.raises(GdnError, match="prefill: the step has 1 rows of that kind") as caught:
        lacking.step([0], [5])
    assert caught.value.status == "UNSUPPORTED"
    with pytest.raises(GdnError, match="nonsense: no kernel of the layer takes this"):
        layer.layer.forward(None, nonsense=np.zeros((2, 2), np.float32))
    with pytest.raises(GdnError, match="state_pool: the argument is missing"):
        GDNLayer(kernels, **layer.weights, conv_pool=Pool(layer.conv))
    with pytest.raises(GdnError, match="weird: no kernel of the layer has this parameter"):
        GDNLayer(
            kernels,
            **layer.weights,
            conv_pool=Pool(layer.conv),
            state_pool=Pool(layer.state),
            weird=layer.state,
        )

    path = compile_image(tool, tmp_path, "--layout=split", "--outputs=core")
    plain = layer_kernels(runtime.device(), runtime.image(path))
    with pytest.raises(GdnError, match="has no state to start from, but the entry has no has_i"):
        Fixture(runtime, plain, 7).step([0], [5])
    moved = Fixture(runtime, plain, 8)
    moved.done[0], moved.accepted[0] = 5, 3
    with pytest.raises(GdnError, match="reads slot 3 and writes slot 1, but the entry has no"):
        moved.step([0], [1])


def test_rows_longer_than_verify_is_compiled_for(runtime, tool, tmp_path):
    """The kernel would skip such a row, so the layer refuses the step."""
    image = runtime.image(
        compile_image(tool, tmp_path, *FULL, "--verify=slots", "--verify-tokens=2")
    )
    assert image.attributes("verify")["gdn.max_tokens"] == "2"
    bounded = Fixture(runtime, layer_kernels(runtime.device(), image), 9)
    bounded.step([0, 1], [5, 4])
    message = (
        "verify: expected at most 2 tokens in a row, which verify.* is compiled for, got 3 in row 1"
    )
    state = bounded.state.copy()
    with pytest.raises(GdnError, match=message):
        bounded.step([0, 1], [2, 3], np.array([1, 2], np.int32))
    assert np.array_equal(bounded.state, state, equal_nan=True)


def test_one_workspace_for_all_layers(runtime, kernels):
    """Two layers take turns in it, and compute what each does in its own."""
    outputs = []
    for shares in (False, True):
        layers = [Fixture(runtime, kernels, seed) for seed in (11, 12)]
        if shares:
            workspace = Workspace([each.layer for each in layers], ROWS, 300)
            assert workspace.nbytes % 64 == 0
            # Nothing asks for more than a larger step does.
            assert workspace.nbytes <= Workspace([layers[0].layer], ROWS + 1, 512).nbytes
            layers[0].layer.share_workspace(workspace)
        steps = []
        for requests, lengths in (([0, 1, 2], [70, 1, 130]), ([0, 1], [1, 1]), ([2, 0], [3, 65])):
            for each in layers:
                core, expected, _ = each.step(requests, lengths)
                assert relative_error(core, expected) < 1e-5
                steps.append(core)
        outputs.append(steps)
        for each in layers:
            each.check_states()
    for own, shared in zip(*outputs, strict=True):
        assert relative_error(shared, own) < 1e-5
    # In memory of ours, which is kept as long as layers work in it.
    own = layers[0].layer.device.empty((workspace.nbytes,), np.uint8)
    seen = weakref.ref(own)
    wrapped = Workspace([each.layer for each in layers], ROWS, 300, memory=own)
    assert wrapped.nbytes == workspace.nbytes
    with pytest.raises(ValueError, match=r"expected \d+ contiguous bytes, got 64"):
        Workspace([layers[0].layer], ROWS + 1, 100_000, memory=np.zeros(64, np.uint8))
    del own, wrapped
    assert seen() is not None
    for each in layers:
        core, expected, _ = each.step([0, 1], [65, 1])
        assert relative_error(core, expected) < 1e-5
    for each in layers:
        each.layer.share_workspace(None)
    assert seen() is None
    with pytest.raises(ValueError, match="layers: expected at least one"):
        Workspace([], 1, 1)
    with pytest.raises(GdnError, match="expected at least 0 rows and tokens, got -1 and 1"):
        Workspace([layers[0].layer], -1, 1)


def test_a_step_that_is_refused_has_changed_nothing(runtime, tool, tmp_path):
    """All runs are checked before the first is launched, so that a step can be tried again."""
    path = compile_image(tool, tmp_path, "--layout=split", "--outputs=core")
    without = layer_kernels(runtime.device(), runtime.image(path))
    layer = Fixture(runtime, without, 21, num_spec=0)
    # A decode, and behind it a prefill that has no state, which these kernels cannot say.
    layer.done[0] = 5
    layer.state[:], layer.conv[:] = 1, 1
    state, conv = layer.state.copy(), layer.conv.copy()
    for _ in range(2):
        with pytest.raises(
            GdnError, match="has no state to start from, but the entry has no has_i"
        ):
            layer.step([0, 1], [1, 7])
        assert np.array_equal(layer.state, state) and np.array_equal(layer.conv, conv)
    # Nor is an output looked at when states have moved on.
    common = CommonAttentionMetadata(
        query_start_loc=np.array([0, 1], np.int32),
        seq_lens=np.array([6], np.int32),
        num_reqs=1,
        num_actual_tokens=1,
        block_table_tensor=layer.table[[0]],
    )
    m = layer.builder.build(0, common)
    core = np.zeros((3, D, HV), np.float32).swapaxes(1, 2)
    with pytest.raises(GdnError, match="core: expected rows of neighbouring elements"):
        layer.layer.forward(m, **make_inputs(layer.rng, 3, HK, HV), core=core)
    assert np.array_equal(layer.state, state)


def test_rows_of_several_runs_do_not_share_slots(runtime, tool, tmp_path):
    """Of devices with debug checks: a slot that a decode writes, and a prefill as well."""
    path = compile_image(tool, tmp_path, *FULL, "--verify=slots")
    device = runtime.device(num_workers=1, debug_checks=True)
    layer = Fixture(runtime, layer_kernels(device, runtime.image(path)), 22)
    layer.step([0, 1], [3, 4])
    layer.table[2] = layer.table[0]
    state = layer.state.copy()
    with pytest.raises(GdnError, match="row 0 and row 1 of the step both write slot 1"):
        layer.step([0, 2], [1, 5])
    with pytest.raises(GdnError, match="row 0 of the step both write slot 1"):
        layer.step([0, 2], [3, 5], np.array([2, -1], np.int32))
    assert np.array_equal(layer.state, state, equal_nan=True)


def test_graphs_of_rows_that_move_need_write_slots(runtime, kernels):
    """Capture is refused on a stream that is captured; without one the metadata says so."""
    layer = Fixture(runtime, kernels, 23, use_full_cuda_graph=True)
    common = CommonAttentionMetadata(
        query_start_loc=np.array([0, 1], np.int32),
        seq_lens=np.array([1], np.int32),
        num_reqs=1,
        num_actual_tokens=1,
        block_table_tensor=layer.table[[0]],
    )
    assert layer.builder.build_for_cudagraph_capture(common).raw.moves_states == 1


def test_views_keep_the_builder(runtime):
    """Arrays of metadata are in the builder's memory, which lives as long as they do."""
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=4, max_num_tokens=64)
    common = CommonAttentionMetadata(
        query_start_loc=np.array([0, 1, 2], np.int32),
        seq_lens=np.array([5, 6], np.int32),
        num_reqs=2,
        num_actual_tokens=2,
        block_table_tensor=np.array([[11], [12]], np.int32),
    )
    metadata = builder.build(0, common)
    alive = weakref.ref(builder)
    del builder
    gc.collect()
    assert metadata.non_spec_state_indices_tensor.tolist() == [11, 12]
    slots = metadata.non_spec_state_indices_tensor
    del metadata
    gc.collect()
    assert alive() is not None and slots.tolist() == [11, 12]
    del slots
    gc.collect()
    assert alive() is None
