# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of arrays on a layer of a StatePool: states in planes and pending tokens, beside states
of f32 that each token writes; and what such a layer is not taken for."""

import ml_dtypes
import numpy as np
import pytest
from rule_cases import DK, DV, HV, H, draw, error_of, ready

from gdn import Runtime, StatePool, StatePoolShape
from gdn.rule import gated_delta_rule
from gdn.rule_pool import commit_pending, delta_prefill, gated_delta_prefill
from gdn.rule_step import delta_step, gated_delta_step
from gdn.rule_verify import gated_delta_verify, gated_delta_verify_in_slots

REQUESTS, ROOM = 5, 4
FORMS = {
    "f32": ({}, 1e-6),
    "bf16": ({"state_dtype": "bfloat16"}, 2e-2),
    "i8x2": ({"state_dtype": "i8x2"}, 5e-4),
    "f32 deferred": ({"pending_tokens": ROOM, "deferred_writes": True}, 1e-5),
    "i8x2 deferred": (
        {"state_dtype": "i8x2", "pending_tokens": ROOM, "deferred_writes": True},
        5e-4,
    ),
    "i8 deferred f16": (
        {
            "state_dtype": "i8",
            "pending_tokens": ROOM,
            "deferred_writes": True,
            "pending_dtype": "float16",
        },
        5e-2,
    ),
}
pytestmark = [pytest.mark.usefixtures("compiler_on_path"), pytest.mark.once(compiler="cpu")]


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture
def pool_of(runtime):
    def make(form="i8x2 deferred", **others):
        sizes = {"num_key_heads": H, "num_value_heads": HV, "key_dim": DK, "value_dim": DV}
        shape = StatePoolShape(2, REQUESTS, **sizes | FORMS[form][0] | others)
        return StatePool(runtime.device(num_workers=2), shape)

    return make


def one_token(rng, slots):
    return draw(rng, len(slots)) | {"slots": np.array(slots)}


@pytest.mark.parametrize("form", FORMS)
def test_steps_and_prompts(runtime, pool_of, form):
    """Nine steps of some sequences, more than stay pending, with raw gates and with ready ones;
    then prompts, of which one begins anew in a slot with pending tokens and one is skipped; and
    steps again. Everything is done on states of f32, too."""
    rng, bound = np.random.default_rng(3), FORMS[form][1]
    pool = pool_of(form)
    states = np.zeros((pool.num_slots, HV, DV, DK), np.float32)
    layer = pool.layer_states(1)

    def both(function, given, **options):
        options |= {"l2norm": True}
        want = function(**given, states=states, runtime=runtime, **options)
        found = function(**given, states=layer, runtime=runtime, **options)
        assert error_of(found, want) < bound

    for step in range(9):
        given = one_token(rng, [[1, 3, 2], [3, 1], [1, 2, -1]][step % 3])
        if step % 2:
            both(gated_delta_step, given)
        else:
            both(delta_step, ready(given) | {"slots": given["slots"]})
    if pool.shape.deferred_writes:
        assert pool.has_pending([1, 2, 3, 4]) == [True, True, True, False]
    starts = np.array([0, 3, 9, 10, 12])
    prompts = ready(draw(rng, 12)) | {"slots": np.array([3, 1, 4, -1]), "cu_seqlens": starts}
    both(delta_prefill, prompts, has_initial=np.array([True, False, False, True]))
    if pool.shape.deferred_writes:
        assert pool.has_pending([1, 2, 3, 4]) == [False, True, False, False]
    raw = draw(rng, 5) | {"slots": np.array([2]), "cu_seqlens": np.array([0, 5])}
    both(gated_delta_prefill, raw)
    for _ in range(3):
        both(gated_delta_step, one_token(rng, [4, 3, 2, 1]))
    # The other layer of the pool is as it was.
    assert not pool.state(0).any()


def test_steps_in_place_behind_deferred_ones(runtime, pool_of):
    """What is pending is committed by a prefill; from there on the array of states is all."""
    rng, pool, slots = np.random.default_rng(4), pool_of("f32 deferred"), [2, 4]
    states = np.zeros((pool.num_slots, HV, DV, DK), np.float32)
    layer, starts = pool.layer_states(0), {"cu_seqlens": np.arange(3)}
    for step in range(9):
        given = one_token(rng, slots)
        gated_delta_step(**given, states=states, runtime=runtime)
        gated_delta_step(**given, states=layer, runtime=runtime)
        if step in (2, 6):
            assert pool.has_pending(slots) == [True, True]
            assert error_of(pool.state(0)[slots], states[slots]) > 1e-2
            given = one_token(rng, slots) | starts
            gated_delta_prefill(**given, states=states, runtime=runtime)
            gated_delta_prefill(**given, states=layer, runtime=runtime)
            assert pool.has_pending(slots) == [False, False]
            given = one_token(rng, slots)
            want = gated_delta_step(**given, states=states, runtime=runtime)
            found = gated_delta_step(**given, states=pool.state(0), runtime=runtime)
            assert error_of(found, want) < 1e-5
            assert error_of(pool.state(0)[slots], states[slots]) < 1e-5


def test_sequences_without_tokens(runtime, pool_of):
    """They keep what is pending. Their slots may be those of other sequences, which begin with a
    commit."""
    rng, pool = np.random.default_rng(10), pool_of("f32 deferred")
    layer, options = pool.layer_states(0), {"runtime": runtime, "l2norm": True}
    for _ in range(3):
        gated_delta_step(**one_token(rng, [1, 2]), states=layer, **options)
    arrays = [pool.state(0), *pool.pending(0)]
    before, inputs = [array.copy() for array in arrays], draw(rng, 4)
    want = gated_delta_prefill(
        **inputs, states=layer, slots=np.array([2]), cu_seqlens=np.array([0, 4]), **options
    )
    for array, was in zip(arrays, before, strict=True):
        array[...] = was
    slots, starts = np.array([2, 1, 2, 2]), np.array([0, 0, 0, 4, 4])
    found = gated_delta_prefill(**inputs, states=layer, slots=slots, cu_seqlens=starts, **options)
    assert found.tobytes() == want.tobytes()
    assert all(a[1].tobytes() == was[1].tobytes() for a, was in zip(arrays, before, strict=True))
    assert pool.has_pending([1, 2]) == [True, False]


@pytest.mark.parametrize("order", ["vk", "kv"])
def test_memory_of_the_caller(runtime, order):
    """Types of states are those of the arrays, in either order, also for a commit."""
    rng = np.random.default_rng(11)
    states = np.zeros((1, REQUESTS + 1, HV, DV, DK), ml_dtypes.bfloat16)
    if order == "kv":
        states = np.zeros((1, REQUESTS + 1, HV, DK, DV), states.dtype).swapaxes(-1, -2)
    convs = np.zeros((1, REQUESTS + 1, 2 * H * DK + HV * DV, 3), np.float32)
    shape = StatePoolShape(1, REQUESTS, H, HV, DK, DV, pending_tokens=ROOM, deferred_writes=True)
    pool = StatePool.wrap(runtime.device(), shape, states, convs)
    layer, options = pool.layer_states(0), {"runtime": runtime, "l2norm": True}
    wide = np.zeros(states.shape[1:], np.float32)
    for _ in range(3):
        given = one_token(rng, [2, 4])
        found = gated_delta_step(**given, states=layer, **options)
        assert error_of(found, gated_delta_step(**given, states=wide, **options)) < 2e-2
    commit_pending(layer, np.array([4]), io="float32", layout="gated", **options)
    assert pool.has_pending([2, 4]) == [True, False]
    assert error_of(states[0][4].astype(np.float32), wide[4]) < 2e-2
    given = one_token(rng, [2, 4]) | {"cu_seqlens": np.arange(3)}
    found = gated_delta_prefill(**given, states=layer, **options)
    assert error_of(found, gated_delta_prefill(**given, states=wide, **options)) < 2e-2
    assert not any(pool.has_pending([2, 4]))


def test_scale_and_skipped_rows(runtime, pool_of):
    rng, pool = np.random.default_rng(5), pool_of("i8x2 deferred")
    states = np.zeros((pool.num_slots, HV, DV, DK), np.float32)
    for _ in range(3):
        given = one_token(rng, [2, 0, 9])
        outs = [np.full((3, HV, DV), 7, np.float32) for _ in range(2)]
        for where, out in zip((states, pool.layer_states(0)), outs, strict=True):
            options = {"scale": 0.5, "null_slot": 0, "zero_skipped": False, "out": out}
            gated_delta_step(**given, states=where, **options, runtime=runtime)
        assert error_of(outs[1][:1], outs[0][:1]) < 5e-4 and (outs[1][1:] == 7).all()


def refusals():
    deferred = "states of i8x2 with deferred writes of 4 tokens of a StatePool"
    writes = np.arange(1, 3)
    checkpoints = (np.array([0, 1]), np.array([1]), np.array([2]))
    prompt = {"slots": np.array([1]), "cu_seqlens": np.array([0, 2])}
    table = {"cu_seqlens": np.array([0, 2]), "token_slots": np.array([[1, 2]])}
    yield gated_delta_step, {"slots": writes, "write_slots": writes}, f"write_slots: .*{deferred}"
    yield (
        delta_prefill,
        prompt | {"checkpoints": checkpoints},
        f"checkpoints: expected None with {deferred}, got an array",
    )
    buffer = {"slots": np.array([1]), "token_states": np.zeros((2, HV, DV, DK), np.float32)}
    text = f"states: expected states of float32.* got {deferred}; layers verify those"
    yield gated_delta_verify, table | buffer, text
    yield gated_delta_verify_in_slots, table | {"num_accepted": np.array([1])}, text


@pytest.mark.parametrize(
    ("function", "given", "message"), list(refusals()), ids=lambda x: getattr(x, "__name__", "")
)
def test_what_a_pool_does_not_take(runtime, pool_of, function, given, message):
    pool = pool_of()
    inputs = draw(np.random.default_rng(6), 2)
    inputs = ready(inputs) if function is delta_prefill else inputs
    with pytest.raises(ValueError, match=message):
        function(**inputs, **given, states=pool.layer_states(0), runtime=runtime)
    assert not pool.state(0).any() and not any(pool.has_pending([1, 2, 3, 4]))


def test_pools_that_functions_do_not_take(runtime, pool_of):
    with pytest.raises(ValueError, match="pending_tokens=4 without deferred_writes, where the eng"):
        pool_of("f32", pending_tokens=4).layer_states(0)
    with pytest.raises(ValueError, match="expected a decay of each head, got decay_per_channel"):
        pool_of("f32 deferred", decay_per_channel=True).layer_states(0)
    with pytest.raises(ValueError, match="layer: expected 0 to 1, got 2"):
        pool_of("f32").layer_states(2)
    given = one_token(np.random.default_rng(7), [1])
    narrow = pool_of("i8 deferred f16").layer_states(0)
    with pytest.raises(
        ValueError, match="l2norm: expected True with pending tokens of float16, go"
    ):
        gated_delta_step(**given, states=narrow, runtime=runtime)
    with pytest.raises(ValueError, match="l2norm: expected True with pending tokens of float16"):
        commit_pending(narrow, given["slots"], io="float32", runtime=runtime)
    inputs = ready(draw(np.random.default_rng(7), 1)) | {"slots": np.array([1])}
    with pytest.raises(ValueError, match="allow_neg_eigval: expected False with pending tokens of"):
        delta_step(**inputs, states=narrow, l2norm=True, allow_neg_eigval=True, runtime=runtime)
    with pytest.raises(ValueError, match=r"states: expected the shape \[6, 4, 24, 16\], got \[6, "):
        gated_delta_step(**given, states=pool_of("i8x2", key_dim=32).layer_states(0))


def test_functions_that_return_states(runtime, pool_of):
    given = {name: x[None] for name, x in ready(draw(np.random.default_rng(8), 2)).items()}
    message = (
        "initial_state: expected an array of states of .*, got states of i8x2 with deferred writes"
    )
    with pytest.raises(ValueError, match=message):
        gated_delta_rule(**given, initial_state=pool_of().layer_states(0), runtime=runtime)
    with pytest.raises(ValueError, match="got uint8, as planes of bytes have it"):
        gated_delta_rule(**given, initial_state=pool_of().state(0)[:1], runtime=runtime)


def test_planes_of_a_pool_as_an_array(runtime, pool_of):
    """The upper plane alone is not the states."""
    given = one_token(np.random.default_rng(9), [1])
    pool = pool_of("i8x2")
    with pytest.raises(ValueError, match=r"got uint8; states in planes are for .*layer_states"):
        gated_delta_step(**given, states=pool.state(0), runtime=runtime)
