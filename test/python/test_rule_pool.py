# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ragged batches on states in place, with arrays of NumPy, against float64."""

import numpy as np
import pytest
import rule_cases
from rule_cases import DK, DV, HV, H, draw, error_of, ready, strided

from gdn.rule_pool import delta_prefill, gated_delta_prefill

STARTS = np.array([0, 5, 5, 75, 76], np.int32)  # tokens of four sequences, and two more
TOKENS, SLOTS = 78, 9


pytestmark = pytest.mark.usefixtures("compiler_on_path")


def pool(rng, dtype=np.float32):
    return rng.standard_normal((SLOTS, HV, DV, DK)).astype(dtype)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("l2norm", [False, True])
def test_ragged_batches(runtime, gated, l2norm):
    """Sequences of many tokens, none and one; padding behind them; one that begins anew in a slot
    of NaN, one that is written elsewhere, and one that is skipped."""
    rng = np.random.default_rng(1)
    given, states = draw(rng, TOKENS), pool(rng)
    states[6] = np.nan
    given["v"][76:] = np.nan
    slots, targets = np.array([4, 2, 6, 7]), np.array([4, 2, 6, 0])
    has_initial = np.array([True, True, False, True])
    want, after = rule_cases.expected(
        given, states, STARTS, slots, targets, has_initial, l2norm=l2norm
    )
    gates = given if gated else ready(given)
    call = gated_delta_prefill if gated else delta_prefill
    out = np.full((TOKENS, HV, DV), np.nan, np.float32)
    found = call(
        **gates, states=states, slots=slots, cu_seqlens=STARTS, has_initial=has_initial,
        write_slots=targets, out=out, l2norm=l2norm, runtime=runtime,
    )  # fmt: skip
    assert found is out and not out[76:].any()
    assert error_of(out, want) < 2e-5 and error_of(states, after) < 2e-5


def test_skipped_sequences(runtime):
    rng = np.random.default_rng(2)
    given, states = draw(rng, TOKENS), pool(rng)
    given["v"][:5] = np.nan
    slots = np.array([0, 3, 2**32 + 4, 5])
    want, after = rule_cases.expected(given, states, STARTS, [-1, 3, -1, 5])
    places = {"states": states.copy(), "slots": slots, "cu_seqlens": STARTS.astype(np.int64)}
    kept = np.full((TOKENS, *given["v"].shape[1:]), 7, np.float32)
    options = {"null_slot": 0, "zero_skipped": False, "out": kept}
    delta_prefill(**ready(given), **places, **options, runtime=runtime)
    assert (kept[:75] == 7).all() and (kept[76:] == 7).all() and error_of(kept[75], want[75]) < 2e-5
    places["states"] = states
    out = delta_prefill(**ready(given), **places, null_slot=0, runtime=runtime)
    assert not out[:75].any() and out[75].all()
    assert error_of(out, want) < 2e-5 and error_of(states, after) < 2e-5


def test_types_and_scale(runtime):
    rng = np.random.default_rng(3)
    for io, state, limit in ((np.float32, np.float16, 1e-3), (np.float16, np.float32, 2e-3)):
        given, states = draw(rng, TOKENS, io), pool(rng, state)
        slots = np.arange(4)
        want, after = rule_cases.expected(given, states, STARTS, slots, scale=2.0)
        places = {"states": states, "slots": slots, "cu_seqlens": STARTS}
        out = delta_prefill(**ready(given), **places, scale=2.0, runtime=runtime)
        assert out.dtype == io
        assert error_of(out, want) < limit and error_of(states, after) < limit


def test_strided_arrays(runtime):
    rng = np.random.default_rng(4)
    given, states = ready(draw(rng, TOKENS)), pool(rng)
    wide = np.full((SLOTS, 2, HV, DV, DK), np.nan, np.float32)
    apart = wide[:, 1]
    apart[...] = states
    places = {"slots": np.arange(4), "cu_seqlens": STARTS, "has_initial": np.ones(4, bool)}
    out = delta_prefill(**given, states=states, **places, runtime=runtime)
    given, places = ({n: strided(x) for n, x in arrays.items()} for arrays in (given, places))
    found = delta_prefill(**given, states=apart, **places, runtime=runtime)
    np.testing.assert_array_equal(found, out)
    np.testing.assert_array_equal(apart, states)
    assert np.isnan(wide[:, 0]).all()


def test_states_inside_of_sequences(runtime):
    """After 64 and 128 tokens; where the number is none of these, or the slot is skipped, nothing
    is written."""
    rng = np.random.default_rng(7)
    starts = np.array([0, 130, 230, 300, 370])
    given, states = draw(rng, 370), rng.standard_normal((12, HV, DV, DK)).astype(np.float32)
    slots, inside, counts = np.arange(4), np.array([8, 9, -1, 11]), np.array([128, 64, 64, 65])
    want, after = rule_cases.expected(given, states, starts, slots)
    for n, tokens in ((0, 128), (1, 64)):
        first = states[n].astype(float)
        steps = rule_cases.recurrence(given, range(starts[n], starts[n] + tokens), first)
        *_, (_, after[inside[n]]) = steps
    places = {"states": states, "slots": slots, "cu_seqlens": starts}
    kept = (np.arange(5), counts, inside)
    out = delta_prefill(**ready(given), **places, checkpoints=kept, runtime=runtime)
    assert error_of(out, want) < 2e-5 and error_of(states, after) < 2e-5


@pytest.mark.parametrize("tokens, starts", [(0, [0, 0]), (3, [0])])
def test_nothing_to_do(runtime, tokens, starts):
    rng = np.random.default_rng(5)
    states = pool(rng)
    before, out = states.copy(), np.full((tokens, HV, DV), np.nan, np.float32)
    places = {"slots": np.zeros(len(starts) - 1, int), "cu_seqlens": np.array(starts)}
    delta_prefill(**ready(draw(rng, tokens)), states=states, **places, out=out, runtime=runtime)
    assert not out.any()
    np.testing.assert_array_equal(states, before)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"k": np.zeros((3, H, DK), np.float16)}, "k: expected float32, got float16"),
        ({"beta": np.zeros((3, H))}, r"beta: expected the shape \[3, 4\], got \[3, 2\]"),
        ({"states": np.zeros((9, HV, DV, 12))}, r"states: expected the shape \[9, 4, 24, 16\], go"),
        ({"cu_seqlens": np.zeros((1, 3), int)}, r"cu_seqlens: expected the shape \[N \+ 1\], got"),
        ({"cu_seqlens": np.zeros(3)}, "cu_seqlens: expected integers, got float64"),
        ({"slots": np.zeros(3, int)}, r"slots: expected the shape \[2\], got \[3\]"),
        ({"has_initial": np.zeros(2, int)}, "has_initial: expected bool, got int64"),
        ({"has_initial": np.zeros(3, bool)}, r"has_initial: expected the shape \[2\], got \[3\]"),
        ({"out": np.zeros((2, HV, DV), np.float32)}, r"out: expected the shape \[3, 4, 24\], got"),
    ],
)
def test_refusals(runtime, change, message):
    rng = np.random.default_rng(6)
    given = ready(draw(rng, 3)) | {"states": pool(rng), "slots": np.zeros(2, int)}
    given |= {"cu_seqlens": np.array([0, 1, 3])}
    before = given["states"].copy()
    with pytest.raises(ValueError, match=message):
        delta_prefill(**given | change, runtime=runtime)
    np.testing.assert_array_equal(given["states"], before)
