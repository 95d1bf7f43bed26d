# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a token on states in place, with arrays of NumPy, against float64."""

import ml_dtypes
import numpy as np
import pytest

from gdn import Runtime
from gdn.rule_step import delta_step, gated_delta_step

H, HV, DK, DV, SLOTS = 2, 4, 16, 24, 9


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


pytestmark = pytest.mark.usefixtures("compiler_on_path")


def draw(rng, rows, io=np.float32):
    def normal(*shape):
        return rng.standard_normal(shape)

    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in normal(2, rows, H, DK))
    given = {
        "q": q,
        "k": k,
        "v": normal(rows, HV, DV),
        "a": normal(rows, HV),
        "b": normal(rows, HV),
    }
    given = {name: x.astype(io) for name, x in given.items()}
    return given | {"A_log": np.log(rng.uniform(1, 8, HV)), "dt_bias": normal(HV)}


def expected(given, states, slots, write_slots, scale=DK**-0.5, l2norm=False):
    """Outputs, and the states after the step, in float64."""
    x = {name: np.asarray(array, np.float64) for name, array in given.items()}
    if l2norm:
        for name in ("q", "k"):
            x[name] /= np.sqrt((x[name] ** 2).sum(-1, keepdims=True) + 1e-6)
    q, k = (np.repeat(x[name], HV // H, axis=1) for name in ("q", "k"))
    decay = np.exp(-np.exp(x["A_log"]) * np.logaddexp(0, x["a"] + x["dt_bias"]))
    beta = 1 / (1 + np.exp(-x["b"]))
    after, out = states.astype(np.float64), np.zeros_like(x["v"])
    for n, (slot, target) in enumerate(zip(slots, write_slots, strict=True)):
        if not 0 <= slot < len(states):
            continue
        state = states[slot].astype(np.float64) * decay[n][:, None, None]
        error = x["v"][n] - np.einsum("hvk,hk->hv", state, k[n])
        state += np.einsum("hv,hk->hvk", beta[n][:, None] * error, k[n])
        out[n] = scale * np.einsum("hvk,hk->hv", state, q[n])
        if 0 <= target < len(states):
            after[target] = state
    return out, after


def error_of(got, want):
    return np.sqrt(((got - want) ** 2).sum() / max((want**2).sum(), 1e-30))


@pytest.mark.parametrize("l2norm", [False, True])
def test_steps_in_place(runtime, l2norm):
    rng = np.random.default_rng(1)
    states = rng.standard_normal((SLOTS, HV, DV, DK)).astype(np.float32)
    slots = np.array([4, 0, 8, 2], np.int64)
    for _ in range(3):
        given = draw(rng, 4)
        if l2norm:
            given["q"], given["k"] = 3 * given["q"], 2 * given["k"]
        want, after = expected(given, states, slots, slots, l2norm=l2norm)
        out = gated_delta_step(**given, states=states, slots=slots, l2norm=l2norm, runtime=runtime)
        assert error_of(out, want) < 1e-5 and error_of(states, after) < 1e-5


@pytest.mark.parametrize("doubled", [False, True])
def test_ready_gates(runtime, doubled):
    """The same of decays and strengths that the caller has made; sequence n has state n."""
    rng = np.random.default_rng(7)
    states = rng.standard_normal((3, HV, DV, DK)).astype(np.float32)
    given = draw(rng, 3)
    gates = {
        "log_decay": -np.exp(given.pop("A_log")) * np.logaddexp(0, given["a"] + given["dt_bias"]),
        "beta": 1 / (1 + np.exp(-given["b"])),
    }
    whole = given | {"A_log": np.zeros(HV)}
    # A rate of 1, and an `a` whose softplus is the decay.
    whole["a"] = np.log(np.expm1(-gates["log_decay"])) - given["dt_bias"]
    want, after = expected(whole, states, range(3), range(3))
    inputs = {name: given[name] for name in ("q", "k", "v")}
    out = delta_step(**inputs, **gates, states=states, allow_neg_eigval=doubled, runtime=runtime)
    assert error_of(out, want) < 1e-5 and error_of(states, after) < 1e-5


@pytest.mark.parametrize("gates", ["float32", "float64"])
@pytest.mark.filterwarnings("error")
def test_a_factor_that_overflows(runtime, gates):
    """exp(A_log) is infinite where the decay is not (docs/spec/gates.md), in a kernel that has
    the gates and ahead of one that has not; and rows of padding may be NaN."""
    rng = np.random.default_rng(8)
    io = ml_dtypes.bfloat16 if gates == "float64" else np.float32
    states = rng.standard_normal((3, HV, DV, DK)).astype(np.float32)
    given = draw(rng, 3, io=io)
    given["A_log"], given["dt_bias"] = np.full(HV, 100.0), np.zeros(HV)
    given["a"] = rng.uniform(-105, -99, (3, HV)).astype(gates)
    given["b"] = given["b"].astype(gates)
    given["a"][2] = given["b"][2] = np.nan
    slots = np.array([1, 0, -1])
    with np.errstate(invalid="ignore"):
        want, after = expected(given, states, slots, slots)
    out = gated_delta_step(**given, states=states, slots=slots, runtime=runtime)
    most = 1e-5 if io == np.float32 else 4e-3
    assert error_of(out, want) < most and error_of(states, after) < 1e-5


def test_other_slots_are_written(runtime):
    rng = np.random.default_rng(2)
    states = rng.standard_normal((SLOTS, HV, DV, DK)).astype(np.float32)
    given, slots, targets = draw(rng, 3), np.array([1, 2, 3]), np.array([6, 2, -1])
    want, after = expected(given, states, slots, targets)
    out = np.full((3, HV, DV), np.nan, np.float32)
    found = gated_delta_step(
        **given, states=states, slots=slots, write_slots=targets, out=out, runtime=runtime
    )
    assert found is out
    assert error_of(out, want) < 1e-5 and error_of(states, after) < 1e-5


def test_skipped_sequences_are_zeros(runtime):
    rng = np.random.default_rng(3)
    states = rng.standard_normal((SLOTS, HV, DV, DK)).astype(np.float32)
    # The third would be slot 4 in 32 bits.
    slots = np.array([-1, 3, 2**32 + 4, 0])
    given, before = draw(rng, 4), states.copy()
    given["v"][0] = np.nan
    out = gated_delta_step(**given, states=states, slots=slots, null_slot=0, runtime=runtime)
    want, after = expected(given, before, [-1, 3, -1, -1], [-1, 3, -1, -1])
    assert not out[[0, 2, 3]].any()
    assert error_of(out, want) < 1e-5 and error_of(states, after) < 1e-5
    # What the caller has in their rows may stay.
    kept = np.full_like(out, 7)
    places = {"slots": slots, "null_slot": 0, "zero_skipped": False, "out": kept}
    gated_delta_step(**given, states=before.copy(), **places, runtime=runtime)
    assert (kept[[0, 2, 3]] == 7).all()
    np.testing.assert_array_equal(kept[1], out[1])
    # Without a null slot 0 is one like others.
    states = before.copy()
    out = gated_delta_step(**given, states=states, slots=slots, runtime=runtime)
    assert out[3].any() and not np.array_equal(states[0], before[0])


def test_scale_and_types(runtime):
    rng = np.random.default_rng(4)
    for io, state, limit in ((np.float32, np.float16, 1e-3), (np.float16, np.float32, 2e-3)):
        states = rng.standard_normal((SLOTS, HV, DV, DK)).astype(state)
        given, slots = draw(rng, 2, io), np.array([5, 1])
        want, after = expected(given, states, slots, slots, scale=2.0)
        out = gated_delta_step(**given, states=states, slots=slots, scale=2.0, runtime=runtime)
        assert out.dtype == io
        assert error_of(out.astype(float), want) < limit
        assert error_of(states.astype(float), after) < limit


def strided(array):
    """The same numbers, no dimension of which is contiguous."""
    wide = np.full(tuple(2 * size for size in array.shape), -5, array.dtype)
    view = wide[tuple(slice(1, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def test_strided_arrays(runtime):
    rng = np.random.default_rng(8)
    states = rng.standard_normal((SLOTS, HV, DV, DK)).astype(np.float32)
    given, slots = draw(rng, 3), np.array([4, 1, 0])
    places = {"slots": slots, "write_slots": slots[::-1]}
    whole, apart = states.copy(), states.copy()
    out = gated_delta_step(**given, states=whole, **places, runtime=runtime)
    given = {name: strided(x) for name, x in given.items()}
    places = {name: strided(np.ascontiguousarray(x)) for name, x in places.items()}
    found = gated_delta_step(**given, states=apart, **places, runtime=runtime)
    np.testing.assert_array_equal(found, out)
    np.testing.assert_array_equal(apart, whole)


def test_gates_keep_their_digits(runtime):
    """Gates of f32 beside inputs of f16 are not rounded to these."""
    rng = np.random.default_rng(9)
    states = rng.standard_normal((SLOTS, HV, DV, DK)).astype(np.float32)
    given, slots = draw(rng, 3, np.float16), np.array([4, 1, 0])
    given["a"], given["b"] = rng.standard_normal((2, 3, HV)).astype(np.float32)
    want, after = expected(given, states, slots, slots)
    out = gated_delta_step(**given, states=states, slots=slots, runtime=runtime)
    assert error_of(out.astype(float), want) < 2e-3 and error_of(states, after) < 1e-5


def test_scaled_outputs_are_in_range(runtime):
    """What a kernel would give without the scale is more than f16 has."""
    rng = np.random.default_rng(10)
    states = np.full((2, HV, DV, DK), 3e5, np.float32)
    given = draw(rng, 2, np.float16)
    want, _ = expected(given, states, range(2), range(2), scale=1e-3)
    out = gated_delta_step(**given, states=states, slots=np.arange(2), scale=1e-3, runtime=runtime)
    assert np.isfinite(out).all() and error_of(out.astype(float), want) < 2e-3


def test_no_sequences(runtime):
    states = np.ones((SLOTS, HV, DV, DK), np.float32)
    none = np.zeros(0, np.int32)
    given = draw(np.random.default_rng(5), 0)
    out = gated_delta_step(**given, states=states, slots=none, runtime=runtime)
    assert out.shape == (0, HV, DV) and (states == 1).all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"k": np.zeros((2, H, DK), np.float16)}, "k: expected float32, got float16"),
        ({"v": np.zeros((2, HV, DV))}, "v: expected float32 or bfloat16 or float16, got float64"),
        ({"a": np.zeros((2, H))}, r"a: expected the shape \[2, 4\], got \[2, 2\]"),
        ({"A_log": np.zeros(3)}, r"A_log: expected the shape \[4\], got \[3\]"),
        ({"slots": np.zeros(3, int)}, r"slots: expected the shape \[2\], got \[3\]"),
        ({"states": np.zeros((9, HV, DV, 12))}, r"states: expected the shape \[9, 4, 24, 16\], go"),
        (
            {"states": np.zeros((9, HV, DV, DK), np.uint8)},
            "states: expected float32 .*, got uint8; states in planes are for layers on a gdn.Sta",
        ),
        ({"out": np.zeros((2, HV, DV))}, "out: expected float32, got float64"),
        ({"write_slots": np.zeros(1, int)}, r"write_slots: expected the shape \[2\], got \[1\]"),
        ({"slots": np.zeros(2)}, "slots: expected integers, got float64"),
        ({"q": np.zeros((2, 1, H, DK), np.float32)}, r"q: expected the shape \[N, H, d\], got"),
        ({"out": np.zeros((2, HV, 2 * DV), np.float32)[..., ::2]}, "out: expected a contiguous"),
    ],
)
def test_refusals(runtime, change, message):
    given = draw(np.random.default_rng(6), 2)
    given |= {"states": np.zeros((9, HV, DV, DK), np.float32), "slots": np.zeros(2, np.int32)}
    before = given["states"].copy()
    with pytest.raises(ValueError, match=message):
        gated_delta_step(**given | change, runtime=runtime)
    np.testing.assert_array_equal(given["states"], before)


def test_as_many_states_as_sequences(runtime):
    given = draw(np.random.default_rng(11), 2)
    inputs = {name: given[name] for name in ("q", "k", "v")}
    gates = {"log_decay": given["a"], "beta": given["b"]}
    states = np.zeros((1, HV, DV, DK), np.float32)
    with pytest.raises(ValueError, match="states: expected one for each of 2 sequences, got 1"):
        delta_step(**inputs, **gates, states=states, runtime=runtime)
