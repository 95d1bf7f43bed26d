# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's functions of the gated delta rule."""

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


def chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    chunk_indices: Tensor | None = None,
    cp_context: object = None,
    *,
    use_gate_in_kernel: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    **others,
) -> tuple[Tensor, Tensor | None]:
    """q, k [B, T, H, K], v [B, T, HV, V], g (logarithms) and beta [B, T, HV] to o [B, T, HV, V] and
    the states [N, HV, K, V] of f32, or None without `output_final_state`. HV is a multiple of H. q,
    k and v are of f32, bf16 or f16, in the widest of whose types is computed; o is of the type of
    v, and others are of any type. The N sequences are the B rows, or with `cu_seqlens` [N + 1],
    integers, parts of the one row. `scale` is K ^ -0.5 if None. initial_state [N, HV, K, V] is not
    changed. With `use_qk_l2norm_in_kernel` q and k are scaled to unit length.

    With `use_gate_in_kernel` g is raw: the decay's logarithm is -exp(A_log) softplus(g + dt_bias),
    with A_log and dt_bias [HV]. With `use_beta_sigmoid_in_kernel` so is beta. `allow_neg_eigval`
    says that strengths reach up to 2. `state_v_first` is for states [N, HV, V, K]. cu_seqlens_cpu
    and chunk_indices are not looked at.

    Raises ValueError for arrays that do not go together and for arguments that gdn does not have,
    such as cp_context and head_first; ImageNotFoundError where no image is there."""
    name = "chunk_gated_delta_rule"
    refuse_pool(name, initial_state=initial_state)
    state_v_first = take_legacy_order(name, state_v_first, others)
    check_others(name, {"cp_context": cp_context, **others})
    if use_gate_in_kernel:
        g = decays(g, A_log, dt_bias)
    beta = strengths(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return run(
        q,
        k,
        v,
        g,
        beta,
        scale,
        initial_state,
        output_final_state,
        use_qk_l2norm_in_kernel,
        allow_neg_eigval,
        state_v_first,
        cu_seqlens,
    )


def fused_recurrent_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    gk: Tensor | None = None,
    gv: Tensor | None = None,
    beta: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    **others,
) -> tuple[Tensor, Tensor | None]:
    """As chunk_gated_delta_rule. Without g there is no decay, and without beta strengths are 1; gk
    [B, T, HV, K] decays each channel of the keys. gv is refused."""
    name = "fused_recurrent_gated_delta_rule"
    refuse_pool(name, initial_state=initial_state)
    state_v_first = take_legacy_order(name, state_v_first, others)
    check_others(name, {"gv": gv, **others})
    if g is None and use_gate_in_kernel:
        raise ValueError("g: expected a tensor with use_gate_in_kernel, got None")
    if g is None:
        g = v.new_zeros(v.shape[:3], dtype=torch.float32)
    elif use_gate_in_kernel:
        g = decays(g, A_log, dt_bias)
    if gk is not None:
        g = g.float()[..., None] + gk.float()
    if beta is None:
        beta = v.new_ones(v.shape[:3], dtype=torch.float32)
    beta = strengths(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return run(
        q,
        k,
        v,
        g,
        beta,
        scale,
        initial_state,
        output_final_state,
        use_qk_l2norm_in_kernel,
        allow_neg_eigval,
        state_v_first,
        cu_seqlens,
    )


def fused_gdn_gate(
    g: Tensor,
    A_log: Tensor,
    dt_bias: Tensor | None = None,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The logarithms of decays of raw gates g [.., HV], with A_log and dt_bias of HV elements:
    -exp(A_log) softplus(g + dt_bias), which `use_gate_in_kernel` makes."""
    refuse_gradients("fused_gdn_gate", g=g)
    if g.dim() < 1:
        raise ValueError("fused_gdn_gate: g: expected the shape [.., HV], got []")
    made = decays(g.reshape(1, math.prod(g.shape[:-1]), g.shape[-1]), A_log, dt_bias)
    return made.reshape(g.shape).to(output_dtype)
