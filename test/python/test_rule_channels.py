# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps and prefill on states in place with a decay of each channel, with arrays of NumPy, against
float64."""

import ml_dtypes
import numpy as np
import pytest
from channel_cases import BOUND, HV, D, H, draw, expected, ready
from rule_cases import error_of

from gdn import StatePool, StatePoolShape
from gdn.rule_pool import delta_prefill, gated_delta_prefill
from gdn.rule_step import delta_step, gated_delta_step

SLOTS = 9


pytestmark = pytest.mark.usefixtures("compiler_on_path")


@pytest.mark.parametrize("bound", [None, BOUND])
@pytest.mark.parametrize("gates", ["float32", "float64"])
def test_steps(runtime, bound, gates):
    """Gates that the kernel makes, and those that are made ahead of it for their type."""
    rng, slots = np.random.default_rng(1), np.array([4, -1, 0, 8])
    io = ml_dtypes.bfloat16 if gates == "float64" else np.float32
    states = rng.standard_normal((SLOTS, HV, D, D)).astype(np.float32)
    for _ in range(2):
        given = draw(rng, 4, io)
        given |= {name: given[name].astype(gates) for name in ("a", "b")}
        want, after = expected(given, states, range(5), slots, bound)
        more = {"states": states, "slots": slots, "decay_bound": bound}
        out = gated_delta_step(**given, **more, l2norm=True, runtime=runtime)
        assert error_of(out, want) < (2e-5 if io == np.float32 else 4e-3)
        assert error_of(states, after) < 2e-5


@pytest.mark.parametrize("bound", [None, BOUND])
def test_prefill(runtime, bound):
    rng, starts, slots = np.random.default_rng(2), np.array([0, 70, 70, 77, 80]), [4, 2, 8, -1]
    states = rng.standard_normal((SLOTS, HV, D, D)).astype(np.float32)
    given, flags = draw(rng, 80), np.array([True, True, False, True])
    want, after = expected(given, states, starts, slots, bound, flags)
    for function, inputs in (
        (delta_prefill, ready(given, bound)),
        (gated_delta_prefill, given | {"decay_bound": bound}),
    ):
        pool = states.copy()
        places = {"states": pool, "slots": np.array(slots), "cu_seqlens": starts}
        out = function(**inputs, **places, has_initial=flags, l2norm=True, runtime=runtime)
        assert error_of(out, want) < 2e-5 and error_of(pool, after) < 2e-5


def test_steps_of_ready_gates(runtime):
    rng = np.random.default_rng(3)
    states, given = rng.standard_normal((3, HV, D, D)).astype(np.float32), draw(rng, 3)
    want, after = expected(given, states, range(4), range(3))
    out = delta_step(**ready(given), states=states, l2norm=True, runtime=runtime)
    assert error_of(out, want) < 2e-5 and error_of(states, after) < 2e-5


@pytest.mark.filterwarnings("error")
def test_factors_at_the_edge(runtime):
    """exp(A_log) overflows where the decay does not, ahead of a kernel as in one."""
    rng, slots = np.random.default_rng(4), np.array([0, 1])
    given, states = draw(rng, 2), rng.standard_normal((2, HV, D, D)).astype(np.float32)
    given["A_log"], given["dt_bias"] = np.full(HV, 100.0), np.zeros((HV, D))
    given["a"] = rng.uniform(-105, -99, (2, HV, D)).astype(np.float32)
    want, after = expected(given, states, range(3), slots)
    for gates in ("float32", "float64"):
        pool = states.copy()
        found = given | {name: given[name].astype(gates) for name in ("a", "b")}
        out = gated_delta_step(**found, states=pool, slots=slots, l2norm=True, runtime=runtime)
        assert error_of(out, want) < 2e-5 and error_of(pool, after) < 2e-5


@pytest.mark.parametrize(
    "change, message",
    [
        ({"decay_bound": 1.0}, "decay_bound: expected a number below 0, got 1.0"),
        ({"decay_bound": np.nan}, "decay_bound: expected a finite number"),
        ({"decay_bound": -1e300}, r"decay_bound: expected a number of f32, got -1e\+300"),
        ({"dt_bias": np.zeros(HV)}, r"dt_bias: expected the shape \[4, 16\], got \[4\]"),
        ({"a": np.zeros((2, HV, D + 1), np.float32)}, r"a: expected the shape \[2, 4, 16\]"),
        (
            {"a": np.zeros((2, HV)), "dt_bias": np.zeros(HV), "decay_bound": -5.0},
            "decay_bound: expected None with a decay of each head, got -5.0",
        ),
        ({"v": np.zeros((2, HV, 8), np.float32)}, "v: expected heads of 16, those of q"),
    ],
)
def test_what_is_refused(runtime, change, message):
    given = draw(np.random.default_rng(5), 2) | change
    states = np.zeros((2, HV, given["v"].shape[2], D), np.float32)
    with pytest.raises(ValueError, match=message):
        gated_delta_step(**given, states=states, slots=np.array([0, 1]), runtime=runtime)


def test_bounds_that_no_model_has(runtime):
    """Below -5 the gates are made ahead of the kernel, and so are they where f32 has no normal
    number."""
    rng, slots = np.random.default_rng(7), np.array([1, 0])
    for bound in (-20.0, -1e-40):
        given, states = draw(rng, 2), rng.standard_normal((2, HV, D, D)).astype(np.float32)
        want, after = expected(given, states, range(3), slots, bound)
        more = {"slots": slots, "decay_bound": bound, "l2norm": True, "runtime": runtime}
        out = gated_delta_step(**given, states=states, **more)
        assert error_of(out, want) < 2e-5 and error_of(states, after) < 2e-5


@pytest.mark.filterwarnings("error")
def test_numbers_of_padding(runtime):
    """What no f32 holds is in rows that are skipped."""
    rng, slots = np.random.default_rng(8), np.array([0, -1, 1])
    given, states = draw(rng, 3), rng.standard_normal((2, HV, D, D)).astype(np.float32)
    given |= {name: given[name].astype(np.float64) for name in ("a", "b")}
    want, _ = expected(given, states, range(4), slots)
    given["a"][1], given["b"][1], given["q"][1] = 1e300, -1e300, np.nan
    for bound in (None, BOUND):
        out = gated_delta_step(
            **given,
            states=states.copy(),
            slots=slots,
            l2norm=True,
            decay_bound=bound,
            runtime=runtime,
        )
        assert not out[1].any() and np.isfinite(out).all()
        assert bound or error_of(out, want) < 2e-5
    inputs = ready(draw(rng, 3))
    inputs["log_decay"][1], inputs["beta"][1] = -1e300, 1e300
    assert not delta_step(**inputs, states=states, slots=slots, runtime=runtime)[1].any()


def test_arrays_that_cannot_be_written(runtime):
    given, slots = draw(np.random.default_rng(9), 2), np.array([0, 1])
    states, out = np.zeros((2, HV, D, D), np.float32), np.zeros((2, HV, D), np.float32)
    fixed = [array.copy() for array in (states, out)]
    for array in fixed:
        array.setflags(write=False)
    repeated = np.lib.stride_tricks.as_strided(out, strides=(0, *out.strides[1:]))
    for name, array in (("states", fixed[0]), ("out", fixed[1]), ("out", repeated)):
        given_arrays = {"states": states, "slots": slots, "out": out} | {name: array}
        with pytest.raises(
            ValueError, match=f"{name}: expected an array that can be written, each"
        ):
            gated_delta_step(**given, **given_arrays, runtime=runtime)
    assert not states.any()


def test_deferred_writes_are_refused(runtime):
    sizes = {"num_key_heads": H, "num_value_heads": HV, "key_dim": D, "value_dim": D}
    shape = StatePoolShape(
        num_layers=1, num_requests=2, **sizes, deferred_writes=True, pending_tokens=16
    )
    states = StatePool(runtime.device(), shape).layer_states(0)
    given, slots = draw(np.random.default_rng(6), 2), np.array([1, 2])
    with pytest.raises(
        ValueError, match=r"a: expected a decay of each head with .* of each channel"
    ):
        gated_delta_step(**given, states=states, slots=slots, runtime=runtime)
    inputs = ready(given) | {"states": states, "slots": slots, "cu_seqlens": np.array([0, 1, 2])}
    with pytest.raises(ValueError, match="log_decay: expected a decay of each head with"):
        delta_prefill(**inputs, runtime=runtime)
