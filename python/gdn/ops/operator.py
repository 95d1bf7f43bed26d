# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn::gated_delta_rule, the operator that the functions of this package call. Its fake kernel
lets torch.compile trace through it."""

import torch
from torch import Tensor

from ..rule import gated_delta_rule as rule


@torch.library.custom_op("gdn::gated_delta_rule", mutates_args=())
def gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    scale: float | None,
    initial_state: Tensor | None,
    cu_seqlens: Tensor | None,
    l2norm: bool,
    allow_neg_eigval: bool,
    state_v_first: bool,
) -> tuple[Tensor, Tensor]:
    """See gdn.rule.gated_delta_rule; states are of f32."""
    out, states = rule(
        q,
        k,
        v,
        log_decay,
        beta,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        l2norm=l2norm,
        allow_neg_eigval=allow_neg_eigval,
        state_v_first=state_v_first,
    )
    # Views of padded heads are not what the fake kernel says.
    return out.contiguous(), states.contiguous()


@gated_delta_rule.register_fake
def _(
    q,
    k,
    v,
    log_decay,
    beta,
    scale,
    initial_state,
    cu_seqlens,
    l2norm,
    allow_neg_eigval,
    state_v_first,
):
    count = q.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    sizes = (v.shape[3], q.shape[3]) if state_v_first else (q.shape[3], v.shape[3])
    states = q.new_empty((count, v.shape[2], *sizes), dtype=torch.float32)
    return torch.empty_like(v, memory_format=torch.contiguous_format), states
