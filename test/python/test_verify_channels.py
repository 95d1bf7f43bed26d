# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens that may be rejected with a decay of each channel, on states in place, with arrays of
NumPy, against float64."""

import ml_dtypes
import numpy as np
import pytest
from channel_cases import BOUND, HV, D, draw, recurrence
from rule_cases import error_of, follow_drafts
from verify_cases import SLOTS, STARTS, STEPS, TOKENS, places_in_buffer

from gdn.rule_verify import gated_delta_verify, gated_delta_verify_in_slots

pytestmark = pytest.mark.usefixtures("compiler_on_path")


def pool(rng):
    return rng.standard_normal((SLOTS, HV, D, D)).astype(np.float32)


def expected(given, firsts, kept, table, bound):
    def steps(tokens, state):
        return recurrence(given, tokens, state, bound)

    return follow_drafts(steps, given["v"].shape, STARTS, firsts, kept, table)


@pytest.mark.parametrize("bound", [None, BOUND])
@pytest.mark.parametrize("gates", ["float32", "float64"])
def test_states_in_a_buffer(runtime, bound, gates):
    """All tokens, none and fewer than places; the last one is skipped. States are read alone.
    Gates of another type than v are made ahead of the kernel."""
    rng, io = np.random.default_rng(1), ml_dtypes.bfloat16 if gates == "float64" else np.float32
    given, states = draw(rng, TOKENS, io), pool(rng)
    given |= {name: given[name].astype(gates) for name in ("a", "b")}
    given["v"][5:] = np.nan
    before, buffer = states.copy(), np.full((4 * STEPS + 1, HV, D, D), -7, np.float32)
    places = places_in_buffer(buffer)
    firsts = [states[4], states[2], states[6], None]
    want, kept = expected(given, firsts, buffer, places["token_slots"], bound)
    places |= {"states": states, "decay_bound": bound, "l2norm": True, "runtime": runtime}
    out = gated_delta_verify(**given, **places)
    assert not out[5:].astype(float).any()
    most = 2e-5 if io == np.float32 else 4e-3
    assert error_of(out, want) < most and error_of(buffer, kept) < 2e-5
    rows = np.full_like(out, 7)
    gated_delta_verify(**given, **places, out=rows, zero_skipped=False)
    np.testing.assert_array_equal(rows[:5], out[:5])
    assert (rows[5:] == 7).all()
    np.testing.assert_array_equal(states, before)


@pytest.mark.parametrize("bound", [None, BOUND, -6.0])
def test_states_in_slots(runtime, bound):
    """Each step begins with the state after the last token that was accepted, whatever came behind
    it; counts out of range are skipped."""
    rng = np.random.default_rng(2)
    states, table = pool(rng), 1 + np.arange(4 * STEPS).reshape(4, STEPS)
    for accepted in ([3, 1, STEPS + 1, 2], [1, 1, 1, 2], [4, 1, 0, 1]):
        given, live = draw(rng, TOKENS), [1 <= m <= STEPS for m in accepted]
        firsts = [
            states[table[n, m - 1]].copy() if live[n] else None for n, m in enumerate(accepted)
        ]
        want, after = expected(given, firsts, states, table, bound)
        out = gated_delta_verify_in_slots(
            **given,
            states=states,
            token_slots=table,
            num_accepted=np.array(accepted),
            cu_seqlens=STARTS,
            decay_bound=bound,
            l2norm=True,
            runtime=runtime,
        )
        assert error_of(out, want) < 2e-5 and error_of(states, after) < 2e-5
        assert out[4].any() == live[2]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"decay_bound": 1.0}, "decay_bound: expected a number below 0, got 1.0"),
        ({"dt_bias": np.zeros(HV)}, r"dt_bias: expected the shape \[4, 16\], got \[4\]"),
        (
            {"a": np.zeros((TOKENS, HV)), "dt_bias": np.zeros(HV), "decay_bound": -5.0},
            "decay_bound: expected None with a decay of each head, got -5.0",
        ),
        ({"decay_bound": -1e39}, r"decay_bound: expected a number of f32, got -1e\+39"),
    ],
)
def test_what_is_refused(runtime, change, message):
    given = draw(np.random.default_rng(3), TOKENS) | change
    places = {"states": np.zeros((SLOTS, HV, D, D), np.float32), "cu_seqlens": STARTS}
    table = {"token_slots": np.zeros((4, STEPS), int), "num_accepted": np.ones(4, int)}
    with pytest.raises((ValueError, RuntimeError), match=message):
        gated_delta_verify_in_slots(**given, **places, **table, runtime=runtime)
