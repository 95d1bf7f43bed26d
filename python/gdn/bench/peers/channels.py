# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peers' prefill with a decay per channel, from ready queries, keys and log decays."""

from collections.abc import Callable

import torch

from ..prefill_inputs import Problem
from .prefill import PrefillPeer, peer_of


def _fla(problem: Problem, **options) -> PrefillPeer:
    from fla.ops.kda import chunk_kda

    bounds = problem.bounds.long()

    def call(x):
        with torch.no_grad():
            return chunk_kda(
                x.q[None],
                x.k[None],
                x.v[None],
                g=x.g[None],
                beta=x.beta[None],
                initial_state=x.state,
                output_final_state=True,
                state_v_first=True,
                cu_seqlens=bounds,
                **options,
            )

    return peer_of(problem, call)


def fla(problem: Problem) -> PrefillPeer:
    return _fla(problem)


def fla_safe(problem: Problem) -> PrefillPeer:
    """What it does where gates have a lower bound."""
    return _fla(problem, safe_gate=True, lower_bound=-5.0)


# Implementation, variant, the module that it needs, and what prepares its calls.
PEERS: list[tuple[str, str, str, Callable[[Problem], PrefillPeer]]] = [
    ("fla", "any gate", "fla", fla),
    ("fla", "safe gate", "fla", fla_safe),
]
