# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peers' prefill with a decay per channel: from ready queries, keys and log decays, or where a
peer has gates, strengths and the norm of queries and keys inside, from what these come of."""

from collections.abc import Callable

import torch

from ..channel_inputs import LOWER_BOUND
from ..channel_tables import GATES_INSIDE
from ..prefill_inputs import Problem
from .prefill import PrefillPeer, fla_chunks, peer_of


def fla(problem: Problem) -> PrefillPeer:
    from fla.ops.kda import chunk_kda

    return fla_chunks(problem, chunk_kda)


def fla_safe(problem: Problem) -> PrefillPeer:
    """What it does where gates have a lower bound."""
    from fla.ops.kda import chunk_kda

    return fla_chunks(problem, chunk_kda, safe_gate=True, lower_bound=LOWER_BOUND)


def cudnn_fused(problem: Problem) -> PrefillPeer:
    """The kernel of the cuDNN frontend for Hopper, without its operations around it. It cuts
    long sequences in segments that start from zero a few tokens early."""
    from cudnn.linear_attention.hopper import cuda_host

    bounds = problem.bounds.int()

    def call(x):
        tokens, heads, _ = x.q.shape
        output, states = torch.empty_like(x.v), torch.empty_like(x.state)
        inputs = (x.q, x.k, x.v, x.g, x.beta.float(), bounds, x.state, output, states)
        cuda_host.launch(
            x.q.device.index or 0,
            torch.cuda.current_stream().cuda_stream,
            *(tensor.data_ptr() for tensor in inputs),
            total_tokens=tokens,
            n_seqs=bounds.numel() - 1,
            n_heads=heads,
        )
        return output, states

    return peer_of(problem, call)


def flashkda(problem: Problem) -> PrefillPeer:
    """FlashKDA as vLLM ships it: bounded gates of bf16, sigmoids of strengths and the norm of
    queries and keys are inside."""
    library = torch.ops._flashkda_C
    x = problem.sets[0]
    rows, heads, dims = len(problem.case.lengths), x.q.shape[1], x.q.shape[2]
    size = library.get_workspace_size(x.q.shape[0], heads, rows)
    workspace = torch.empty(size, dtype=torch.uint8, device=x.q.device)

    def call(x):
        output, states = torch.empty_like(x.v), torch.empty_like(x.state)
        inputs = (x.q[None], x.k[None], x.v[None], x.gates.raw[None], x.logits[None])
        weights = (x.gates.A_log, x.gates.dt_bias, LOWER_BOUND)
        library.fwd(
            *inputs,
            dims**-0.5,
            output[None],
            workspace,
            *weights,
            x.state,
            states,
            problem.bounds,
        )
        return output, states

    return peer_of(problem, call)


# Implementation, variant, the module that it needs, and what prepares its calls.
PEERS: list[tuple[str, str, str, Callable[[Problem], PrefillPeer]]] = [
    ("fla", "any gate", "fla", fla),
    ("fla", "safe gate", "fla", fla_safe),
    ("cudnn", "fused", "cudnn", cudnn_fused),
    ("flashkda", GATES_INSIDE, "vllm._flashkda_C", flashkda),
]
