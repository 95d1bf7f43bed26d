# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's verification of drafts (multi-token prediction)."""

import torch
from torch import Tensor

from ...call_options import finite
from ...pool_states import refuse_pool
from ..arguments import check, check_ids, check_others, refuse_gradients
from ..several import several_tokens
from .decode import check_buffer, check_tokens


def gated_delta_rule_mtp(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    initial_state: Tensor,
    initial_state_indices: Tensor,
    A_log: Tensor,
    a: Tensor,
    dt_bias: Tensor,
    b: Tensor,
    scale: float | None = None,
    output: Tensor | None = None,
    intermediate_states_buffer: Tensor | None = None,
    ssm_state_indices: Tensor | None = None,
    disable_state_update: bool | None = None,
    use_qk_l2norm: bool = True,
    output_state_indices: Tensor | None = None,
    **others,
) -> tuple[Tensor, Tensor]:
    """q and k [B, T, H, K], v [B, T, HV, V], a and b [B, T, HV]; sequence n starts with the state
    initial_state[initial_state_indices[n]] of a pool [P, HV, V, K], and is skipped if the slot is
    negative: its output is zeros, or what `output` has.

    The state after the last token goes to the slot `output_state_indices` [B], by default to where
    the first was, unless disable_state_update; None is True, as in FlashInfer 0.7. The state after
    each token goes to intermediate_states_buffer [>= B, >= T, HV, V, K], of the type of the pool,
    or to the slots `ssm_state_indices` [B, T] of the pool, and then the last elsewhere only if
    output_state_indices say where. Nothing is written to a negative slot.

    Returns the output [B, T, HV, V] and the pool. Refuses the caches of ReplaySSM."""
    name = "gated_delta_rule_mtp"
    refuse_pool(name, initial_state=initial_state)
    check_others(name, others)
    refuse_gradients(name, q=q, k=k, v=v, a=a, b=b)
    batch, tokens = check_tokens(name, q, k, v, a, b)
    check(name, "output", output, tuple(v.shape))
    check(name, "initial_state", initial_state, (None, *v.shape[2:], q.shape[3]))
    check_ids(name, "initial_state_indices", initial_state_indices, (batch,))
    check_ids(name, "output_state_indices", output_state_indices, (batch,))
    check_ids(name, "ssm_state_indices", ssm_state_indices, (batch, tokens))
    check_buffer(name, intermediate_states_buffer, initial_state, batch, tokens)
    stays = True if disable_state_update is None else disable_state_update
    if ssm_state_indices is not None and (intermediate_states_buffer is not None or stays):
        raise ValueError(
            f"{name}: ssm_state_indices: expected no intermediate_states_buffer beside it, and"
            " disable_state_update=False"
        )
    written = output_state_indices
    if written is None and ssm_state_indices is None:
        written = initial_state_indices
    out = torch.empty_like(v, memory_format=torch.contiguous_format)
    several_tokens(
        (q, k, v),
        (a, b, A_log, dt_bias),
        initial_state,
        initial_state_indices,
        None if stays else written,
        intermediate_states_buffer,
        ssm_state_indices,
        out.view(batch * tokens, *v.shape[2:]),
        finite(f"{name}: scale", scale),
        use_qk_l2norm,
    )
    if output is not None:
        is_live = (initial_state_indices >= 0)[:, None, None, None]
        out = output.copy_(torch.where(is_live, out.to(output.dtype), output))
    return out, initial_state
