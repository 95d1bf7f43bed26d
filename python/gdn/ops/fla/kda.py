# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's functions of the rule with a decay of each channel (KDA)."""

from torch import Tensor

from ..arguments import check_others, decays, run, strengths, take_legacy_order


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
    (g + dt_bias)). Refuses strengths above 1."""
    name = "fused_recurrent_kda"
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
    safe_gate: bool = False,
    return_intermediate_states: bool = False,
    **arguments,
) -> tuple[Tensor, Tensor | None]:
    """As fused_recurrent_kda. On GPUs there are no chunks with a decay of each channel, so
    NotImplementedError is raised there: fused_recurrent_kda goes token by token."""
    if q.is_cuda:
        raise NotImplementedError(
            "chunk_kda: expected tensors of a CPU, for there is no form in chunks for GPUs yet, got"
            f" {q.device}; fused_recurrent_kda goes token by token"
        )
    refused = {"safe_gate": safe_gate, "return_intermediate_states": return_intermediate_states}
    check_others("chunk_kda", refused)
    return fused_recurrent_kda(
        q,
        k,
        v,
        g,
        beta,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        **arguments,
    )
