# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Paged attention on the CPU against its formula, and batches that it refuses before it writes."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from gdn_layer_model import relative_error
from paged_cache import Cache

from gdn import GdnError, Runtime
from gdn.layers.attention import ForwardBatch, ForwardMode, PagedAttnBackend


@pytest.fixture(scope="module")
def device(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so").device(num_workers=2)


@pytest.mark.parametrize(
    ("dtype", "limit"), [(np.float32, 1e-5), (ml_dtypes.bfloat16, 1e-2), (np.float16, 2e-3)]
)
def test_paged_attention(device, dtype, limit):
    """Prompts with and without a prefix, then decode, against softmax(q k^T) v."""
    rng = np.random.default_rng(5)
    layer = SimpleNamespace(
        layer_id=3, tp_q_head_num=4, tp_k_head_num=2, tp_v_head_num=2, head_dim=8, v_head_dim=6
    )
    cache = Cache(rng, 2, 8, 6, dtype)
    backend = PagedAttnBackend(device)
    known = {1: (np.zeros((0, 2, 8)), np.zeros((0, 2, 6)))}
    known[2] = known[1]
    for mode, requests, lengths in (
        (ForwardMode.EXTEND, [2, 1], [5, 3]),
        (ForwardMode.EXTEND, [1], [4]),
        (ForwardMode.DECODE, [1, 2], [1, 1]),
    ):
        tokens = sum(lengths)
        q, k, v = (rng.standard_normal((tokens, n)).astype(dtype) for n in (4 * 8, 2 * 8, 2 * 6))
        locations, expected, first = [], [], 0
        for request, length in zip(requests, lengths, strict=True):
            part = slice(first, first + length)
            first += length
            old_k, old_v = known[request]
            locations += cache.place(request, len(old_k), length)
            keys = np.concatenate([old_k, k[part].reshape(-1, 2, 8).astype(np.float64)])
            values = np.concatenate([old_v, v[part].reshape(-1, 2, 6).astype(np.float64)])
            known[request] = keys, values
            queries = q[part].reshape(-1, 4, 8).astype(np.float64)
            for i, query in enumerate(queries):
                end = len(old_k) + i + 1
                heads = []
                for h in range(4):
                    scores = keys[:end, h // 2] @ query[h] / np.sqrt(8)
                    weights = np.exp(scores - scores.max())
                    heads.append(weights / weights.sum() @ values[:end, h // 2])
                expected.append(np.concatenate(heads))
        batch = ForwardBatch(
            mode,
            len(requests),
            req_pool_indices=np.array(requests),
            seq_lens=np.array([len(known[r][0]) for r in requests], np.int32),
            extend_seq_lens=None if mode.is_decode() else np.array(lengths, np.int32),
            out_cache_loc=np.array(locations, np.int64),
            req_to_token_pool=cache,
            token_to_kv_pool=cache,
        )
        backend.init_forward_metadata(batch)
        out = backend.forward(q, k, v, layer, batch)
        assert out.dtype == dtype
        assert relative_error(out.astype(np.float64), np.array(expected)) < limit
        # What is in the cache already needs no keys and values.
        again = backend.forward(q, None, None, layer, batch, save_kv_cache=False)
        assert again.tobytes() == out.tobytes()
    assert backend.get_cuda_graph_seq_len_fill_value() == 1
    before = cache.keys.tobytes()
    batch.out_cache_loc = np.array([0, 64])
    with pytest.raises(GdnError, match="out_cache_loc: expected 0 to 63, got 64"):
        backend.forward(q + 1, k + 1, v, layer, batch)
    assert cache.keys.tobytes() == before  # the first token's, too


def small_batch(cache, **fields):
    given = {
        "req_pool_indices": np.arange(3),
        "seq_lens": np.ones(3, np.int32),
        "req_to_token_pool": cache,
        "token_to_kv_pool": cache,
    }
    mode = fields.pop("mode", ForwardMode.DECODE)
    return ForwardBatch(mode, 3, **(given | fields))


SMALL = SimpleNamespace(
    layer_id=0, tp_q_head_num=1, tp_k_head_num=1, tp_v_head_num=1, head_dim=4, v_head_dim=4
)


def test_more_queries_than_places(device):
    """Requests that share what they have read: three queries, a cache of one place."""
    rng = np.random.default_rng(6)
    cache = Cache(rng, 1, 4, 4, np.float32, locations=1)
    cache.req_to_token[:3, 0] = 0
    cache.values[:] = rng.standard_normal(cache.values.shape)
    batch = small_batch(cache)
    backend = PagedAttnBackend(device)
    backend.init_forward_metadata(batch)
    q = rng.standard_normal((3, 4)).astype(np.float32)
    out = backend.forward(q, None, None, SMALL, batch, save_kv_cache=False)
    assert relative_error(out, np.repeat(cache.values[0], 3, axis=0)) < 1e-6
    # Rows of padding are zeros, whatever the memory held that NumPy takes again.
    padded = np.concatenate([q, q])
    np.full((6, 4), np.nan, np.float32)
    out = backend.forward(padded, None, None, SMALL, batch, save_kv_cache=False)
    assert relative_error(out[:3], np.repeat(cache.values[0], 3, axis=0)) < 1e-6
    assert not out[3:].any()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seq_lens": np.array([1, 21, 1], np.int32)}, "seq_lens: expected 0 to 20, .*, got 21"),
        ({"seq_lens": np.array([1, -1, 1], np.int32)}, "seq_lens: expected 0 to 20, .*, got -1"),
        ({"seq_lens": np.array([1, 1, 2], np.int32)}, "req_to_token: expected 0 to 63, got -1"),
        (
            {"mode": ForwardMode.EXTEND, "extend_seq_lens": np.array([1, -1, 3], np.int32)},
            "extend_seq_lens: expected 0 to 1, the tokens of request 1, got -1",
        ),
        (
            {"mode": ForwardMode.EXTEND, "extend_seq_lens": np.array([1, 2, 0], np.int32)},
            "extend_seq_lens: expected 0 to 1, the tokens of request 1, got 2",
        ),
        ({"k": (3, 1, 5)}, r"k: expected \[rows, 4\] or \[rows, 1, 4\]"),
        ({"out_cache_loc": np.arange(2)}, "out_cache_loc: expected at least 3 elements, got 2"),
        ({"req_pool_indices": np.array([0, 4, 1])}, "req_pool_indices: expected 0 to 3, .*, got 4"),
        ({"columns": 1, "seq_lens": np.array([1, 2, 1])}, "seq_lens: expected 0 to 1, .*, got 2"),
        ({"repeated": True}, "req_to_token: expected rows of neighbouring int32"),
    ],
)
def test_paged_attention_refuses_before_it_writes(device, fields, message):
    cache = Cache(np.random.default_rng(7), 1, 4, 4, np.float32)
    for request in range(3):
        cache.place(request, 0, 1)
    fields = dict(fields)
    cache.req_to_token = cache.req_to_token[:, : fields.pop("columns", 20)]
    if fields.pop("repeated", False):
        cache.req_to_token = np.broadcast_to(cache.req_to_token[0], (4, 20))
    q, k, v = (np.ones(s, np.float32) for s in ((3, 4), fields.pop("k", (3, 4)), (3, 4)))
    batch = small_batch(cache, **{"out_cache_loc": np.arange(3)} | fields)
    backend = PagedAttnBackend(device)
    with pytest.raises((GdnError, ValueError), match=message):
        backend.init_forward_metadata(batch)
        backend.forward(q, k, v, SMALL, batch)
    assert not cache.keys.any() and not cache.values.any()
