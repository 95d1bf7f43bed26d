# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens that may be rejected, with arrays of NumPy, against float64."""

import numpy as np
import pytest
from rule_cases import DK, DV, HV, draw, error_of, follow_drafts, recurrence, strided
from verify_cases import SLOTS, STARTS, STEPS, TOKENS, places_in_buffer

from gdn.rule_verify import gated_delta_verify, gated_delta_verify_in_slots

pytestmark = pytest.mark.usefixtures("compiler_on_path")


def pool(rng, dtype=np.float32):
    return rng.standard_normal((SLOTS, HV, DV, DK)).astype(dtype)


def expected(given, states, first, kept, table, l2norm=False):
    """`first` has the slots to begin with, negative for sequences that are skipped."""

    def steps(tokens, state):
        return recurrence(given, tokens, state, l2norm=l2norm)

    firsts = [states[slot] if slot >= 0 else None for slot in first]
    return follow_drafts(steps, given["v"].shape, STARTS, firsts, kept, table)


@pytest.mark.parametrize("l2norm", [False, True])
def test_states_in_a_buffer(runtime, l2norm):
    """All tokens, none and fewer than places; the last one is skipped. States are read alone."""
    rng = np.random.default_rng(1)
    given, states = draw(rng, TOKENS), pool(rng)
    before = states.copy()
    buffer = np.full((4 * STEPS + 1, HV, DV, DK), -7, np.float32)
    places = places_in_buffer(buffer)
    given["v"][5:] = np.nan
    want, kept = expected(given, states, places["slots"], buffer, places["token_slots"], l2norm)
    out = np.full((TOKENS, HV, DV), np.nan, np.float32)
    gated_delta_verify(**given, states=states, **places, out=out, l2norm=l2norm, runtime=runtime)
    assert not out[5:].any()
    assert error_of(out, want) < 1e-5 and error_of(buffer, kept) < 1e-5
    rows = np.full_like(out, 7)
    options = {"out": rows, "l2norm": l2norm, "zero_skipped": False}
    gated_delta_verify(**given, states=states, **places, **options, runtime=runtime)
    np.testing.assert_array_equal(rows[:5], out[:5])
    assert (rows[5:] == 7).all()
    np.testing.assert_array_equal(states, before)


def test_states_in_a_buffer_are_only_read(runtime, tmp_path):
    """Memory that a write would be a fault of, of a file; what is written may not be read-only."""
    rng = np.random.default_rng(4)
    given, states = draw(rng, TOKENS), pool(rng)
    np.save(tmp_path / "states.npy", states)
    locked = np.load(tmp_path / "states.npy", mmap_mode="r")
    buffer = np.zeros((4 * STEPS + 1, HV, DV, DK), np.float32)
    other, places = buffer.copy(), places_in_buffer(buffer)
    out = gated_delta_verify(**given, states=states, **places, runtime=runtime)
    for array in (*given.values(), *(x for name, x in places.items() if name != "token_states")):
        array.flags.writeable = False
    places["token_states"] = other
    found = gated_delta_verify(**given, states=locked, **places, runtime=runtime)
    np.testing.assert_array_equal(found, out)
    np.testing.assert_array_equal(other, buffer)
    other.flags.writeable = False
    with pytest.raises(ValueError, match="token_states: expected an array that can be written"):
        gated_delta_verify(**given, states=locked, **places, runtime=runtime)


def test_states_in_slots(runtime):
    """The first state is that after the last accepted token; counts out of range are skipped."""
    rng = np.random.default_rng(2)
    given, states = draw(rng, TOKENS), pool(rng)
    table = 1 + np.arange(4 * STEPS).reshape(4, STEPS)
    accepted, before = np.array([3, 1, STEPS + 1, 2]), states.copy()
    first = np.array([table[0, 2], table[1, 0], -1, table[3, 1]])
    want, after = expected(given, states, first, states, table)
    places = {"token_slots": table, "num_accepted": accepted, "cu_seqlens": STARTS}
    out = gated_delta_verify_in_slots(**given, states=states, **places, runtime=runtime)
    assert not out[4].any()
    assert error_of(out, want) < 1e-5 and error_of(states, after) < 1e-5
    rows = np.full_like(out, 7)
    options = {"out": rows, "zero_skipped": False}
    gated_delta_verify_in_slots(**given, states=before, **places, **options, runtime=runtime)
    live = np.isin(np.arange(TOKENS), np.flatnonzero(out.any((1, 2))))
    np.testing.assert_array_equal(rows[live], out[live])
    assert (rows[~live] == 7).all() and not live[4] and live[0]


def test_null_slot(runtime):
    rng = np.random.default_rng(3)
    given, states = draw(rng, TOKENS), pool(rng)
    table = np.arange(4 * STEPS).reshape(4, STEPS)  # the first place is slot 0
    places = {"token_slots": table, "num_accepted": np.ones(4, int), "cu_seqlens": STARTS}
    want, after = expected(given, states, [-1, 4, 8, 12], states, table)
    out = gated_delta_verify_in_slots(
        **given, states=states, **places, null_slot=0, runtime=runtime
    )
    assert not out[:4].any()
    assert error_of(out, want) < 1e-5 and error_of(states, after) < 1e-5


def test_types_and_strides(runtime):
    """Raw gates of f32 beside inputs of f16 are not rounded."""
    rng = np.random.default_rng(4)
    given, states = draw(rng, TOKENS, np.float16), pool(rng)
    given["a"], given["b"] = rng.standard_normal((2, TOKENS, HV)).astype(np.float32)
    wide = np.full((4, STEPS, 2, HV, DV, DK), -7, np.float32)
    buffer = wide[:, :, 1].reshape(4 * STEPS, HV, DV, DK)
    places = {"slots": np.arange(4), "token_slots": np.arange(4 * STEPS).reshape(4, STEPS)}
    want, kept = expected(given, states, range(4), buffer, places["token_slots"])
    apart = {name: strided(x) for name, x in (given | places).items()}
    out = gated_delta_verify(
        **apart, states=states, cu_seqlens=STARTS, token_states=buffer, runtime=runtime
    )
    assert out.dtype == np.float16
    assert error_of(out, want) < 2e-3 and error_of(buffer, kept) < 1e-5


@pytest.mark.parametrize(
    "change, message",
    [
        ({"token_slots": np.zeros(4, int)}, r"token_slots: expected the shape \[N, S\], got \[4\]"),
        ({"token_slots": np.zeros((3, 2), int)}, r"token_slots: expected the shape \[4, 2\], got"),
        ({"token_slots": np.zeros((4, 2))}, "token_slots: expected integers, got float64"),
        (
            {"token_states": np.zeros((9, HV, DV, DK))},
            "token_states: expected float32, got float64",
        ),
        ({"token_states": np.zeros((9, HV, DK))}, r"token_states: expected the shape \[9, 4, 24"),
        ({"slots": np.zeros(3, int)}, r"slots: expected the shape \[4\], got \[3\]"),
    ],
)
def test_refusals(runtime, change, message):
    rng = np.random.default_rng(5)
    given = draw(rng, TOKENS) | {"states": pool(rng), "slots": np.zeros(4, int)}
    given |= {"token_states": pool(rng), "token_slots": np.zeros((4, 2), int)}
    with pytest.raises(ValueError, match=message):
        gated_delta_verify(**given | change, cu_seqlens=STARTS, runtime=runtime)


def test_most_tokens_in_slots(runtime):
    rng = np.random.default_rng(6)
    given = draw(rng, TOKENS) | {"states": pool(rng), "token_slots": np.zeros((4, 9), int)}
    with pytest.raises(ValueError, match=r"token_slots: expected at most 8 tokens of a .* got 9"):
        gated_delta_verify_in_slots(
            **given, num_accepted=np.ones(4, int), cu_seqlens=STARTS, runtime=runtime
        )
