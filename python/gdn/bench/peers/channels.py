# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peers' prefill with a decay per channel, from ready queries, keys and log decays."""

from collections.abc import Callable

from ..prefill_inputs import Problem
from .prefill import PrefillPeer, fla_chunks


def fla(problem: Problem) -> PrefillPeer:
    from fla.ops.kda import chunk_kda

    return fla_chunks(problem, chunk_kda)


def fla_safe(problem: Problem) -> PrefillPeer:
    """What it does where gates have a lower bound."""
    from fla.ops.kda import chunk_kda

    return fla_chunks(problem, chunk_kda, safe_gate=True, lower_bound=-5.0)


# Implementation, variant, the module that it needs, and what prepares its calls.
PEERS: list[tuple[str, str, str, Callable[[Problem], PrefillPeer]]] = [
    ("fla", "any gate", "fla", fla),
    ("fla", "safe gate", "fla", fla_safe),
]
