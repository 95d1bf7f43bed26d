# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's decode on states in place."""

import torch
from torch import Tensor

from ...call_options import finite
from ...pool_states import refuse_pool
from ..arguments import check, check_ids, refuse_gradients
from ..several import several_tokens
from ..step import gated_delta_step


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
    """q and k [B, T, H, K], v [B, T, HV, V], a and b [B, T, HV]; `state` [B, HV, V, K], or a pool
    `initial_state` with the slots `initial_state_indices` [B], and `output_state_indices` where
    they differ. States of f32, bf16 or f16 are changed in place. A sequence with slot -1 is
    skipped: its output is zeros, and nothing is written. `backend` is not looked at.

    For several tokens, intermediate_states_buffer [>= B, >= T, HV, V, K] of the type of the states
    gets the state after each, and with disable_state_update the states stay as they are.

    Returns the output [B, T, HV, V] and the states."""
    name = "gated_delta_rule_decode_pretranspose"
    refuse_pool(name, state=state, initial_state=initial_state)
    refuse_gradients(name, q=q, k=k, v=v, a=a, b=b)
    batch, tokens = check_tokens(name, q, k, v, a, b)
    check(name, "output", output, tuple(v.shape))
    for which, states in (("state", state), ("initial_state", initial_state)):
        check(name, which, states, (None, None, None, None))
    check_ids(name, "initial_state_indices", initial_state_indices, (batch,))
    check_ids(name, "output_state_indices", output_state_indices, (batch,))
    scale = finite(f"{name}: scale", scale)
    if tokens == 1 and (intermediate_states_buffer is not None or disable_state_update):
        raise ValueError(
            "intermediate_states_buffer, disable_state_update: supported only for T > 1, got one"
            " token"
        )
    states, slots = _states(q, state, initial_state, initial_state_indices, output_state_indices)
    out = output
    if out is None or out.dtype != v.dtype or not out.is_contiguous():
        out = torch.empty_like(v, memory_format=torch.contiguous_format)
    if tokens == 1:
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
            out[:, 0],
            scale,
            use_qk_l2norm,
            -1,
        )
    else:
        written = slots if output_state_indices is None else output_state_indices
        check_buffer(name, intermediate_states_buffer, states, batch, tokens)
        several_tokens(
            (q, k, v),
            (a, b, A_log, dt_bias),
            states,
            slots,
            None if disable_state_update else written,
            intermediate_states_buffer,
            None,
            out.view(batch * tokens, *v.shape[2:]),
            scale,
            use_qk_l2norm,
        )
    if output is not None and output is not out:
        out = output.copy_(out)
    return out, states


def gated_delta_rule_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: Tensor,
    A_log: Tensor,
    a: Tensor,
    dt_bias: Tensor,
    b: Tensor,
    scale: float | None = None,
    output: Tensor | None = None,
    use_qk_l2norm: bool = True,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """As gated_delta_rule_decode_pretranspose of one token, on states [B, HV, K, V] in place."""
    refuse_pool("gated_delta_rule_decode", state=state)
    check("gated_delta_rule_decode", "state", state, (None, None, None, None))
    gates = (A_log, a, dt_bias, b)
    out, _ = gated_delta_rule_decode_pretranspose(
        q, k, v, state.mT, *gates, scale, output, use_qk_l2norm
    )
    return out, state


def _states(
    q: Tensor,
    state: Tensor | None,
    pool: Tensor | None,
    indices: Tensor | None,
    write_indices: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The states and a slot for each sequence."""
    if (state is None) == (pool is None):
        raise ValueError("state: expected either it or initial_state, got both or none")
    if pool is not None:
        if indices is None:
            raise ValueError("initial_state_indices: expected slots for initial_state, got None")
        return pool, indices
    for name, given in (
        ("initial_state_indices", indices),
        ("output_state_indices", write_indices),
    ):
        if given is not None:
            raise ValueError(f"{name}: expected None beside state, got slots of a pool")
    if state.shape[0] != q.shape[0]:
        raise ValueError(f"state: expected {q.shape[0]} states, got {state.shape[0]}")
    return state, torch.arange(q.shape[0], dtype=torch.int32, device=q.device)


def check_tokens(
    function: str, q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor
) -> tuple[int, int]:
    """How many sequences there are, of how many tokens."""
    check(function, "q", q, (None, None, None, None))
    batch, tokens = q.shape[:2]
    check(function, "k", k, tuple(q.shape))
    check(function, "v", v, (batch, tokens, None, None))
    for name, gate in (("a", a), ("b", b)):
        check(function, name, gate, (batch, tokens, v.shape[2]))
    if tokens < 1:
        raise ValueError(f"{function}: q: expected one token or more, got {list(q.shape)}")
    return batch, tokens


def check_buffer(
    function: str, buffer: Tensor | None, states: Tensor, batch: int, tokens: int
) -> None:
    """A buffer has the state after each token of each sequence, or more."""
    if buffer is None:
        return
    check(function, "intermediate_states_buffer", buffer, (None, None, *states.shape[1:]))
    name = f"{function}: intermediate_states_buffer"
    if buffer.shape[0] < batch or buffer.shape[1] < tokens:
        raise ValueError(
            f"{name}: expected at least {batch} sequences of {tokens} tokens, got"
            f" {list(buffer.shape[:2])}"
        )
    if buffer.dtype != states.dtype:
        raise ValueError(f"{name}: expected the type of the states, got {buffer.dtype}")
    if not buffer.is_contiguous():
        raise ValueError(f"{name}: expected a contiguous buffer, got strides {buffer.stride()}")
