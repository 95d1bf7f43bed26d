# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The metadata builder through Python: vLLM's cases, every field against its
definition in NumPy on random steps, addresses that stay, and errors."""

from types import SimpleNamespace

import numpy as np
import pytest

from gdn import GdnError, Runtime
from gdn.layers.attention import CommonAttentionMetadata, GDNAttentionMetadataBuilder


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def builder_of(runtime, num_spec=0, **options) -> GDNAttentionMetadataBuilder:
    options = {"max_num_seqs": 16, "max_num_tokens": 4096} | options
    return GDNAttentionMetadataBuilder.from_options(
        runtime, num_speculative_tokens=num_spec, **options
    )


def step(seq_lens, query_lens, columns=8) -> CommonAttentionMetadata:
    rows = len(seq_lens)
    table = np.arange(rows)[:, None] * 10 + 10 + np.arange(columns)[None, :]
    return CommonAttentionMetadata(
        query_start_loc=np.concatenate([[0], np.cumsum(query_lens)]).astype(np.int32),
        seq_lens=np.array(seq_lens, np.int32),
        num_reqs=rows,
        num_actual_tokens=int(np.sum(query_lens)),
        block_table_tensor=table.astype(np.int32),
    )


CASES = {  # seq_lens, query_lens, drafts, S: decodes, prefills, prefill tokens, spec
    "a": ([65, 20], [1, 3], [-1, 2], 2, (0, 1, 1, 1)),
    "b": ([50, 30], [3, 3], [2, 2], 2, (0, 0, 0, 2)),
    "c": ([40, 30, 20], [1, 1, 1], None, 0, (3, 0, 0, 0)),
    "d": ([100, 20], [50, 3], [-1, 2], 2, (0, 1, 50, 1)),
    "e": ([100, 65, 20], [50, 1, 3], [-1, -1, 2], 2, (0, 2, 51, 1)),
    "f": ([40, 50, 60, 20], [1, 1, 1, 3], [-1, -1, -1, 2], 2, (0, 3, 3, 1)),
    "g": ([16, 65, 20], [0, 1, 3], [-1, -1, 2], 2, (0, 1, 1, 1)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_classification(runtime, case):
    seq_lens, query_lens, drafts, num_spec, expected = case
    builder = builder_of(runtime, num_spec)
    ones = None if drafts is None else np.ones(len(seq_lens), np.int32)
    m = builder.build(0, step(seq_lens, query_lens), ones, drafts)
    assert (m.num_decodes, m.num_prefills, m.num_prefill_tokens, m.num_spec_decodes) == expected


def test_from_a_configuration(runtime):
    """The constructor's arguments are vLLM's."""
    config = SimpleNamespace(
        speculative_config=SimpleNamespace(num_speculative_tokens=3),
        scheduler_config=SimpleNamespace(max_num_seqs=8, max_num_batched_tokens=100),
        compilation_config=SimpleNamespace(
            cudagraph_mode=SimpleNamespace(has_full_cudagraphs=lambda: True),
            max_cudagraph_capture_size=20,
        ),
        cache_config=SimpleNamespace(mamba_cache_mode="align"),
    )
    spec = SimpleNamespace(block_size=16)
    builder = GDNAttentionMetadataBuilder(spec, ["layer.0"], config, None, runtime=runtime)
    assert builder.reorder_batch_threshold == 4
    assert builder.decode_cudagraph_max_bs == 20
    assert (builder.num_spec, builder.use_spec_decode) == (3, True)
    m = builder.build(0, step([33], [4]), np.array([1]), np.array([3]))
    assert m.spec_state_indices_tensor.tolist() == [[12, 13, 14, 15]]


def random_step(rng, num_spec):
    rows = int(rng.integers(1, 9))
    drafts = np.where(rng.random(rows) < 0.5, rng.integers(0, num_spec + 1, rows), -1)
    lengths = np.where(
        drafts >= 0,
        drafts + 1,
        rng.choice([0, 1, 1, 2, 63, 64, 65, 200], rows),
    )
    context = rng.choice([0, 1, 64, 100], rows)
    context[(lengths > 0) & (drafts >= 0)] += 1
    accepted = rng.integers(1, num_spec + 2, rows)
    return step(context + lengths, lengths), accepted, drafts, lengths, context


def check_against_definition(m, common, accepted, drafts, lengths, context, num_spec):
    """Every field from its sentence in the requirements, in NumPy."""
    table, rows = common.block_table_tensor, common.num_reqs
    mask = drafts >= 0
    if drafts[mask].sum() == 0:
        mask = np.zeros(rows, bool)
    owner = np.repeat(np.arange(rows), lengths)
    rest = ~mask
    live = lengths > 0
    if mask.any():
        assert m.spec_sequence_masks.tolist() == mask.tolist()
        assert m.spec_token_indx.tolist() == np.flatnonzero(mask[owner]).tolist()
        assert m.non_spec_token_indx.tolist() == np.flatnonzero(rest[owner]).tolist()
        assert m.spec_query_start_loc.tolist() == [0, *np.cumsum(lengths[mask])]
        assert m.num_accepted_tokens.tolist() == accepted[mask].tolist()
        wanted = table[mask, : num_spec + 1] * live[mask, None]
        assert m.spec_state_indices_tensor.tolist() == wanted.tolist()
        assert m.num_decodes == 0
        assert m.num_prefills == (rest & live).sum()
        assert m.num_spec_decode_tokens == lengths[mask].sum()
        if lengths[rest].sum() == 0:
            assert m.non_spec_state_indices_tensor is None
            assert m.non_spec_query_start_loc is None
            return
    else:
        assert m.spec_sequence_masks is m.spec_token_indx is m.spec_query_start_loc is None
        long = np.flatnonzero((lengths > 1) | ((lengths == 1) & (context == 0)))
        decodes = long[0] if len(long) else rows
        assert (m.num_decodes, m.num_prefills) == (decodes, rows - decodes)
        assert m.num_decode_tokens == lengths[:decodes].sum()
    assert m.non_spec_query_start_loc.tolist() == [0, *np.cumsum(lengths[rest])]
    assert m.non_spec_state_indices_tensor.tolist() == (table[rest, 0] * live[rest]).tolist()
    column = np.where(context > 0, accepted - 1, 0)
    sources = table[np.arange(rows), column] * live
    assert m.spec_decode_src_indices.tolist() == sources[rest].tolist()
    assert m.non_spec_num_accepted.tolist() == accepted[rest].tolist()
    if m.num_prefills == 0:
        assert m.has_initial_state is m.chunk_indices is m.nums_dict is None
        return
    assert m.has_initial_state.tolist() == (context[rest] > 0).tolist()
    chunks = -(-lengths[rest] // 64)
    assert m.chunk_offsets.tolist() == [0, *np.cumsum(chunks)]
    pairs = [[row, chunk] for row, n in enumerate(chunks) for chunk in range(n)]
    assert m.chunk_indices.tolist() == pairs
    blocks = m.nums_dict[8]
    nums = -(-lengths[rest] // 8)
    assert blocks["nums"].tolist() == nums.tolist()
    assert blocks["tot"] == blocks["mlist_len"] == nums.sum()
    assert blocks["mlist"].tolist() == np.repeat(np.arange(len(nums)), nums).tolist()
    assert blocks["offsetlist"].tolist() == [b for n in nums for b in range(n)]
    assert len(m.batch_ptr) == 2 * max(1024, nums.sum())
    assert (m.batch_ptr[nums.sum() :] == -1).all()
    assert (m.token_chunk_offset_ptr[nums.sum() :] == -1).all()


@pytest.mark.parametrize("num_spec", [1, 2, 3])
def test_random_steps(runtime, num_spec):
    rng = np.random.default_rng(num_spec)
    builder = builder_of(runtime, num_spec)
    for _ in range(300):
        common, accepted, drafts, lengths, context = random_step(rng, num_spec)
        m = builder.build(0, common, accepted, drafts)
        check_against_definition(m, common, accepted, drafts, lengths, context, num_spec)


def test_addresses_stay(runtime):
    """What a graph captured holds at replay."""
    builder = builder_of(runtime, 2, use_full_cuda_graph=True)
    first = builder.build_for_cudagraph_capture(step([3] * 4, [3] * 4))
    second = builder.build(
        0, step([9, 8], [3, 3]), np.array([1, 2]), np.array([2, 2]), num_padded_reqs=4
    )
    for name in ("spec_state_indices_tensor", "spec_query_start_loc", "num_accepted_tokens"):
        a, b = getattr(first, name), getattr(second, name)
        assert a.ctypes.data == b.ctypes.data
        assert a.shape == b.shape
    assert second.spec_state_indices_tensor[2:].tolist() == [[0, 0, 0]] * 2
    assert second.num_accepted_tokens.tolist() == [1, 2, 1, 1]


def test_errors(runtime):
    with pytest.raises(ValueError, match="mamba_cache_mode: expected one of none, align, all"):
        builder_of(runtime, mamba_cache_mode="some")
    builder = builder_of(runtime, 2)
    with pytest.raises(GdnError, match="num_accepted_tokens: expected counts") as caught:
        builder.build(0, step([9], [3]), None, np.array([2]))
    assert caught.value.status == "INVALID_ARGUMENT"
    with pytest.raises(ValueError, match="num_accepted_tokens: expected at least 2 elements"):
        builder.build(0, step([9, 9], [3, 3]), np.array([1]), np.array([2, 2]))
    # Of a table only the first rows would be read.
    with pytest.raises(ValueError, match="num_accepted_tokens: expected rank 1, got 2"):
        builder.build(0, step([9, 9], [3, 3]), np.ones((2, 3), int), np.array([2, 2]))
    with pytest.raises(ValueError, match="slots: expected rank 1, got 2"):
        builder.build_commit([[1, 2], [3, 4]])
    for name in ("query_start_loc", "seq_lens", "block_table_tensor"):
        one = step([9], [1])
        setattr(one, name, None)
        with pytest.raises(ValueError, match=f"{name}: expected an array, got None"):
            builder.build(0, one, np.array([1]))
    one = step([9], [1])
    one.seq_lens = one.seq_lens[:, None]
    with pytest.raises(ValueError, match="seq_lens: expected rank 1, got 2"):
        builder.build(0, one, np.array([1]))
    with pytest.raises(GdnError, match="expected at most 48 rows and as many tokens"):
        builder.build_for_cudagraph_capture(step([49], [49]))
