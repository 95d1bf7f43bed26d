# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of functions on states in place with a decay of each channel, and what they give, in
float64."""

import numpy as np
from rule_cases import follow, steps_of, unit

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
    """As rule_cases.steps_of, of raw gates; q and k are scaled to unit length."""
    x = ready(given, bound)
    x |= {name: unit(x[name].astype(np.float64)) for name in ("q", "k")}
    return steps_of(x, tokens, state, scale)


def expected(given, states, starts, slots, bound=None, has_initial=None):
    """Outputs and states as of rule_cases.follow."""

    def steps(tokens, state):
        return recurrence(given, tokens, state, bound)

    return follow(steps, given["v"].shape, states, starts, slots, None, has_initial)
