# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's steps of one token or several, on states in place."""

import torch
from torch import Tensor

from ...call_options import finite
from ...pool_states import refuse_pool
from ..arguments import check, check_ids, check_starts, refuse_gradients
from ..convolution import uniform
from ..step import gated_delta_step
from ..verify import gated_delta_verify, gated_delta_verify_in_slots


def fused_sigmoid_gating_delta_rule_update(
    A_log: Tensor,
    a: Tensor,
    b: Tensor,
    dt_bias: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: float = 1.0,
    threshold: float = 20.0,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    inplace_final_state: bool = True,
    cu_seqlens: Tensor | None = None,
    ssm_state_indices: Tensor | None = None,
    num_accepted_tokens: Tensor | None = None,
    use_qk_l2norm_in_kernel: bool = False,
    is_kda: bool = False,
) -> tuple[Tensor, Tensor]:
    """q and k [B, T, H, K], v [B, T, HV, V], a and b [B * T, HV] of B sequences, or of N with
    `cu_seqlens` [N + 1] and B = 1. States `initial_state` [slots, HV, V, K] are changed in place;
    slot 0 is vLLM's null slot, and a sequence that starts with it gives zeros.

    `ssm_state_indices` [N] has the slot of each sequence, of one token. As [N, S] it has a slot for
    the state after each of up to S <= 8 tokens; the sequence starts with that of the last of
    num_accepted_tokens [N] accepted ones, or with the first. With inplace_final_state=False the
    states after all tokens are returned instead, [B * T, HV, V, K], and sequence n starts with
    initial_state[n] without `ssm_state_indices`.

    Returns the output in the shape of v and the states. Refuses other constants of softplus, and
    KDA."""
    name = "fused_sigmoid_gating_delta_rule_update"
    refuse_pool(name, initial_state=initial_state)
    refuse_gradients(name, q=q, k=k, v=v, a=a, b=b)
    for which, given, expected in (
        ("is_kda", is_kda, False),
        ("beta", beta, 1.0),
        ("threshold", threshold, 20.0),
    ):
        if given != expected:
            raise ValueError(f"{name}: {which}: expected {expected}, got {given}")
    if initial_state is None:
        raise ValueError(f"{name}: initial_state: expected states [slots, HV, V, K], got None")
    check(name, "initial_state", initial_state, (None, None, None, None))
    check(name, "q", q, (None, None, None, None))
    check(name, "k", k, tuple(q.shape))
    check(name, "v", v, (*q.shape[:2], None, None))
    if cu_seqlens is not None and q.shape[0] != 1:
        raise ValueError(f"{name}: q: expected one row with cu_seqlens, got {q.shape[0]}")
    tokens = v.shape[0] * v.shape[1]
    for which, gate in (("a", a), ("b", b)):
        rows = gate.numel() // max(v.shape[2], 1)
        if gate.shape[-1:] != v.shape[2:3] or rows != tokens:
            raise ValueError(
                f"{name}: {which}: expected the shape [{tokens}, {v.shape[2]}], got"
                f" {list(gate.shape)}"
            )
    count = v.shape[0]
    if cu_seqlens is not None:
        count = check_starts(name, "cu_seqlens", cu_seqlens)
    check_ids(name, "num_accepted_tokens", num_accepted_tokens, (count,))
    out = torch.empty_like(v, memory_format=torch.contiguous_format)
    flat = tuple(x.reshape(tokens, *x.shape[2:]) for x in (q, k, v))
    flat += (a.reshape(tokens, -1), b.reshape(tokens, -1), A_log, dt_bias)
    rest = (
        out.view(tokens, *v.shape[2:]),
        finite(f"{name}: scale", scale),
        use_qk_l2norm_in_kernel,
    )
    starts = cu_seqlens
    if starts is None:
        starts = uniform(count, v.shape[1], q.device)
    slots = ssm_state_indices
    if not inplace_final_state:
        null_slot = 0
        if slots is None:
            slots, null_slot = torch.arange(count, device=q.device), -1
        first = _first(slots, num_accepted_tokens)
        kept = initial_state.new_empty((tokens, *initial_state.shape[1:]))
        # Place of a token in `kept` is its own, whatever the sequence.
        places = starts[:-1].long()[:, None] + torch.arange(tokens, device=q.device)
        places = torch.where(places < starts[1:, None], places, -1)
        gated_delta_verify(*flat, initial_state, first, starts, kept, places, *rest, null_slot)
        return out, kept
    if slots is None:
        raise ValueError(
            f"{name}: ssm_state_indices: expected slots with inplace_final_state, got None"
        )
    if slots.dim() == 1:
        _check_step(name, slots, num_accepted_tokens, tokens, cu_seqlens)
        gated_delta_step(*flat, initial_state, slots, None, *rest, 0)
        return out, initial_state
    if num_accepted_tokens is None:
        num_accepted_tokens = torch.ones(count, dtype=torch.int32, device=q.device)
    gated_delta_verify_in_slots(*flat, initial_state, slots, num_accepted_tokens, starts, *rest, 0)
    return out, initial_state


def _first(slots: Tensor, num_accepted: Tensor | None) -> Tensor:
    """The slots that sequences start with."""
    if slots.dim() == 1:
        return slots
    if num_accepted is None:
        return slots[:, 0]
    last = (num_accepted.long() - 1).clamp(0, slots.shape[1] - 1)
    return slots.gather(1, last[:, None])[:, 0]


def _check_step(
    name: str, slots: Tensor, num_accepted: Tensor | None, tokens: int, cu_seqlens: Tensor | None
) -> None:
    """One slot of a sequence is for one token. What only a device knows is the caller's promise."""
    count = slots.shape[0]
    if num_accepted is not None:
        raise ValueError(
            f"{name}: num_accepted_tokens: expected None with ssm_state_indices [N], got counts"
        )
    is_step = tokens == count
    if is_step and cu_seqlens is not None:
        is_step = cu_seqlens.shape == (count + 1,)
        if is_step and not cu_seqlens.is_cuda and not torch.compiler.is_compiling():
            is_step = torch.equal(cu_seqlens.long(), torch.arange(count + 1))
    if not is_step:
        raise ValueError(
            f"{name}: cu_seqlens: expected {count} sequences of one token with ssm_state_indices"
            f" [N], got others, of {tokens} tokens"
        )
