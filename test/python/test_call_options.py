# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options and arrays of functions of arrays that are none: what is refused, by what name, and that
nothing has been written then."""

import inspect

import numpy as np
import pytest

from gdn import Runtime
from gdn.call_options import finite, flag, integer
from gdn.conv1d import causal_conv1d
from gdn.gated_norm import gated_rms_norm
from gdn.rule import gated_delta_rule
from gdn.rule_pool import delta_prefill, gated_delta_prefill
from gdn.rule_step import delta_step, gated_delta_step
from gdn.rule_verify import gated_delta_verify, gated_delta_verify_in_slots

H, HV, DK, DV, TOKENS, SLOTS = 2, 4, 16, 24, 6, 9


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf, "0.5", 1j, np.ones(2)])
def test_no_finite_number(value):
    with pytest.raises(ValueError, match="scale: expected a finite number, got"):
        finite("scale", value)


def test_what_stands_for_options():
    assert finite("scale", None) is None and finite("scale", np.float32(0.5)) == 0.5
    assert integer("null_slot", np.int64(-3)) == -3
    assert [flag("l2norm", x) for x in (True, np.False_, 1, 0, None)] == [
        True,
        False,
        True,
        False,
    ] + [False]


@pytest.mark.parametrize("value", ["False", 2, np.ones(2, bool), float("nan"), b""])
def test_no_flag(value):
    with pytest.raises(TypeError, match="l2norm: expected True or False, got"):
        flag("l2norm", value)


@pytest.mark.parametrize("value", [1.5, "0", None, 2**63, -(2**63) - 1])
def test_no_integer(value):
    with pytest.raises((TypeError, ValueError), match="null_slot: expected an integer"):
        integer("null_slot", value)


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def arguments(function):
    """Of a function, by name."""
    rng = np.random.default_rng(1)
    rows = 2 if function in (delta_step, gated_delta_step) else TOKENS
    lead = (1, rows) if function is gated_delta_rule else (rows,)
    if function is gated_rms_norm:
        return {"x": numbers(rng, 2, 3, 16), "gate": numbers(rng, 2, 3, 16), "weight": np.ones(16)}
    if function is causal_conv1d:
        return {
            "x": numbers(rng, rows, 16),
            "weight": numbers(rng, 16, 4),
            "states": numbers(rng, SLOTS, 16, 3),
            "slots": np.array([1, 2]),
            "cu_seqlens": np.array([0, 2, TOKENS]),
        }
    given = {"q": (H, DK), "k": (H, DK), "v": (HV, DV)} | dict.fromkeys("ab", (HV,))
    given |= dict.fromkeys(("log_decay", "beta"), (HV,))
    given = {name: numbers(rng, *lead, *shape) for name, shape in given.items()}
    given |= {
        "A_log": np.zeros(HV),
        "dt_bias": np.zeros(HV),
        "states": numbers(rng, SLOTS, HV, DV, DK),
        "slots": np.array([1, 2]),
        "cu_seqlens": np.array([0, 2, TOKENS]),
        "token_states": numbers(rng, SLOTS, HV, DV, DK),
        "token_slots": np.array([[1, 2, 3], [4, 5, 6]]),
        "num_accepted": np.array([1, 2]),
    }
    known = inspect.signature(function).parameters
    return {name: array for name, array in given.items() if name in known}


FUNCTIONS = [
    gated_delta_rule,
    delta_step,
    gated_delta_step,
    delta_prefill,
    gated_delta_prefill,
    gated_delta_verify,
    gated_delta_verify_in_slots,
    causal_conv1d,
    gated_rms_norm,
]
WRONG = {
    "scale": ("nan", float("nan")),
    "eps": ("nan", float("nan")),
    "null_slot": ("1.5", 1.5),
    "l2norm": ("'no'", "no"),
    "allow_neg_eigval": ("'no'", "no"),
    "zero_skipped": ("'no'", "no"),
    "state_v_first": ("'no'", "no"),
    "norm_after_gate": ("'no'", "no"),
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_refusals(runtime, function):
    """Each option, and each array in turn as what is no array of NumPy."""
    given = arguments(function)
    before = {name: array.copy() for name, array in given.items()}
    known = inspect.signature(function).parameters
    cases = [(name, value, text) for name, (text, value) in WRONG.items() if name in known]
    for name in given:
        cases += [(name, given[name].tolist(), "list"), (name, 1.0, "float")]
        cases.append((name, given[name].astype(complex), "complex128"))
        cases.append((name, given[name].astype(str), "<U"))
        if name != "slots" or function is not delta_step:
            cases.append((name, None, "NoneType"))
    for name, value, text in cases:
        if value is None and known[name].default is None:
            continue
        with pytest.raises((TypeError, ValueError), match=rf"^{name}: expected .*got .*{text}"):
            function(**given | {name: value}, runtime=runtime)
    for name, array in before.items():
        np.testing.assert_array_equal(given[name], array)


def test_a_scale_that_is_not_finite_is_no_default(runtime):
    """It compares unequal to the default's, and was taken for it."""
    for scale in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"scale: expected a finite number, got {scale}"):
            gated_delta_rule(**arguments(gated_delta_rule), scale=scale, runtime=runtime)


@pytest.mark.usefixtures("compiler_on_path")
def test_no_places_for_tokens(runtime):
    """A table without columns: no count of accepted tokens is one, and all rows stay."""
    given = arguments(gated_delta_verify_in_slots) | {"token_slots": np.zeros((2, 0), int)}
    out = np.full((TOKENS, HV, DV), 7, np.float32)
    before = given["states"].copy()
    gated_delta_verify_in_slots(**given, out=out, zero_skipped=False, runtime=runtime)
    assert (out == 7).all()
    np.testing.assert_array_equal(given["states"], before)
    gated_delta_verify_in_slots(**given, out=out, runtime=runtime)
    assert not out.any()


@pytest.mark.parametrize(
    ("checkpoints", "found"),
    [
        ((np.zeros(3, int), np.zeros(2, int)), "tuple of 2"),
        (np.zeros(3, int), "ndarray"),
    ],
)
def test_no_checkpoints(runtime, checkpoints, found):
    with pytest.raises(ValueError, match=f"checkpoints: expected cu_checkpoints, .*, got {found}"):
        delta_prefill(**arguments(delta_prefill), checkpoints=checkpoints, runtime=runtime)
