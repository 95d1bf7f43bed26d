# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn::gated_delta_rule, the operator that the functions of this package call where something looks
at operators. Its fake kernel lets torch.compile trace through it."""

import torch
from torch import Tensor

from ..rule import gated_delta_rule as rule
from .fakes import register_fake


def run_rule(
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
    """The operator, or its function alone: an operator takes longer on the host than the kernel of
    a token."""
    tensors = (q, k, v, log_decay, beta, initial_state, cu_seqlens)
    arguments = (*tensors[:5], scale, *tensors[5:], l2norm, allow_neg_eigval, state_v_first)
    if torch.compiler.is_compiling() or _is_looked_at(tensors):
        return gated_delta_rule(*arguments)
    return _rule(*arguments)


def _is_looked_at(tensors: tuple[Tensor | None, ...]) -> bool:
    """Whether a mode, a subclass of tensors, a transform or autograd sees operators."""
    if (
        torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.maybe_current_level() is not None
    ):
        return True
    with_gradients = torch.is_grad_enabled()
    return any(
        x is not None and (type(x) is not Tensor or (with_gradients and x.requires_grad))
        for x in tensors
    )


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
    return _rule(
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
    )


def _rule(
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


def _results(
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


register_fake(gated_delta_rule, _results)
