# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer whose states are in planes of bytes, on a StatePool: random steps of all kinds of rows
beside a float64 model, states that are copied, slots that nobody has; and what a pool, a shape or a
kernel that does not fit is told."""

from types import SimpleNamespace

import numpy as np
import pytest
from gdn_layer_model import compile_image, make_weights
from pool_engine import HK, HV, ROOM, D, Engine, S, make_shape, random_steps

from gdn import GdnError, Pool, Runtime, StatePool, StatePoolShape
from gdn.layers.attention import GDNLayer, layer_kernels

OPTIONS = ("--layout=split", "--outputs=core", "--has-initial")
LAZY = ("--verify=lazy", f"--verify-tokens={S + 1}")
DEFERRED = (f"--defer-writes={ROOM}",)
F16 = "--pending=f16"
IMAGES = {
    "f32": OPTIONS,
    "i8x2": (*OPTIONS, "--state=i8x2"),
    "i8x2 verify": (*OPTIONS, "--state=i8x2", *LAZY),
    "i8x2 deferred": (*OPTIONS, "--state=i8x2", *DEFERRED),
    "i8x2 deferred verify": (*OPTIONS, "--state=i8x2", *DEFERRED, *LAZY),
    "i8x2_upper deferred": (*OPTIONS, "--state=i8x2_upper", *DEFERRED),
    "i8 deferred": (*OPTIONS, "--state=i8", *DEFERRED),
    "i8 deferred verify": (*OPTIONS, "--state=i8", *DEFERRED, *LAZY),
    "i8x2 deferred f16": (*OPTIONS, "--state=i8x2", *DEFERRED, F16),
    "i8 deferred verify f16": (*OPTIONS, "--state=i8", *DEFERRED, *LAZY, F16),
    "f32 deferred": (*OPTIONS, *DEFERRED),
    "f32 deferred verify f16": (*OPTIONS, *DEFERRED, *LAZY, F16),
}
# What the formats give of any step, and heads that forget slowly.
BOUNDS = {"f32": 1e-5, "i8x2": 3e-4, "i8x2_upper": 3e-2, "i8": 5e-2}
F16_BOUND = 5e-4
SLOW_BOUNDS = BOUNDS | {"i8x2_upper": 1e-2}
PLANES = [name for name in IMAGES if not name.startswith("f32")]


@pytest.fixture(scope="module")
def device(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so").device(num_workers=2)


@pytest.fixture(scope="module")
def images(device, tool, tmp_path_factory):
    folder, known = tmp_path_factory.mktemp("planes"), {}

    def image(name):
        if name not in known:
            known[name] = device._runtime.image(compile_image(tool, folder, *IMAGES[name]))
        return known[name]

    return image


@pytest.fixture(scope="module")
def kernels(device, images):
    return lambda name: layer_kernels(device, images(name))


def shape_of(name, **options):
    """The options of a pool for these kernels."""
    state, verifies = name.split()[0], "verify" in name
    given = {"state_dtype": {"f32": "float32", "i8x2_upper": "i8x2"}.get(state, state)}
    if "deferred" in name:
        given["conv_extra"] = S + 1 if verifies else 0
        given["pending_dtype"] = "float16" if name.endswith("f16") else "float32"
    else:
        given |= {"deferred_writes": False, "conv_extra": 0}
        given["pending_tokens"] = S + 1 if verifies else 0
    return given | options


def make_engine(device, kernels, name, seed, num_track=0, **options):
    return Engine(
        device,
        kernels(name),
        seed,
        verifies="verify" in name,
        shape=shape_of(name, num_track=num_track),
        bound=max(BOUNDS[name.split()[0]], F16_BOUND if name.endswith("f16") else 0),
        deferred_writes="deferred" in name,
        **options,
    )


# The others have the formats and the ways to write of these, in other pairs.
OFTEN = {"i8x2 verify", "i8x2 deferred f16", "i8x2_upper deferred", "i8 deferred verify"}
STEPS = [
    pytest.param(name, marks=() if name in OFTEN else pytest.mark.long)
    for name in [*PLANES, "f32 deferred verify f16"]
]


@pytest.mark.parametrize("name", STEPS)
def test_random_steps(device, kernels, name):
    for seed in range(6):
        errors = random_steps(make_engine(device, kernels, name, seed), 30)
        assert errors


@pytest.mark.parametrize("name", ["i8x2", "i8x2 deferred", "i8x2_upper deferred", "i8 deferred"])
def test_heads_that_forget_slowly(device, kernels, name):
    engine = make_engine(device, kernels, name, 11, slow=True)
    sequences = [engine.admit() for _ in range(3)]
    assert engine.step(sequences, [70, 3, 1]) < engine.bound
    errors = [engine.step(sequences, [1, 1, 1]) for _ in range(150)]
    assert max(errors) < SLOW_BOUNDS[name.split()[0]]
    # Rounding shows, so it is planes that are read.
    assert max(errors) > 1e-6
    engine.commit(sequences)


def test_pending_tokens_in_f16(device, kernels):
    """The pool's arrays have numbers of f16 and scales that are powers of two."""
    engine = make_engine(device, kernels, "f32 deferred verify f16", 15)
    sequence = engine.admit()
    errors = [engine.step([sequence], [n]) for n in (9, 1, 1, 1)]
    # Rounding shows, so it is what was written that is read.
    assert 1e-6 < max(errors) < engine.bound
    keys, deltas, decays, counts, scales = engine.pool.pending(0)
    assert [a.dtype for a in (keys, deltas, decays, scales)] == [np.float16] * 2 + [np.float32] * 2
    slot = sequence["slot"]
    assert (counts[slot] == 3).all()
    mantissas, _ = np.frexp(scales[slot, :, :3])
    assert (mantissas == 0.5).all()
    largest = np.abs(deltas[slot, :, :3].astype(np.float32)).max(axis=-1)
    assert (largest >= 0.5).all() and (largest <= 2).all()
    fork = engine.fork(sequence)
    for array in engine.pool.pending(0):
        assert array[fork["slot"]].tobytes() == array[slot].tobytes()
    engine.commit([sequence, fork])


@pytest.mark.parametrize("name", ["i8x2 verify", "i8 deferred verify"])
def test_a_state_that_a_cache_keeps(device, kernels, name):
    """All bytes of it are there when it is asked for, pending tokens included."""
    engine = make_engine(device, kernels, name, 12, num_track=1)
    pool, sequence = engine.pool, engine.admit()
    engine.step([sequence], [9])
    engine.step([sequence], [3], [2])
    kept = pool.alloc_track_slot()
    pool.copy_states(sequence["slot"], kept)
    before = [array[kept].tobytes() for array in engine.arrays()]
    fork = engine.fork(sequence)
    for _ in range(ROOM + 2):
        engine.step([sequence], [1])
    engine.finish(sequence)
    assert [array[kept].tobytes() for array in engine.arrays()] == before
    pool.copy_states(kept, fork["slot"])
    pool.free_track_slot(kept)
    assert np.isnan(pool.planes(0)[0][kept]).all()
    for lengths, drafts in (([2], [1]), ([1], None), ([70], None)):
        assert engine.step([fork], lengths, drafts) < engine.bound
    engine.commit([fork])


@pytest.mark.parametrize("name", ["i8x2 verify", "i8 deferred verify", "i8 deferred verify f16"])
@pytest.mark.parametrize("drafts", [-1, S])
def test_other_slots_keep_all_bytes(device, kernels, name, drafts):
    """Those of padding, too, and of slots that nobody has, which hold NaN."""
    engine = make_engine(device, kernels, name, 13, use_full_cuda_graph=True)
    sequences = [engine.admit() for _ in range(2)]
    engine.step(sequences, [5, 3])
    rest = [s for s in range(engine.pool.num_slots) if s not in [x["slot"] for x in sequences]]
    before = [array[rest].tobytes() for array in engine.arrays()]
    assert np.isnan(engine.pool.planes(0)[0][rest]).all()
    tokens = drafts + 1 if drafts > 0 else 1
    for _ in range(ROOM + 2):
        rows = {"num_padded_reqs": 4, "num_actual_tokens": 4 * tokens}
        assert engine.step(sequences, [tokens] * 2, [drafts] * 2, **rows) < engine.bound
        assert [array[rest].tobytes() for array in engine.arrays()] == before


# The memory.


@pytest.mark.parametrize("state", ["i8x2", "i8"])
def test_memory(device, state):
    shape = make_shape(state_dtype=state)
    pool = StatePool(device, shape, debug_checks=True)
    slots = pool.num_slots
    upper, _ = pool.get_layer_state(0)
    scales, *low = pool.planes(0)
    assert (upper.dtype, upper.shape) == (np.uint8, (slots, HV, D, D))
    assert (scales.dtype, scales.shape) == (np.float32, (slots, HV, D))
    assert [(a.dtype, a.shape) for a in low] == [(upper.dtype, upper.shape)] * (state == "i8x2")
    wide = StatePool(device, make_shape())
    saved = slots * HV * D * ((4 - 1 - len(low)) * D - 4)
    assert abs(wide.mem_bytes - pool.mem_bytes - saved) < 2048  # buffers begin at 256 bytes
    assert pool.mem_bytes == shape.bytes(device._runtime)
    memory = 1 << 28
    fit = [s.requests_that_fit(device._runtime, memory) for s in (shape, wide.shape)]
    assert fit[0] > 1.4 * fit[1]

    # A zero state has scales of zero, whatever its bytes are; a free one has NaN.
    (slot,) = pool.allocate(1, zero=False)
    for array in (upper, scales, *low):
        array[slot] = 9
    other = pool.fork(slot)
    assert all((array[other] == 9).all() for array in (upper, scales, *low))
    pool.reset_states([slot])
    assert not scales[slot].any()
    assert scales[other].all()
    pool.free([other])
    assert np.isnan(scales[other]).all()


def test_slots_moved_by_kernels(device, images):
    """Every byte is what the device's copies leave."""
    image, rng = images("i8x2"), np.random.default_rng(5)
    moves = [device.kernel(image, name) for name in ("copy_slots", "zero_slots")]
    shape = make_shape(**shape_of("i8x2"))
    pools = [StatePool(device, shape) for _ in range(2)]
    pools[0].use_kernels(*moves)
    arrays = [[pool.state(0), *pool.planes(0), pool.conv(0)] for pool in pools]
    for one, other in zip(*arrays, strict=True):
        one[...] = rng.integers(0, 255, one.shape)
        other[...] = one
    for pool in pools:
        pool.allocate(4, zero=False)
        pool.copy_states([1, 0, 3], [2, 4, 3])
        pool.reset_states([3, -1])
    for one, other in zip(*arrays, strict=True):
        assert one.tobytes() == other.tobytes()
    assert not pools[0].planes(0)[0][3].any()
    plain = StatePool(device, make_shape(**shape_of("f32")))
    with pytest.raises(GdnError) as error:
        plain.use_kernels(*moves)
    assert str(error.value).endswith(
        "state_pool: state_planes: expected 2, those of copy_slots (--state=i8x2), got 0"
    )


def test_arrays_of_the_caller(device, kernels):
    """A layer of arrays instead of a pool."""
    engine = make_engine(device, kernels, "i8x2", 14)
    pool = engine.pool
    given = {"state_pool": pool.state(0), "conv_pool": pool.conv(0)}
    given |= dict(zip(("state_scales", "state_low"), pool.planes(0), strict=True))
    arrays = {name: Pool(array) for name, array in given.items()}
    engine.layer = GDNLayer(kernels("i8x2"), **engine.weights, **arrays)
    sequence = engine.admit()
    for length in (5, 1, 1):
        assert engine.step([sequence], [length]) < engine.bound
    del arrays["state_low"]
    with pytest.raises(GdnError, match="state_low: the argument is missing, which decode needs"):
        GDNLayer(kernels("i8x2"), **engine.weights, **arrays)


# What is refused.


@pytest.mark.parametrize(
    ("name", "pool", "message"),
    [
        ("i8x2", "f32", "expected 2, those of decode (--state=i8x2), got 0"),
        ("f32", "i8x2", "expected 0, those of decode (--state=f32), got 2"),
        ("i8 deferred", "i8x2 deferred", "expected 1, those of decode (--state=i8), got 2"),
        ("i8x2 deferred", "i8 deferred", "expected 2, those of decode (--state=i8x2), got 1"),
        ("f32 deferred", "i8 deferred", "expected 0, those of decode (--state=f32), got 1"),
    ],
)
def test_a_pool_for_other_kernels(device, kernels, name, pool, message):
    made, weights = StatePool(device, make_shape(**shape_of(pool))), make_weights(np.random, HK, HV)
    with pytest.raises(GdnError) as error:
        GDNLayer(kernels(name), pool=made, **weights)
    assert str(error.value).endswith("state_pool: state_planes: " + message)
    # Also where prefill is all that the layer has.
    prefill = {"prefill": kernels(name)["prefill"]}
    with pytest.raises(GdnError) as error:
        GDNLayer(prefill, pool=made, **weights)
    assert str(error.value).endswith(message.replace("decode", "prefill"))


@pytest.mark.parametrize(
    ("name", "pool", "expected", "got"),
    [
        ("i8x2 deferred f16", "i8x2 deferred", "f16", "f32"),
        ("i8x2 deferred", "i8x2 deferred f16", "f32", "f16"),
    ],
)
def test_a_pool_for_other_tokens(device, kernels, name, pool, expected, got):
    made, weights = StatePool(device, make_shape(**shape_of(pool))), make_weights(np.random, HK, HV)
    with pytest.raises(GdnError) as error:
        GDNLayer(kernels(name), pool=made, **weights)
    assert str(error.value).endswith(
        f"pending_dtype: expected {expected}, that of decode (--pending), got {got}"
    )


@pytest.mark.parametrize("name", IMAGES)
def test_the_shape_of_a_pool_for_kernels(device, kernels, name):
    """Is what the tests of this file write down by hand."""
    counts = {"num_layers": 2, "num_requests": 5, "num_key_heads": HK, "num_value_heads": HV}
    verify_tokens = S + 1 if "verify" in name else 0
    shape = StatePoolShape.for_kernels(
        kernels(name), verify_tokens=verify_tokens, num_track=1, **counts
    )
    by_hand = {**vars(make_shape(**shape_of(name))), **counts, "num_track": 1}
    by_hand |= {"conv_layout": shape.conv_layout}
    assert vars(shape) == by_hand
    weights = make_weights(np.random, HK, HV)
    GDNLayer(kernels(name), pool=StatePool(device, shape), **weights)
    # Of kernels whose verify nobody calls.
    if "verify" in name:
        without = StatePoolShape.for_kernels(kernels(name), **counts)
        assert without.conv_extra == 0
        assert without.pending_tokens == (ROOM if "deferred" in name else 0)


def test_the_shape_of_a_pool_for_other_kernels(kernels):
    """Of the rule alone there is no pool of layers."""
    params = [p for p in kernels("f32")["decode"].params if p.name != "conv_pool"]
    counts = {"num_layers": 1, "num_requests": 1, "num_key_heads": 1, "num_value_heads": 1}
    with pytest.raises(ValueError, match="kernels: expected decode, got prefill"):
        StatePoolShape.for_kernels({"prefill": kernels("f32")["prefill"]}, **counts)
    with pytest.raises(ValueError, match="kernels: expected a decode of layers, with conv_pool"):
        StatePoolShape.for_kernels({"decode": SimpleNamespace(params=params)}, **counts)


def test_shapes(device):
    with pytest.raises(ValueError, match="state_dtype: expected one of float32"):
        make_shape(state_dtype="i4").options()
    with pytest.raises(GdnError) as error:
        StatePool(device, make_shape(**shape_of("i8x2", state_dtype="i8")))
    assert "state_planes: expected 2 without deferred_writes" in str(error.value)
    with pytest.raises(GdnError, match="the pool has no scales of states: expected state_planes"):
        StatePool(device, make_shape()).planes(0)
    shape = StatePoolShape(1, 2, HK, HV, D, D, state_dtype="i8x2", conv_dtype="float32")
    state = np.zeros((3, HV, D, D), np.uint8)
    conv = np.zeros((3, (2 * HK + HV) * D, 3), np.float32)
    with pytest.raises(GdnError, match="state_planes: expected 0 for states in arrays of the"):
        StatePool.wrap(device, shape, [state], [conv])
