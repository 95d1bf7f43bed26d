# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peers' prefill from ready queries, keys and gates over rows of any lengths: states in
and out, outputs and final states in memory of their own."""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..prefill_inputs import Problem

# Read when FLA is imported or called: where FlashQLA is installed, FLA's function would call
# it; and what Triton chose among kernels in an earlier process would be read from a file.
os.environ |= {"FLA_FLASH_QLA": "0", "FLA_CACHE_RESULTS": "0"}


@dataclass(frozen=True)
class PrefillPeer:
    """A call for each set, and what the first one gave: outputs [.., T, Hv, D] and states
    [N, Hv, dv, dk]."""

    calls: list[Callable[[], object]]
    output: Callable[[], torch.Tensor]
    states: Callable[[], torch.Tensor]


def peer_of(problem, function: Callable[..., tuple]) -> PrefillPeer:
    """What is left of a call is kept for the first set alone: of others it would be memory
    that no server holds."""
    left: dict = {}

    def call(index: int, x):
        def run():
            result = function(x)
            if index == 0:
                left["o"], left["state"] = result

        return run

    calls = [call(index, x) for index, x in enumerate(problem.sets)]
    return PrefillPeer(calls, lambda: left["o"], lambda: left["state"])


def forget_choices() -> None:
    """Lets Triton choose again among the kernels that it has compiled: what it measured while
    others used the GPU is not what it would choose alone."""
    from triton.runtime.autotuner import Autotuner

    for found in gc.get_objects():
        if isinstance(found, Autotuner):
            found.cache.clear()


def fla_chunks(problem: Problem, function: Callable[..., tuple], **options) -> PrefillPeer:
    """One of FLA's functions that go in chunks, from ready inputs."""
    bounds = problem.bounds.long()

    def call(x):
        with torch.no_grad():
            return function(
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
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    return fla_chunks(problem, chunk_gated_delta_rule)


def flashqla(problem: Problem) -> PrefillPeer:
    from flash_qla import chunk_gated_delta_rule

    def call(x):
        with torch.no_grad():
            return chunk_gated_delta_rule(
                x.q[None],
                x.k[None],
                x.v[None],
                x.g[None],
                x.beta[None],
                initial_state=x.state,
                output_final_state=True,
                state_v_first=True,
                cu_seqlens=problem.bounds,
            )

    return peer_of(problem, call)


def _flashinfer(problem: Problem, **options) -> PrefillPeer:
    from flashinfer.gdn_prefill import chunk_gated_delta_rule

    # It takes the decay itself, not its logarithm.
    decays = {id(x): x.g.exp() for x in problem.sets}
    bounds = problem.bounds.long()

    def call(x):
        return chunk_gated_delta_rule(
            x.q,
            x.k,
            x.v,
            g=decays[id(x)],
            beta=x.beta,
            initial_state=x.state,
            output_final_state=True,
            cu_seqlens=bounds,
            max_seqlen=max(problem.case.lengths),
            **options,
        )

    return peer_of(problem, call)


def flashinfer(problem: Problem) -> PrefillPeer:
    return _flashinfer(problem)


def flashinfer_cp(problem: Problem) -> PrefillPeer:
    return _flashinfer(problem, use_cp=True)


# Implementation, variant, the module that it needs, and what prepares its calls.
PEERS: list[tuple[str, str, str, Callable[[Problem], PrefillPeer]]] = [
    ("fla", "", "fla", fla),
    ("flashqla", "auto", "flash_qla", flashqla),
    ("flashinfer", "auto", "flashinfer", flashinfer),
    ("flashinfer-cp", "cp", "flashinfer", flashinfer_cp),
]
