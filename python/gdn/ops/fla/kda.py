# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's functions of the rule with a decay of each channel (KDA)."""

import math

import torch
from torch import Tensor

from ...pool_states import refuse_pool
from ..arguments import (
    check_others,
    decays,
    refuse_gradients,
    run,
    strengths,
    take_legacy_order,
)
from ..chunk_states import by_chunks


def fused_recurrent_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    lower_bound: float | None = None,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    **others,
) -> tuple[Tensor, Tensor | None]:
    """As gdn.ops.chunk_gated_delta_rule, with g [B, T, HV, K], dt_bias [HV * K] and K = V. With
    `lower_bound` the logarithm of a decay in the kernel is lower_bound * sigmoid(exp(A_log) *
    (g + dt_bias))."""
    name = "fused_recurrent_kda"
    refuse_pool(name, initial_state=initial_state)
    state_v_first = take_legacy_order(name, state_v_first, others)
    check_others(name, others)
    if use_gate_in_kernel:
        g = decays(g, A_log, dt_bias, lower_bound)
    return run(
        q,
        k,
        v,
        g,
        strengths(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval),
        scale,
        initial_state,
        output_final_state,
        use_qk_l2norm_in_kernel,
        allow_neg_eigval,
        state_v_first,
        cu_seqlens,
    )


def chunk_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    disable_recompute: bool = False,
    return_intermediate_states: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    cp_context: object = None,
    use_graph: bool = False,
    max_num_seqs: int | None = None,
    *,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    chunk_size: int = 64,
    **others,
) -> tuple[Tensor, Tensor | None] | tuple[Tensor, Tensor | None, Tensor]:
    """As fused_recurrent_kda. `safe_gate` promises decays whose logarithm is not below -5, and asks
    for a `lower_bound` of that where they are made in the kernel. With
    `return_intermediate_states` the third result are the states ahead of each `chunk_size` (32 or
    64) tokens of a sequence, [B, chunks, HV, K, V] in the type of q, those of all sequences in one
    row with `cu_seqlens`. What is about a backward or graphs is not looked at: disable_recompute,
    use_graph and max_num_seqs."""
    name = "chunk_kda"
    refuse_pool(name, initial_state=initial_state)
    state_v_first = take_legacy_order(name, state_v_first, others)
    check_others(name, {"cp_context": cp_context, **others})
    # The original's words: callers match them.
    if chunk_size not in (32, 64):
        raise ValueError(f"{name}: `chunk_size` must be either 32 or 64, got {chunk_size}")
    if safe_gate and use_gate_in_kernel and not -5 <= (lower_bound or 0) < 0:
        raise ValueError(
            f"{name}: lower_bound: expected a number from -5 to below 0 with safe_gate, got"
            f" {lower_bound}"
        )
    if use_gate_in_kernel:
        g = decays(g, A_log, dt_bias, lower_bound)
    beta = strengths(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval)

    def part(q, k, v, g, beta, initial_state, cu_seqlens, wants_states):
        return run(
            q,
            k,
            v,
            g,
            beta,
            scale,
            initial_state,
            wants_states,
            use_qk_l2norm_in_kernel,
            allow_neg_eigval,
            state_v_first,
            cu_seqlens,
        )

    inputs = (q, k, v, g, beta)
    if not return_intermediate_states:
        return part(*inputs, initial_state, cu_seqlens, output_final_state)
    ends = cu_seqlens if cu_seqlens_cpu is None else cu_seqlens_cpu
    out, last, inside = by_chunks(part, inputs, initial_state, ends, chunk_size, state_v_first)
    return out, last if output_final_state else None, inside


def fused_kda_gate(
    g: Tensor,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    lower_bound: float | None = None,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The logarithms of decays of raw gates g [.., HV, K], with A_log of HV elements and dt_bias of
    HV * K: -exp(A_log) softplus(g + dt_bias), or lower_bound * sigmoid(exp(A_log) * (g + dt_bias)),
    where A_log may be None. They are what `use_gate_in_kernel` makes."""
    refuse_gradients("fused_kda_gate", g=g)
    if g.dim() < 2:
        raise ValueError(f"fused_kda_gate: g: expected the shape [.., HV, K], got {list(g.shape)}")
    made = decays(g.reshape(1, math.prod(g.shape[:-2]), *g.shape[-2:]), A_log, dt_bias, lower_bound)
    return made.reshape(g.shape).to(output_dtype)
