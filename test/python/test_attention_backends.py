# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention backends of engines in Python: linear attention on pools against a float64
model, and the hybrid one call for call."""

import gc
import logging
import weakref
from dataclasses import replace
from enum import IntEnum
from types import SimpleNamespace

import numpy as np
import pytest
from gdn_layer_model import CoreModel, compile_image, make_inputs, make_weights, relative_error
from paged_cache import Cache

from gdn import GdnError, Runtime, StatePool, StatePoolShape
from gdn.layers.attention import (
    AttentionBackend,
    ForwardBatch,
    ForwardMode,
    GDNAttnBackend,
    HybridAttnBackend,
    PagedAttnBackend,
    RadixLinearAttention,
    layer_kernels,
)
from gdn.reference import with_pending

HK, HV, D, LAYERS = 1, 2, 64, 2


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def device(runtime):
    return runtime.device(num_workers=2)


# Tokens that may be pending in a slot.
ROOM = 3


@pytest.fixture(scope="module", params=["plain", "write_slots", "deferred"])
def kernels(request, runtime, device, tool, tmp_path_factory):
    """What an image has beyond slots is not needed, and does no harm. With deferred writes a
    decode leaves tokens pending, which extend takes in."""
    options = {
        "plain": (),
        "write_slots": ("--write-slots", "--has-initial", "--checkpoints"),
        "deferred": (f"--defer-writes={ROOM}",),
    }
    path = compile_image(
        tool,
        tmp_path_factory.mktemp("backend"),
        "--layout=split",
        "--outputs=core",
        *options[request.param],
    )
    return layer_kernels(device, runtime.image(path))


def test_a_pool_of_other_types(device, kernels):
    """It is refused when the backend is made, ahead of any step."""
    shape, name = StatePoolShape(LAYERS, 2, HK, HV, D, D, conv_dtype="float32"), "decode"
    for change, message in (
        (
            {"state_dtype": "bfloat16"},
            f"state_pool: expected float32, that of {name}, got bfloat16",
        ),
        ({"conv_dtype": "bfloat16"}, f"conv_pool: expected float32, that of {name}, got bfloat16"),
        ({"state_dtype": "i8x2"}, f"state_planes: expected 0, those of {name}, got 2"),
    ):
        pool = StatePool(device, replace(shape, **change))
        with pytest.raises(ValueError, match=f"gdn_pool: {message}"):
            GDNAttnBackend(pool, device, kernels=kernels)
    # Of arrays of the caller these are the types, whatever the shape says.
    given = [np.zeros(StatePool(device, shape).state(0).shape, np.float32)]
    convs = [np.zeros(StatePool(device, shape).conv(0).shape, np.float32)]
    other = replace(shape, num_layers=1, state_dtype="bfloat16", conv_dtype="bfloat16")
    GDNAttnBackend(StatePool.wrap(device, other, given, convs), device, kernels=kernels)


class Engine:
    """Two layers on one pool, with a model of each."""

    def __init__(self, device, kernels, requests: int = 6, **options):
        self.rng = np.random.default_rng(3)
        self.defers = any(p.name == "pending_counts" for p in kernels["decode"].params)
        pending = {"pending_tokens": ROOM, "deferred_writes": True} if self.defers else {}
        shape = StatePoolShape(LAYERS, requests, HK, HV, D, D, conv_dtype="float32", **pending)
        self.pool = StatePool(device, shape)
        self.backend = GDNAttnBackend(self.pool, device, kernels=kernels, **options)
        self.layers, self.models = [], []
        for index in range(LAYERS):
            weights = make_weights(self.rng, HK, HV)
            self.layers.append(RadixLinearAttention(4 * index, index, HK, HV, D, D, **weights))
            self.models.append(CoreModel(weights, requests + 1))

    def batch(self, mode, slots, lengths=None, **fields) -> ForwardBatch:
        if lengths is not None:
            fields["extend_seq_lens"] = np.array(lengths, np.int32)
        return ForwardBatch(
            mode,
            len(slots),
            req_pool_indices=np.array(slots, np.int64),
            attn_backend=self.backend,
            **fields,
        )

    def run(self, batch, lengths, backend=None):
        """All layers; returns the worst error against the models."""
        backend = backend or self.backend
        worst = 0
        for layer, model in zip(self.layers, self.models, strict=True):
            inputs = make_inputs(self.rng, sum(lengths), HK, HV)
            got = layer(batch, inputs["qkv"], inputs["a"], inputs["b"])
            want, first = [], 0
            for slot, length in zip(batch.req_pool_indices, lengths, strict=True):
                part = slice(first, first + length)
                first += length
                if 0 < slot < len(model.state):
                    want.append(model.row(inputs, part, int(slot), [int(slot)]))
                else:
                    want.append(np.zeros((length, HV, D)))
            assert got.shape == (sum(lengths), HV * D)
            worst = max(worst, relative_error(got, np.concatenate(want).reshape(got.shape)))
        return worst

    def check_states(self):
        for index, model in enumerate(self.models):
            state, conv = self.pool.get_layer_state(index)
            if self.defers:
                names = ("pending_keys", "pending_deltas", "pending_decays", "pending_counts")
                pending = dict(zip(names, self.pool.pending(index), strict=True))
                state = with_pending({"state_pool": state, **pending})
            assert relative_error(state, model.state) < 1e-5
            assert relative_error(conv, model.conv) < 1e-6


@pytest.fixture
def engine(device, kernels):
    return Engine(device, kernels)


def test_modes():
    answers = {
        ForwardMode.EXTEND: (True, False, False, False),
        ForwardMode.DECODE: (False, True, False, True),
        ForwardMode.MIXED: (True, False, False, False),
        ForwardMode.IDLE: (False, False, True, True),
    }
    for mode, expected in answers.items():
        assert expected == (
            mode.is_extend(),
            mode.is_decode(),
            mode.is_idle(),
            mode.is_decode_or_idle(),
        )


def test_metadata_of_a_batch(engine):
    assert engine.backend.forward_metadata is None
    engine.backend.init_forward_metadata(engine.batch(ForwardMode.DECODE, [3, 1]))
    metadata = engine.backend.forward_metadata
    assert metadata.cache_indices.tolist() == [3, 1]
    assert metadata.cache_indices.dtype == np.int64
    assert metadata.cu_seqlens is None
    for mode in (ForwardMode.EXTEND, ForwardMode.MIXED):
        engine.backend.init_forward_metadata(engine.batch(mode, [3, 1, 2], [5, 0, 7]))
        assert engine.backend.forward_metadata.cu_seqlens.tolist() == [0, 5, 5, 12]
        assert engine.backend.forward_metadata.cu_seqlens.dtype == np.int64


def test_references_not_copies(engine):
    layer = engine.layers[1]
    assert (layer.layer_id, layer.gdn_layer_idx) == (4, 1)
    assert (layer.key_dim, layer.value_dim) == (HK * D, HV * D)
    weight = np.zeros((4, 4), np.float32)
    other = RadixLinearAttention(0, 0, 1, 1, 1, 1, weight, weight, weight)
    assert other.conv_weight is weight


def test_extend_then_decode(engine):
    """Prompts, one of them empty, one in pieces; then steps; then both at once."""
    for mode, slots, lengths in (
        (ForwardMode.EXTEND, [4, 1, 2], [5, 0, 70]),
        (ForwardMode.EXTEND, [2, 1], [3, 65]),
        (ForwardMode.DECODE, [1, 4, 2], [1, 1, 1]),
        (ForwardMode.MIXED, [4, 3, 1], [1, 9, 1]),
        (ForwardMode.DECODE, [3], [1]),
    ):
        batch = engine.batch(mode, slots, None if mode.is_decode() else lengths)
        engine.backend.init_forward_metadata(batch)
        assert engine.run(batch, lengths) < 1e-5
        engine.check_states()


def test_one_token_of_extend_is_decode(device, kernels):
    results = []
    for mode in (ForwardMode.DECODE, ForwardMode.EXTEND, ForwardMode.MIXED):
        engine = Engine(device, kernels)
        start = engine.batch(ForwardMode.EXTEND, [1, 2], [9, 4])
        engine.backend.init_forward_metadata(start)
        engine.run(start, [9, 4])
        batch = engine.batch(mode, [2, 1], None if mode.is_decode() else [1, 1])
        engine.backend.init_forward_metadata(batch)
        inputs = make_inputs(engine.rng, 2, HK, HV)
        out = engine.layers[0](batch, inputs["qkv"], inputs["a"], inputs["b"])
        results.append((out.tobytes(), engine.pool.state(0).tobytes()))
    # Decode that leaves its token pending adds up in another order.
    assert engine.defers or results[0] == results[1]
    assert results[1] == results[2]


def test_requests_without_tokens(engine):
    """R11: nothing of theirs is read or written. Another request may have their slot."""
    batch = engine.batch(ForwardMode.EXTEND, [1, 2], [3, 4])
    engine.backend.init_forward_metadata(batch)
    engine.run(batch, [3, 4])
    for _ in range(3):
        batch = engine.batch(ForwardMode.DECODE, [1, 2])
        engine.backend.init_forward_metadata(batch)
        engine.run(batch, [1, 1])

    def memory():
        pool = engine.pool
        pending = pool.pending(0) if engine.defers else ()
        return [array[1].tobytes() for array in (*pool.get_layer_state(0), *pending)]

    before, lengths = memory(), [0, 0, 5, 0]
    batch = engine.batch(ForwardMode.EXTEND, [2, 1, 2, 2], lengths)
    engine.backend.init_forward_metadata(batch)
    assert engine.run(batch, lengths) < 1e-5
    assert memory() == before
    if engine.defers:
        assert engine.pool.has_pending([1, 2]) == [True, False]


def test_ids_that_are_no_slot(engine):
    """D3, D4: the null slot, a negative id, one past the end, one that no i32 holds."""
    slots = [2, 0, -1, 7, 2**32 + 1]
    for mode, lengths in ((ForwardMode.EXTEND, [3] * 5), (ForwardMode.DECODE, [1] * 5)):
        batch = engine.batch(mode, slots, None if mode.is_decode() else lengths)
        engine.backend.init_forward_metadata(batch)
        assert engine.run(batch, lengths) < 1e-5
        engine.check_states()


def test_idle_gives_zeros(engine):
    batch = engine.batch(ForwardMode.IDLE, [])
    engine.backend.init_forward_metadata(batch)
    inputs = make_inputs(engine.rng, 3, HK, HV)
    out = engine.layers[0](batch, inputs["qkv"], inputs["a"], inputs["b"])
    assert out.shape == (3, HV * D) and (out == 0).all()
    assert engine.backend.forward_metadata is None
    none = {name: array[:0] for name, array in inputs.items()}
    batch = engine.batch(ForwardMode.EXTEND, [1], [0])
    engine.backend.init_forward_metadata(batch)
    out = engine.layers[0](batch, none["qkv"], none["a"], none["b"])
    assert out.shape == (0, HV * D)
    engine.check_states()


def test_replay_pads_with_the_null_slot(engine):
    """D8: the caller's tail still names live slots; addresses stay."""
    start = engine.batch(ForwardMode.EXTEND, [1, 2, 3], [4, 5, 6])
    engine.backend.init_forward_metadata(start)
    engine.run(start, [4, 5, 6])
    backend = engine.backend
    fill = backend.get_cuda_graph_seq_len_fill_value()
    assert fill == 1
    backend.init_cuda_graph_state(4, 4)
    backend.init_forward_metadata_capture_cuda_graph(
        4, np.zeros(4, np.int64), np.full(4, fill, np.int32)
    )
    address = backend.forward_metadata.cache_indices.ctypes.data
    slots = np.array([3, 1, 2, 1], np.int64)
    # What pads lengths is the business of full attention.
    for padding in (fill, 64):
        lengths = np.array([7, padding, padding, padding])
        backend.init_forward_metadata_replay_cuda_graph(4, slots, lengths, num_reqs=1)
        assert backend.forward_metadata.cache_indices.tolist() == [3, 0, 0, 0]
    assert backend.forward_metadata.cache_indices.tolist() == [3, 0, 0, 0]
    assert backend.forward_metadata.cache_indices.ctypes.data == address
    batch = engine.batch(ForwardMode.DECODE, [3, 0, 0, 0])
    assert engine.run(batch, [1] * 4) < 1e-5
    engine.check_states()
    # A shorter batch uses the front of the same buffer.
    backend.init_forward_metadata_replay_cuda_graph(2, slots, np.array([9, 9]), num_reqs=2)
    assert backend.forward_metadata.cache_indices.tolist() == [3, 1]
    assert backend.forward_metadata.cache_indices.ctypes.data == address
    with pytest.raises(ValueError, match="num_reqs: expected how many of the 4 rows"):
        backend.init_forward_metadata_replay_cuda_graph(4, slots, np.full(4, 9))


def test_graphs_of_extend(engine):
    """Where a graph has room: fewer requests and tokens than it was captured for, and none."""
    backend = engine.backend
    backend.init_cuda_graph_state(4, 90)
    extend = {"forward_mode": ForwardMode.EXTEND, "num_tokens": 90}
    backend.init_forward_metadata_capture_cuda_graph(4, np.zeros(4, np.int64), None, **extend)
    assert backend.forward_metadata.cu_seqlens.tolist() == [0] * 5
    for slots, lengths in (([3, 1], [70, 20]), ([2], [1]), ([1, 3, 2], [1, 0, 5]), ([], [])):
        batch = engine.batch(ForwardMode.EXTEND, [*slots, 0], [*lengths, 90 - sum(lengths)])
        padded = np.array([*slots, *[1] * (4 - len(slots))], np.int64)
        backend.init_forward_metadata_replay_cuda_graph(
            4, padded, None, num_reqs=len(slots), extend_seq_lens=lengths, **extend
        )
        # The tokens of padding are those of a request in the null slot.
        assert engine.run(batch, [*lengths, 90 - sum(lengths)]) < 1e-5
        engine.check_states()
    with pytest.raises(GdnError, match="at most 90 tokens, those of the graph, got 91"):
        backend.init_forward_metadata_replay_cuda_graph(
            4, padded, None, num_reqs=1, extend_seq_lens=[91], **extend
        )
    with pytest.raises(ValueError, match="extend_seq_lens: expected those of a graph of extend"):
        backend.init_forward_metadata_replay_cuda_graph(4, padded, None, num_reqs=1, **extend)
    with pytest.raises(ValueError, match="num_tokens: expected those of a graph of extend"):
        backend.init_forward_metadata_capture_cuda_graph(
            4, padded, None, forward_mode=ForwardMode.EXTEND
        )


def test_views_keep_the_backend(engine):
    """Arrays of metadata are in the backend's memory, which lives as long as they do."""
    device, kernels = engine.backend.device, engine.backend.kernels
    backend = GDNAttnBackend(engine.backend.gdn_pool, device, kernels=kernels)
    backend.init_forward_metadata(engine.batch(ForwardMode.DECODE, [1, 2]))
    slots = backend.forward_metadata.cache_indices
    # That of a larger batch is elsewhere.
    many = ForwardBatch(ForwardMode.DECODE, 3000, req_pool_indices=np.arange(3000))
    backend.init_forward_metadata(many)
    assert backend.forward_metadata.cache_indices.tolist() == list(range(3000))
    assert slots.tolist() == [1, 2]
    alive = weakref.ref(backend)
    del backend, many
    gc.collect()
    assert alive() is not None and slots.tolist() == [1, 2]
    del slots
    gc.collect()
    assert alive() is None


def test_choice_is_reported_once(device, kernels, caplog):
    engine = Engine(device, kernels, gdn_decode_backend="flashinfer")
    caplog.set_level(logging.INFO, logger="gdn.layers.attention.gdn_backend")
    for _ in range(2):
        batch = engine.batch(ForwardMode.DECODE, [1])
        engine.backend.init_forward_metadata(batch)
        engine.run(batch, [1])
    warnings = [r.message for r in caplog.records if r.levelno == logging.WARNING]
    assert warnings == ["gdn_decode_backend: expected auto or gdn, got flashinfer; using gdn"]
    assert sum("decode of linear attention" in r.message for r in caplog.records) == 1


def test_refusals(engine, device, kernels):
    batch = engine.batch(ForwardMode.DECODE, [1])
    inputs = make_inputs(engine.rng, 1, HK, HV)
    with pytest.raises(GdnError, match="expected init_forward_metadata before forward_gdn"):
        engine.layers[0](batch, inputs["qkv"], inputs["a"], inputs["b"])
    engine.backend.init_forward_metadata(batch)
    extend = engine.batch(ForwardMode.EXTEND, [1], [1])
    with pytest.raises(GdnError, match="expected that of init_forward_metadata, decode, got ext"):
        engine.layers[0](extend, inputs["qkv"], inputs["a"], inputs["b"])
    with pytest.raises(ValueError, match="req_pool_indices: expected at least 2 elements, got 1"):
        batch.batch_size = 2
        engine.backend.init_forward_metadata(batch)
    # What finds no memory leaves nothing behind.
    with pytest.raises(GdnError, match="max_bs: expected 1 to 8388607, got 1099511627776"):
        engine.backend.init_cuda_graph_state(2**40, 1)
    with pytest.raises(GdnError, match="init_cuda_graph_state: expected a call before graphs"):
        engine.backend.init_forward_metadata_capture_cuda_graph(1, np.array([1]), None)
    # A device without prefill kernels says so when a prompt comes.
    lacking = Engine(device, {kind: k for kind, k in kernels.items() if kind != "prefill"})
    batch = lacking.batch(ForwardMode.EXTEND, [1], [5])
    lacking.backend.init_forward_metadata(batch)
    with pytest.raises(GdnError, match="prefill: the step has 1 rows of that kind") as caught:
        lacking.run(batch, [5])
    assert caught.value.status == "UNSUPPORTED"


class Recorder:
    """A full side that writes down how it was called."""

    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def __getattr__(self, method):
        def record(*args, **kwargs):
            self.calls.append((self.name, method, args, kwargs))
            return f"{self.name}.{method}"

        return record


def test_hybrid_delegates_as_the_original():
    calls = []
    full, gdn = Recorder(calls, "full"), Recorder(calls, "gdn")
    hybrid = HybridAttnBackend(full, gdn, {3, 7})
    assert isinstance(hybrid, AttentionBackend)
    assert (hybrid.full_attn_backend, hybrid.gdn_backend) == (full, gdn)
    assert hybrid.full_attn_layer_ids == {3, 7}
    batch = SimpleNamespace(forward_mode=ForwardMode.DECODE)
    hybrid.init_forward_metadata(batch)
    hybrid.init_cuda_graph_state(8, 16)
    assert calls == [
        ("full", "init_forward_metadata", (batch,), {}),
        ("gdn", "init_forward_metadata", (batch,), {}),
        ("full", "init_cuda_graph_state", (8, 16), {}),
        ("gdn", "init_cuda_graph_state", (8, 16), {}),
    ]
    calls.clear()
    assert hybrid.forward("q", "k", "v", "layer", batch, sinks=1) == "full.forward_decode"
    batch.forward_mode = ForwardMode.MIXED
    assert hybrid.forward("q", "k", "v", "layer", batch, False) == "full.forward_extend"
    assert hybrid.forward_gdn("layer", batch, "x", "a", "b") == "gdn.forward_gdn"
    assert hybrid.get_cuda_graph_seq_len_fill_value() == "full.get_cuda_graph_seq_len_fill_value"
    ids = ("q", "k", "v", "layer", batch)
    assert calls[:2] == [
        ("full", "forward_decode", ids, {"save_kv_cache": True, "sinks": 1}),
        ("full", "forward_extend", ids, {"save_kv_cache": False}),
    ]
    assert calls[2][3] == {
        "layer": "layer",
        "forward_batch": batch,
        "mixed_qkv": "x",
        "a": "a",
        "b": "b",
    }
    calls.clear()
    graph = {"bs": 4, "req_pool_indices": "ids", "seq_lens": "lens"}
    hybrid.init_forward_metadata_capture_cuda_graph(
        num_tokens=4, forward_mode=ForwardMode.DECODE, **graph
    )
    rest = {"seq_lens_sum": 9, "forward_mode": ForwardMode.DECODE, "seq_lens_cpu": None}
    hybrid.init_forward_metadata_replay_cuda_graph(**graph, **rest, num_reqs=3)
    assert [(name, kwargs) for name, _, _, kwargs in calls] == [
        ("full", graph | {"num_tokens": 4, "forward_mode": ForwardMode.DECODE}),
        ("gdn", graph),
        ("full", graph | rest),
        ("gdn", graph | {"num_reqs": 3}),
    ]
    calls.clear()
    extend = {"forward_mode": ForwardMode.EXTEND, "num_tokens": 30}
    hybrid.init_forward_metadata_capture_cuda_graph(**graph, **extend)
    rest["forward_mode"] = ForwardMode.EXTEND
    lengths = {"num_tokens": 30, "extend_seq_lens": [9, 9]}
    hybrid.init_forward_metadata_replay_cuda_graph(**graph, **rest, num_reqs=2, **lengths)
    assert [(name, kwargs) for name, _, _, kwargs in calls] == [
        ("full", graph | extend),
        ("gdn", graph | extend),
        ("full", graph | rest),
        ("gdn", graph | extend | lengths | {"num_reqs": 2}),
    ]


def test_base_class():
    with pytest.raises(TypeError, match="abstract"):
        AttentionBackend()

    class Small(AttentionBackend):
        def init_forward_metadata(self, forward_batch):
            raise AssertionError("IDLE reaches no backend")

        forward_decode = forward_extend = init_forward_metadata

    small = Small()
    layer = SimpleNamespace(tp_q_head_num=3, v_head_dim=5)
    idle = SimpleNamespace(forward_mode=ForwardMode.IDLE)
    out = small.forward(np.full((2, 9), np.nan, np.float32), None, None, layer, idle)
    assert out.shape == (2, 15) and out.dtype == np.float32 and (out == 0).all()
    for method, arguments in {
        "forward_gdn": (layer, idle, None, None, None),
        "get_cuda_graph_seq_len_fill_value": (),
        "init_cuda_graph_state": (1, 1),
        "init_forward_metadata_capture_cuda_graph": (1, 1, None, None, None),
        "init_forward_metadata_replay_cuda_graph": (1, None, None, 1, None, None),
    }.items():
        with pytest.raises(NotImplementedError):
            getattr(small, method)(*arguments)


class EngineMode(IntEnum):
    """Modes with the numbers of other engines, and one that is theirs alone."""

    EXTEND = 1
    DECODE = 2
    MIXED = 3
    IDLE = 4
    TARGET_VERIFY = 5

    def is_extend(self) -> bool:
        return self in (EngineMode.EXTEND, EngineMode.MIXED, EngineMode.TARGET_VERIFY)

    def is_decode(self) -> bool:
        return self is EngineMode.DECODE


@pytest.mark.parametrize("mode", EngineMode)
def test_modes_of_an_engine(engine, mode):
    """They are known by their names: the number of one is that of another here."""
    lengths = [3, 2] if mode.is_extend() else [1, 1]
    batch = engine.batch(mode, [2, 5], lengths if mode.is_extend() else None)
    if mode is EngineMode.TARGET_VERIFY:
        for call in (engine.backend.init_forward_metadata, lambda b: engine.run(b, lengths)):
            with pytest.raises(
                ValueError, match=r"forward_mode: expected one of EXTEND, .* got <E"
            ):
                call(batch)
        return
    engine.backend.init_forward_metadata(batch)
    if mode is EngineMode.IDLE:
        out = engine.layers[0](batch, *make_inputs(engine.rng, 2, HK, HV).values())
        assert not out.any()
        return
    assert engine.run(batch, lengths) < 1e-5
    engine.check_states()


def test_sizes_of_a_layer(engine):
    layer = engine.layers[0]
    layer.num_k_heads, layer.key_dim = 2, 2 * D
    batch = engine.batch(ForwardMode.DECODE, [1])
    engine.backend.init_forward_metadata(batch)
    with pytest.raises(
        ValueError, match=r"conv_weight: expected the shape \[384, K\], .* got \[256"
    ):
        engine.run(batch, [1])


def test_hybrid_model_on_the_cpu(device, engine):
    """A step of a model with both kinds of layers through one backend."""
    rng = np.random.default_rng(6)
    cache = Cache(rng, 1, 8, 8, np.float32)
    hybrid = HybridAttnBackend(PagedAttnBackend(device), engine.backend, {3})
    full = SimpleNamespace(
        layer_id=3, tp_q_head_num=2, tp_k_head_num=1, tp_v_head_num=1, head_dim=8, v_head_dim=8
    )
    done = 0
    for mode, length in ((ForwardMode.EXTEND, 6), (ForwardMode.DECODE, 1)):
        batch = engine.batch(
            mode,
            [2],
            None if mode.is_decode() else [length],
            seq_lens=np.array([done + length], np.int32),
            out_cache_loc=np.array(cache.place(2, done, length), np.int64),
            req_to_token_pool=cache,
            token_to_kv_pool=cache,
        )
        batch.attn_backend = hybrid
        hybrid.init_forward_metadata(batch)
        assert engine.run(batch, [length]) < 1e-5
        q, k, v = (rng.standard_normal((length, n)).astype(np.float32) for n in (16, 8, 8))
        out = hybrid.forward(q, k, v, full, batch)
        assert out.shape == (length, 16) and np.isfinite(out).all()
        done += length
    engine.check_states()
