# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of functions on states in place, and what they give, in float64."""

from itertools import pairwise

import numpy as np

H, HV, DK, DV = 2, 4, 16, 24


def draw(rng, rows, io=np.float32):
    """q, k of unit length, v, raw gates and their constants."""
    q, k = (
        x / np.linalg.norm(x, axis=-1, keepdims=True) for x in rng.standard_normal((2, rows, H, DK))
    )
    given = {
        "q": q,
        "k": k,
        "v": rng.standard_normal((rows, HV, DV)),
        "a": rng.standard_normal((rows, HV)),
        "b": rng.standard_normal((rows, HV)),
    }
    given = {name: x.astype(io) for name, x in given.items()}
    return given | {"A_log": np.log(rng.uniform(1, 8, HV)), "dt_bias": rng.standard_normal(HV)}


def ready(given):
    """The same with decays and strengths in place of raw gates."""
    a, b, rate, bias = (given[n].astype(np.float64) for n in ("a", "b", "A_log", "dt_bias"))
    gates = {"log_decay": -np.exp(rate) * np.logaddexp(0, a + bias), "beta": 1 / (1 + np.exp(-b))}
    return {name: given[name] for name in ("q", "k", "v")} | gates


def unit(x):
    """Rows of unit length."""
    return x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6)


def steps_of(given, tokens, state, scale):
    """Of one sequence, from ready decays of heads or channels and strengths: the output and the
    state after each of its `tokens`."""
    x = {name: np.asarray(array, np.float64) for name, array in given.items()}
    repeat = x["v"].shape[1] // x["q"].shape[1]
    q, k = (np.repeat(x[name], repeat, axis=1) for name in ("q", "k"))
    decay = np.exp(x["log_decay"])
    # Behind heads [HV], values and keys.
    decay = decay[..., None, None] if decay.ndim == 2 else decay[..., None, :]
    for t in tokens:
        state = state * decay[t]
        error = x["v"][t] - np.einsum("hvk,hk->hv", state, k[t])
        state = state + np.einsum("hv,hk->hvk", x["beta"][t][:, None] * error, k[t])
        yield scale * np.einsum("hvk,hk->hv", state, q[t]), state


def recurrence(given, tokens, state, scale=DK**-0.5, l2norm=False):
    """As steps_of, of raw gates of heads."""
    x = ready(given)
    if l2norm:
        x |= {name: unit(x[name].astype(np.float64)) for name in ("q", "k")}
    return steps_of(x, tokens, state, scale)


def follow(steps, shape, states, starts, slots, write_slots=None, has_initial=None):
    """Outputs of ragged sequences, and the states after them. Slots below 0 are skipped.
    `steps(tokens, state)` gives the output and the state after each token of a sequence."""
    after, out = states.astype(np.float64), np.zeros(shape)
    targets = slots if write_slots is None else write_slots
    for n, (first, behind) in enumerate(pairwise(starts)):
        if slots[n] < 0:
            continue
        state = states[slots[n]].astype(np.float64)
        if has_initial is not None and not has_initial[n]:
            state = np.zeros_like(state)
        for t, step in enumerate(steps(range(first, behind), state), first):
            out[t], after[targets[n]] = step
    return out, after


def follow_drafts(steps, shape, starts, firsts, kept, table):
    """Outputs of sequences, and `kept` with the state after token t of sequence n at table[n, t].
    `firsts` has the states to begin with, None for sequences that are skipped."""
    out, kept = np.zeros(shape), kept.astype(np.float64)
    for n, (begin, end) in enumerate(pairwise(starts)):
        if firsts[n] is None:
            continue
        for t, (core, state) in enumerate(steps(range(begin, end), firsts[n].astype(np.float64))):
            out[begin + t] = core
            if 0 <= table[n, t] < len(kept):
                kept[table[n, t]] = state
    return out, kept


def expected(
    given, states, starts, slots, write_slots=None, has_initial=None, scale=DK**-0.5, l2norm=False
):
    """Outputs and states as of `follow`."""

    def steps(tokens, state):
        return recurrence(given, tokens, state, scale, l2norm)

    return follow(steps, given["v"].shape, states, starts, slots, write_slots, has_initial)


def error_of(got, want):
    """Relative to the size of what is wanted."""
    got = np.asarray(got, np.float64)
    return np.sqrt(((got - want) ** 2).sum() / max((want**2).sum(), 1e-30))


def strided(array):
    """The same numbers, no dimension of which is contiguous."""
    wide = np.full(tuple(2 * size for size in array.shape), -5).astype(array.dtype)
    view = wide[tuple(slice(1, None, 2) for _ in array.shape)]
    view[...] = array
    return view
