# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A token of each sequence on states in place, under the names of FlashInfer and vLLM. States are
[slots, HV, V, K]."""

import torch
from torch import Tensor

from ..rule_step import delta_step as ready_step
from ..rule_step import gated_delta_step as step
from .arguments import refuse_gradients


@torch.library.custom_op("gdn::gated_delta_step", mutates_args=("states", "out"))
def gated_delta_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    states: Tensor,
    slots: Tensor,
    write_slots: Tensor | None,
    out: Tensor,
    scale: float | None,
    l2norm: bool,
    null_slot: int,
) -> None:
    """See gdn.rule_step.gated_delta_step."""
    step(
        q,
        k,
        v,
        a,
        b,
        A_log,
        dt_bias,
        states,
        slots,
        write_slots=write_slots,
        out=out,
        scale=scale,
        l2norm=l2norm,
        null_slot=null_slot,
    )


@torch.library.custom_op("gdn::delta_step", mutates_args=("states", "out"))
def delta_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    states: Tensor,
    out: Tensor,
    l2norm: bool,
    allow_neg_eigval: bool,
) -> None:
    """See gdn.rule_step.delta_step; sequence n has state n."""
    options = {"l2norm": l2norm, "allow_neg_eigval": allow_neg_eigval}
    ready_step(q, k, v, log_decay, beta, states, out=out, **options)


def gated_delta_rule_decode_pretranspose(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: Tensor | None,
    A_log: Tensor,
    a: Tensor,
    dt_bias: Tensor,
    b: Tensor,
    scale: float | None = None,
    output: Tensor | None = None,
    use_qk_l2norm: bool = True,
    initial_state: Tensor | None = None,
    initial_state_indices: Tensor | None = None,
    output_state_indices: Tensor | None = None,
    intermediate_states_buffer: Tensor | None = None,
    disable_state_update: bool = False,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """FlashInfer's. q and k [B, 1, H, K], v [B, 1, HV, V], a and b [B, 1, HV]; `state`
    [B, HV, V, K], or a pool `initial_state` with the slots `initial_state_indices` [B], and
    `output_state_indices` where they differ. States of f32, bf16 or f16 are changed in place. A
    sequence with slot -1 is skipped: its output is zeros. `backend` is not looked at.

    Returns the output [B, 1, HV, V] and the states. ValueError for more than one token, and for
    intermediate_states_buffer and disable_state_update, which are for several."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() != 4 or tensor.shape[1] != 1:
            raise ValueError(f"{name}: expected the shape [B, 1, H, d], got {list(tensor.shape)}")
    refuse_gradients("gated_delta_rule_decode_pretranspose", q=q, k=k, v=v, a=a, b=b)
    if intermediate_states_buffer is not None or disable_state_update:
        raise ValueError(
            "intermediate_states_buffer, disable_state_update: expected none for one token"
        )
    if (state is None) == (initial_state is None):
        raise ValueError("state: expected either it or initial_state, got both or none")
    if initial_state is not None:
        if initial_state_indices is None:
            raise ValueError("initial_state_indices: expected slots for initial_state, got None")
        states, slots = initial_state, initial_state_indices
    else:
        for name, given in (
            ("initial_state_indices", initial_state_indices),
            ("output_state_indices", output_state_indices),
        ):
            if given is not None:
                raise ValueError(f"{name}: expected None beside state, got slots of a pool")
        if state.shape[0] != q.shape[0]:
            raise ValueError(f"state: expected {q.shape[0]} states, got {state.shape[0]}")
        states = state
        slots = torch.arange(q.shape[0], dtype=torch.int32, device=q.device)
    if output is None:
        output = torch.empty_like(v, memory_format=torch.contiguous_format)
    gated_delta_step(
        q[:, 0],
        k[:, 0],
        v[:, 0],
        a[:, 0],
        b[:, 0],
        A_log,
        dt_bias,
        states,
        slots,
        output_state_indices,
        output[:, 0],
        None if scale is None else float(scale),
        use_qk_l2norm,
        -1,
    )
    return output, states


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
    """vLLM's, for one token of each sequence: q and k [1, N, H, K] (or [N, 1, H, K]), v with heads
    HV, a and b [N, HV], states `initial_state` [slots, HV, V, K], changed in place, at
    `ssm_state_indices` [N]. Slot 0 is vLLM's null slot: what has it gives zeros.

    Returns the output in the shape of v and the states. ValueError for what a step of one token
    has not: num_accepted_tokens, other softplus constants, KDA, and states that are not changed in
    place. `cu_seqlens` has to say that each sequence has one token; on a CPU that is checked."""
    refuse_gradients("fused_sigmoid_gating_delta_rule_update", q=q, k=k, v=v, a=a, b=b)
    for name, given, expected in (
        ("num_accepted_tokens", num_accepted_tokens, None),
        ("is_kda", is_kda, False),
        ("inplace_final_state", inplace_final_state, True),
        ("beta", beta, 1.0),
        ("threshold", threshold, 20.0),
    ):
        if given is not expected and given != expected:
            raise ValueError(f"{name}: expected {expected} for a step of one token, got another")
    if initial_state is None:
        raise ValueError("initial_state: expected states [slots, HV, V, K], got None")
    if ssm_state_indices is None or ssm_state_indices.dim() != 1:
        raise ValueError("ssm_state_indices: expected a slot for each sequence, got another shape")
    heads, value_heads = q.shape[2:], v.shape[2:]
    count = ssm_state_indices.shape[0]
    if v.shape[0] * v.shape[1] != count:
        raise ValueError(
            f"v: expected a token for each of the {count} sequences, got {list(v.shape[:2])}"
        )
    if cu_seqlens is not None:
        is_step = cu_seqlens.shape == (count + 1,)
        if is_step and not cu_seqlens.is_cuda:
            is_step = torch.equal(cu_seqlens.long(), torch.arange(count + 1))
        if not is_step:
            raise ValueError(f"cu_seqlens: expected {count} sequences of one token, got others")
    out = torch.empty_like(v, memory_format=torch.contiguous_format)
    gated_delta_step(
        q.reshape(count, *heads),
        k.reshape(count, *heads),
        v.reshape(count, *value_heads),
        a.reshape(count, -1),
        b.reshape(count, -1),
        A_log,
        dt_bias,
        initial_state,
        ssm_state_indices,
        None,
        out.view(count, *value_heads),
        None if scale is None else float(scale),
        use_qk_l2norm_in_kernel,
        0,
    )
    return out, initial_state
