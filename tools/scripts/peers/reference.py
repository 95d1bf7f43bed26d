# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recurrence and the norm in f64, with the arguments that vLLM's suite gives its kernels."""

import torch


def fused_recurrent_gated_delta_rule(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor,
    ssm_state_indices: torch.Tensor,
    scale: float | None = None,
    inplace_final_state: bool = True,
    cu_seqlens: torch.Tensor | None = None,
    num_accepted_tokens: torch.Tensor | None = None,
    use_qk_l2norm_in_kernel: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """q and k [B, T, H, K], v [B, T, HV, V], g and beta [B, T, HV]; states [slots, HV, V, K]."""
    out = torch.zeros_like(v)
    inputs = [x.flatten(0, 1).double() for x in (q, k, v, g, beta)]
    if use_qk_l2norm_in_kernel:
        for i in range(2):
            length = (inputs[i].square().sum(-1, keepdim=True) + 1e-6).sqrt()
            inputs[i] = inputs[i] / length
    q, k, v, g, beta = inputs
    shared = v.shape[1] // q.shape[1]
    q, k = q.repeat_interleave(shared, 1), k.repeat_interleave(shared, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if cu_seqlens is None:
        cu_seqlens = torch.arange(out.shape[0] + 1) * out.shape[1]
    ends = cu_seqlens.tolist()
    rows = out.view(-1, *out.shape[2:])
    table = ssm_state_indices.reshape(len(ends) - 1, -1).tolist()
    for n, slots in enumerate(table):
        first = 0 if num_accepted_tokens is None else int(num_accepted_tokens[n]) - 1
        if slots[first] <= 0:
            continue
        state = initial_state[slots[first]].double()
        for place, t in enumerate(range(ends[n], ends[n + 1])):
            state = state * g[t].exp()[:, None, None]
            error = beta[t][:, None] * (v[t] - (state * k[t][:, None]).sum(-1))
            state = state + error[..., None] * k[t][:, None]
            rows[t] = (scale * (state * q[t][:, None]).sum(-1)).to(out.dtype)
            if slots[place] > 0:
                initial_state[slots[place]] = state.to(initial_state.dtype)
    return out, initial_state


def rmsnorm_fn(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    z: torch.Tensor,
    eps: float,
    norm_before_gate: bool,
    activation: str,
) -> torch.Tensor:
    """The norm of the last dimension, which is gated by z behind it."""
    assert norm_before_gate and bias is None
    rows, gate = x.double(), z.double()
    norm = rows * (rows.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.double()
    act = gate.sigmoid() if activation == "sigmoid" else torch.nn.functional.silu(gate)
    return (norm * act).to(x.dtype)
