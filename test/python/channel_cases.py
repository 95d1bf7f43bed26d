# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of functions on states in place with a decay of each channel, and what they give, in
float64."""

from itertools import pairwise

import numpy as np

H, HV, D = 2, 4, 16
BOUND = -4.0


def draw(rng, rows, io=np.float32):
    """q, k, v, raw gates and their constants."""
    sizes = {"q": (H, D), "k": (H, D), "v": (HV, D), "a": (HV, D), "b": (HV,)}
    given = {name: rng.standard_normal((rows, *size)).astype(io) for name, size in sizes.items()}
    return given | {
        "A_log": np.log(rng.uniform(0.5, 4, HV)).astype(np.float32),
        "dt_bias": rng.standard_normal((HV, D)).astype(np.float32),
    }


def ready(given, bound=None):
    """The same with decays and strengths in place of raw gates."""
    a, b, rate, bias = (given[n].astype(np.float64) for n in ("a", "b", "A_log", "dt_bias"))
    rate = np.exp(rate)[:, None]
    if bound is None:
        decay = -rate * np.logaddexp(0, a + bias)
    else:
        decay = bound / (1 + np.exp(-rate * (a + bias)))
    gates = {"log_decay": decay, "beta": 1 / (1 + np.exp(-b))}
    return {name: given[name] for name in ("q", "k", "v")} | gates


def recurrence(given, tokens, state, bound=None, scale=D**-0.5):
    """Of one sequence: the output and the state after each of its `tokens`."""
    x = {name: np.asarray(array, np.float64) for name, array in ready(given, bound).items()}
    for name in ("q", "k"):
        x[name] = x[name] / np.sqrt((x[name] ** 2).sum(-1, keepdims=True) + 1e-6)
    q, k = (np.repeat(x[name], HV // H, axis=1) for name in ("q", "k"))
    for t in tokens:
        state = state * np.exp(x["log_decay"][t])[:, None]
        error = x["v"][t] - np.einsum("hvk,hk->hv", state, k[t])
        state = state + np.einsum("hv,hk->hvk", x["beta"][t][:, None] * error, k[t])
        yield scale * np.einsum("hvk,hk->hv", state, q[t]), state


def expected(given, states, starts, slots, bound=None, has_initial=None):
    """Outputs of ragged sequences, and the states after them. Slots below 0 are skipped."""
    after, out = states.astype(np.float64), np.zeros(given["v"].shape)
    for n, (first, behind) in enumerate(pairwise(starts)):
        if slots[n] < 0:
            continue
        state = states[slots[n]].astype(np.float64)
        if has_initial is not None and not has_initial[n]:
            state = np.zeros_like(state)
        for t, step in enumerate(recurrence(given, range(first, behind), state, bound), first):
            out[t], after[slots[n]] = step
    return out, after
