# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of decodes, verified rows, prefills and first tokens in any order: one launch of verify
and one of prefill over the same arrays, against the float64 model of a layer."""

import ctypes

import numpy as np
import pytest
from gdn_layer_model import compile_image, relative_error
from test_gdn_layer import FULL, ROWS, Fixture, S

from gdn import GdnError, Runtime
from gdn.layers.attention import (
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
    layer_kernels,
)

# Rows of verify that share the zeros of padding.
MORE = 16
INTS, BYTES = (ctypes.POINTER(kind) for kind in (ctypes.c_int32, ctypes.c_uint8))


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def kernels_of(runtime, tool, folder, *options):
    path = compile_image(tool, folder, *FULL, *options)
    return layer_kernels(runtime.device(num_workers=2), runtime.image(path))


@pytest.fixture(scope="module")
def kernels(runtime, tool, tmp_path_factory):
    return kernels_of(
        runtime, tool, tmp_path_factory.mktemp("mixed"), "--verify=slots", "--mixed-batch"
    )


def draw_step(layer, rng):
    """Rows of all kinds; first tokens, too, of one token and of many."""
    requests = rng.permutation(ROWS)[: rng.integers(1, ROWS + 1)]
    lengths, drafts = [], []
    for request in requests:
        kind = rng.integers(4)
        if layer.done[request] == 0:
            lengths.append(int(rng.choice([1, 2, 5, 70])))
            drafts.append(-1)
        elif kind == 0:  # a plain decode, also behind drafts
            lengths.append(1)
            drafts.append(-1)
        elif kind == 1:  # a piece of a prompt
            lengths.append(int(rng.integers(2, 40)))
            drafts.append(-1)
        else:
            drafts.append(int(rng.integers(0, S + 1)))
            lengths.append(drafts[-1] + 1)
    if rng.integers(3) == 0:  # a row without tokens
        lengths[0], drafts[0] = 0, -1
    return requests, lengths, np.array(drafts, np.int32)


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture(runtime, kernels, seed):
    layer = Fixture(runtime, kernels, seed=seed, mixed_batch=True)
    layer.layer.check_steps(layer.builder)
    rng = np.random.default_rng(100 + seed)
    launched = set()
    for _ in range(12):
        requests, lengths, drafts = draw_step(layer, rng)
        padding = int(rng.integers(3))
        core, expected, m = layer.step(requests, lengths, drafts, padding=padding)
        assert relative_error(core, expected) < 1e-5
        assert not core[sum(lengths) :].any()
        launched.add(m.raw.num_runs)
        layer.check_states()
    assert launched >= {1, 2}


def test_decodes_without_speculation(runtime, kernels):
    layer = Fixture(runtime, kernels, seed=7, num_spec=0, mixed_batch=True)
    for lengths in ([5, 1, 70], [1, 1, 1], [1, 9, 1]):
        core, expected, m = layer.step([0, 1, 2], lengths)
        assert relative_error(core, expected) < 1e-5
    assert m.raw.num_runs == 2


def test_a_graph_has_both_launches(runtime, kernels):
    layer = Fixture(runtime, kernels, seed=8, mixed_batch=True, use_full_cuda_graph=True)
    core, expected, m = layer.step([3, 1], [4, 1], None, padding=10, num_padded_reqs=6)
    assert relative_error(core, expected) < 1e-5
    kinds = [m.raw.runs[i].kind for i in range(m.raw.num_runs)]
    rows = [m.raw.runs[i].num_rows for i in range(m.raw.num_runs)]
    assert (kinds, rows) == ([2, 1], [6, 6])
    core, expected, m = layer.step([3, 1], [1, 3], np.array([0, 2], np.int32), num_padded_reqs=4)
    assert relative_error(core, expected) < 1e-5
    assert [m.raw.runs[i].num_rows for i in range(m.raw.num_runs)] == [4, 4]


def test_a_graph_for_few_prefills(runtime, kernels):
    layer = Fixture(
        runtime,
        kernels,
        seed=10,
        mixed_batch=True,
        use_full_cuda_graph=True,
        max_num_prefills=1,
    )
    none = np.full(2, -1, np.int32)
    core, expected, m = layer.step([3, 1], [4, 9], none)
    # More than a graph is for, in a step that is padded for none.
    assert relative_error(core, expected) < 1e-5
    assert (m.raw.runs[1].num_rows, m.raw.num_expected_prefills) == (2, 2)
    with pytest.raises(GdnError, match=r"at most 1 sequences of prefill .* got 2"):
        layer.step([3, 1], [4, 9], none, num_padded_reqs=4)
    # One prefill between tokens of verify: three elements, and one that pads.
    requests, lengths, drafts = [3, 1, 0, 2], [3, 1, 66, 0], np.array([2, -1, -1, -1], np.int32)
    core, expected, m = layer.step(requests, lengths, drafts, padding=3, num_padded_reqs=6)
    assert relative_error(core, expected) < 1e-5
    layer.check_states()
    kinds = [(m.raw.runs[i].kind, m.raw.runs[i].num_rows) for i in range(m.raw.num_runs)]
    # More padding than six rows verify: some rows more share its zeros.
    assert (kinds, m.raw.num_expected_prefills) == ([(2, 6 + MORE), (1, 3)], 1)
    verify = np.ctypeslib.as_array(
        ctypes.cast(m.raw.spec_query_start_loc.data, INTS), (6 + MORE + 1,)
    )
    assert verify[:5].tolist() == [0, 3, 4, 70, 70]
    assert (verify[5:8].tolist(), verify[-1]) == ([71, 72, 73], 73)
    prefill = m.raw.runs[1]
    starts = np.ctypeslib.as_array(ctypes.cast(prefill.query_start_loc, INTS), (4,))
    flags = np.ctypeslib.as_array(ctypes.cast(m.raw.non_spec_is_prefill.data, BYTES), (3,))
    assert starts.tolist() == [0, 4, 70, 73]
    assert flags.tolist() == [0, 1, 0]


def test_a_large_graph_for_few_tokens(runtime, kernels):
    layer = Fixture(
        runtime, kernels, seed=11, mixed_batch=True, use_full_cuda_graph=True, max_num_prefills=1
    )
    layer.step([0, 1], [5, 70])
    core, expected, m = layer.step([0, 1], [1, 1], padding=250, num_padded_reqs=2)
    assert relative_error(core[:2], expected[:2]) < 1e-5
    assert not core[2:].any()
    layer.check_states()
    rows = m.raw.runs[0].num_rows
    starts = np.ctypeslib.as_array(ctypes.cast(m.raw.runs[0].query_start_loc, INTS), (rows + 1,))
    assert (rows, np.diff(starts)[2:].max()) == (2 + MORE, 16)
    # They all have as many, where that is possible.
    _, _, m = layer.step([0, 1], [1, 1], padding=16 * MORE, num_padded_reqs=2)
    starts = np.ctypeslib.as_array(ctypes.cast(m.raw.runs[0].query_start_loc, INTS), (rows + 1,))
    assert np.diff(starts)[2:].tolist() == [16] * MORE


def test_bounds_of_prefills_are_for_graphs(runtime, kernels):
    for options in ({"mixed_batch": True}, {"use_full_cuda_graph": True}):
        with pytest.raises(GdnError, match="max_num_prefills: expected 0 without mixed_batch"):
            Fixture(runtime, kernels, seed=9, max_num_prefills=2, **options)


def test_a_capture_needs_steps_that_are_padded(runtime):
    common = CommonAttentionMetadata(
        query_start_loc=np.array([0, 2, 3], np.int32),
        seq_lens=np.array([9, 9], np.int32),
        num_reqs=2,
        num_actual_tokens=8,
        block_table_tensor=np.array([[1], [2]], np.int32),
    )
    sizes = {"max_num_seqs": 4, "max_num_tokens": 16, "mixed_batch": True}
    builder = GDNAttentionMetadataBuilder.from_options(runtime, **sizes)
    with pytest.raises(GdnError, match="use_full_cuda_graph: expected 1"):
        builder.build_for_cudagraph_capture(common)
    builder = GDNAttentionMetadataBuilder.from_options(runtime, **sizes, use_full_cuda_graph=True)
    raw = builder.build_for_cudagraph_capture(common).raw
    runs = [raw.runs[i] for i in range(raw.num_runs)]
    assert [(run.kind, run.num_rows, run.num_tokens) for run in runs] == [
        (2, 2 + MORE, 8),
        (1, 2, 8),
    ]


def test_what_does_not_fit_is_refused(runtime, kernels, tool, tmp_path_factory):
    plain = kernels_of(runtime, tool, tmp_path_factory.mktemp("plain"), "--verify=slots")
    layer = Fixture(runtime, plain, seed=9, mixed_batch=True)
    with pytest.raises(GdnError, match=r"is_prefill \(--mixed-batch\)"):
        layer.layer.check_steps(layer.builder)
    with pytest.raises(GdnError, match="expected a parameter is_prefill"):
        layer.step([0], [3])
    layer = Fixture(runtime, kernels, seed=9)
    with pytest.raises(GdnError, match="has is_prefill"):
        layer.layer.check_steps(layer.builder)
    with pytest.raises(GdnError, match="a step of a builder with mixed_batch"):
        layer.step([0], [3])
    layer = Fixture(runtime, kernels, seed=9, mixed_batch=True)
    with pytest.raises(GdnError, match="at most 3 tokens in row 0"):
        layer.step([0], [4], np.array([3], np.int32))
    assert np.isnan(layer.state).all()
    with pytest.raises(GdnError, match="cache mode all"):
        Fixture(runtime, kernels, seed=9, num_spec=0, mixed_batch=True, mamba_cache_mode="all")
