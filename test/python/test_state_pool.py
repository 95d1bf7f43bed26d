# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State pools from Python: NumPy arrays in place, owners, the caller's memory."""

import gc
import re
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from gdn import GdnError, HostTier, Runtime, StateCache, StatePool, StatePoolShape, _abi

SHAPE = StatePoolShape(
    num_layers=3,
    num_requests=4,
    num_track=2,
    num_key_heads=1,
    num_value_heads=2,
    key_dim=8,
    value_dim=4,
)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture
def device(runtime):
    return runtime.device()


def test_arrays_are_in_place(device):
    pool = StatePool(device, SHAPE)
    state, conv = pool.get_layer_state(1)
    assert (state.shape, state.dtype) == ((7, 2, 4, 8), np.float32)
    assert (conv.shape, conv.dtype) == ((7, 24, 3), ml_dtypes.bfloat16)
    assert pool.mem_bytes == SHAPE.bytes(device._runtime)
    state[3], conv[3] = 5, 6
    assert pool.state(1)[3].min() == 5
    pool.copy_states(3, 4)
    assert state[4].min() == 5
    assert conv[4].astype(np.float32).min() == 6
    pool.reset_states(np.array([3, 0, -1]))
    assert not state[3].any()
    assert state[4].all()
    pool.reset_states([])


def test_arrays_keep_the_pool_alive(device):
    state = StatePool(device, SHAPE).state(2)
    gc.collect()
    state[:] = 1
    assert state.sum() == state.size


def test_owners(device):
    pool = StatePool(device, SHAPE)
    assert pool.allocate(5) is None
    assert pool.allocate(3) == [1, 2, 3]
    assert pool.fork(2) == 4
    assert pool.fork(2) is None
    assert (pool.num_slots, pool.num_free, pool.num_free_track) == (7, 0, 2)
    assert [pool.alloc_track_slot() for _ in range(3)] == [5, 6, None]
    pool.free_track_slot(6)
    pool.free([3, 1])
    assert pool.num_free == 2
    with pytest.raises(GdnError, match="INVALID_ARGUMENT: state_pool: slot 3 is free"):
        pool.free([3])


def test_debug_checks(device):
    pool = StatePool(device, SHAPE, debug_checks=True)
    pool.allocate(2)
    pool.free([2])
    assert np.isnan(pool.state(0)[2]).all()
    assert np.isnan(pool.conv(0)[2].astype(np.float32)).all()
    with pytest.raises(GdnError, match="slot 2 is free"):
        pool.check_batch([1, 2])
    with pytest.raises(GdnError, match="slot 1 occurs twice"):
        pool.check_batch([1, 0, -1, 1])


@pytest.mark.parametrize("layout, strides", [("DS", (72, 3, 1)), ("SD", (72, 1, 24))])
def test_layouts_of_the_window(device, layout, strides):
    pool = StatePool(device, StatePoolShape(**{**vars(SHAPE), "conv_layout": layout}))
    assert tuple(s // 2 for s in pool.conv(0).strides) == strides


def test_history_of_the_window(device):
    pool = StatePool(device, StatePoolShape(**{**vars(SHAPE), "conv_extra": 2}))
    assert pool.conv(0).shape == (7, 24, 3)
    assert pool.conv_history(0).shape == (7, 24, 5)
    pool.conv_history(0)[2] = 1
    pool.reset_states([2])
    assert not pool.conv_history(0).any()


def test_pending_tokens(device):
    pool = StatePool(device, StatePoolShape(**{**vars(SHAPE), "pending_tokens": 2}))
    shapes = [array.shape for array in pool.pending(1)]
    assert shapes == [(7, 1, 2, 8), (7, 2, 2, 4), (7, 2, 2)]
    assert pool.conv_history(0).shape == (7, 24, 5)
    pool.pending(2)[1][3] = 5
    pool.copy_states(3, 4)
    assert pool.pending(2)[1][4].min() == 5


def test_memory_of_the_caller(device):
    states = np.ones((3, 7, 2, 4, 8), np.float32)
    convs = [np.ones((7, 5, 24), ml_dtypes.bfloat16).transpose(0, 2, 1) for _ in range(3)]
    pool = StatePool.wrap(device, replace(SHAPE, state_dtype="bfloat16"), states, convs)
    assert pool.conv(0).shape == (7, 24, 3)
    # What the arrays say.
    assert pool.shape == replace(SHAPE, state_dtype="float32", conv_extra=2)
    assert pool.allocate(1, zero=True) == [1]
    assert not states[:, 1].any()
    assert states[:, 2:].all()
    assert not any(conv[1].any() for conv in convs)
    assert np.shares_memory(pool.state(2), states[2])
    with pytest.raises(ValueError, match="states: expected 3 layers, got 2"):
        StatePool.wrap(device, SHAPE, states[:2], convs)
    with pytest.raises(GdnError, match="expected size 2 of dim 1, got 1"):
        StatePool.wrap(device, SHAPE, states[:, :, :1], convs)


def test_slots_of_somebody_else(device):
    pool = StatePool(device, SHAPE, debug_checks=True, foreign_requests=True)
    pool.reset_states([1, 2, 3, 4])
    with pytest.raises(GdnError, match="given out by somebody else"):
        pool.allocate(1)
    assert pool.alloc_track_slot() == 5


def test_how_many_fit(runtime):
    one = StatePoolShape(**{**vars(SHAPE), "num_requests": 0, "num_track": 0}).bytes(runtime)
    assert SHAPE.requests_that_fit(runtime, 100 * one) in (96, 97)
    assert SHAPE.requests_that_fit(runtime, one) == 0
    with pytest.raises(ValueError, match="state_dtype: expected one of float32"):
        StatePoolShape(**{**vars(SHAPE), "state_dtype": "int8"}).bytes(runtime)
    with pytest.raises(GdnError, match="state_dtype: expected f32, bf16 or f16, got i32"):
        StatePoolShape(**{**vars(SHAPE), "state_dtype": "int32"}).bytes(runtime)


def test_counts_that_no_pool_has(device):
    pool = StatePool(device, SHAPE)
    tier = HostTier(pool, 2)
    cache = StateCache(pool, max_nodes=4, max_tokens=64)
    for take in (pool.allocate, pool.allocate_track, tier.allocate, cache.take_slots):
        assert take(0) == [] and take(5) is None and take(2**40) is None
        with pytest.raises(ValueError, match="count: expected 0 or more slots, got -1"):
            take(-1)
    assert (pool.num_free, pool.num_free_track, tier.num_free) == (4, 2, 2)


@pytest.mark.parametrize("kind", [ValueError, TypeError])
@pytest.mark.parametrize("text", ["{0.__name__}", "{0}"])
def test_what_ctypes_says_of_an_argument(kind, text):
    """Python 3.10 has the class as text, later ones its name."""
    error = _abi.wrong_argument("f", f"argument 2: {text.format(kind)}: expected 1, got 2")
    assert (type(error), str(error)) == (kind, "f: argument 2: expected 1, got 2")


def test_numbers_that_no_field_holds(runtime, device):
    """What ctypes cuts names another slot, or another size."""
    pool = StatePool(device, SHAPE)
    (slot,) = pool.allocate(1)
    with pytest.raises(
        ValueError, match=f"fork: .*expected an integer of 32 bits, got {2**32 + 1}"
    ):
        pool.fork(2**32 + slot)
    assert pool.num_free == 3
    for name, value in (("num_requests", 2**64 + 4), ("deferred_writes", 2**32)):
        with pytest.raises(
            ValueError, match=f"{name}: expected an integer of .* bits, got {value}"
        ):
            StatePoolShape(**{**vars(SHAPE), name: value}).bytes(runtime)
    with pytest.raises(ValueError, match=r"that_fit: .*expected an integer of 64 bits, got -1"):
        SHAPE.requests_that_fit(runtime, -1)
    with pytest.raises(TypeError, match="that_fit"):
        SHAPE.requests_that_fit(runtime, 1e9)
    with pytest.raises(ValueError, match="num_workers: expected an integer of 32 bits"):
        runtime.device(num_workers=2**32 + 1)


@pytest.mark.parametrize("slots", [[2**31], [-(2**31) - 1]])
def test_ids_have_32_bits(device, slots):
    with pytest.raises(ValueError, match="slots: expected ids of 32 bits"):
        StatePool(device, SHAPE).reset_states(slots)


@pytest.mark.parametrize("value", [1.5, "2", None])
def test_what_no_field_can_be(device, value):
    """ctypes does not say which."""
    expected = f"expected an integer, got {re.escape(repr(value))}"
    with pytest.raises(TypeError, match=f"num_requests: {expected}"):
        StatePool(device, replace(SHAPE, num_requests=value))
    with pytest.raises(TypeError, match=f"count: {expected}"):
        StatePool(device, SHAPE).allocate(value)
    with pytest.raises(TypeError, match=f"layer: {expected}"):
        StatePool(device, SHAPE).layer_states(value)


@pytest.mark.parametrize("name", ["state_dtype", "conv_dtype", "pending_dtype"])
def test_types_of_no_state(device, name):
    with pytest.raises(GdnError, match=rf"{name}: expected f32( or|, bf16 or) .*f16, got u8"):
        StatePool(device, replace(SHAPE, **{name: "uint8"}))


def test_layers_of_the_caller_are_alike(device):
    """What differs is said, with both."""
    shape = replace(SHAPE, num_layers=2)
    states = [np.zeros((7, 2, 4, 8), np.float32) for _ in range(2)]
    convs = [np.zeros((7, 24, 3), np.float32) for _ in range(2)]
    for other, message in (
        (states[1].astype(np.float16), "layer 1: expected dtype f32, that of layer 0, got f16"),
        (states[1].astype(np.float64), "layer 1: expected dtype f32, bf16 or f16, got f64"),
        (
            np.zeros((14, 2, 4, 8), np.float32)[::2],
            "layer 1: expected stride 64 of dim 0, that of layer 0, got 128",
        ),
    ):
        with pytest.raises(GdnError, match=message):
            StatePool.wrap(device, shape, [states[0], other], convs)


def test_the_guide(build_dir, capsys):
    guide = Path(__file__).resolve().parents[2] / "docs/guides/state-pools.md"
    # Others need an image, and run with all guides.
    example, *_ = re.findall(r"^```python\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
    exec(example.replace("Runtime()", f"Runtime({str(build_dir / 'lib/libgdnrt.so')!r})"), {})
    count, _, rest = capsys.readouterr().out.partition(" ")
    assert 900 < int(count) < 1100
    assert rest == "sequences fit in 20 GiB\n"
