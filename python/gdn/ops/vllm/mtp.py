# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's step of several tokens behind the convolution: the rule, then the norm."""

import torch
from torch import Tensor

from ...pool_states import refuse_pool
from ..arguments import check, refuse_gradients
from ..norm import check_eps, gated_rms_norm
from .update import fused_sigmoid_gating_delta_rule_update


def fused_gdn_decode_post_conv_mtp(
    mixed_qkv: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    state_indices: Tensor,
    cu_seqlens: Tensor,
    num_accepted_tokens: Tensor,
    state: Tensor,
    output_gate: Tensor,
    norm_weight: Tensor,
    out: Tensor | None = None,
    scale: float = 128**-0.5,
    norm_eps: float = 1e-5,
    output_gate_activation: str = "silu",
) -> Tensor:
    """mixed_qkv [T, 2 * H * K + HV * V] has q, k and v behind each other; a and b [T, HV] and
    A_log and dt_bias [HV] are raw gates. As fused_sigmoid_gating_delta_rule_update with slots
    `state_indices` [N, S] for the states after up to S <= 8 tokens of each sequence, in place in
    `state` [slots, HV, V, K]; q and k get unit length. Its result, in the type of `out`, goes
    through the gated RMS norm by norm_weight [V] and output_gate [T, HV, V], whose activation is
    silu or sigmoid, into `out` [T, HV, V], which is returned; without it a tensor like output_gate
    is made."""
    name = "fused_gdn_decode_post_conv_mtp"
    refuse_pool(name, state=state)
    refuse_gradients(name, mixed_qkv=mixed_qkv, a=a, b=b, output_gate=output_gate)
    if output_gate_activation not in ("silu", "sigmoid"):
        raise ValueError(
            f"{name}: output_gate_activation: expected silu or sigmoid, got"
            f" {output_gate_activation!r}"
        )
    check(name, "state", state, (None, None, None, None))
    check(name, "mixed_qkv", mixed_qkv, (None, None))
    check(name, "state_indices", state_indices, (None, None))
    value_heads, value_dim, key_dim = state.shape[1:]
    count, channels = mixed_qkv.shape
    keys = channels - value_heads * value_dim
    if keys <= 0 or key_dim == 0 or keys % (2 * key_dim):
        raise ValueError(
            f"{name}: mixed_qkv: expected q and k of heads of {key_dim}, and {value_heads} heads of"
            f" v of {value_dim}, got {channels} channels"
        )
    if out is None:
        out = torch.empty_like(output_gate)
    for which, array in (("output_gate", output_gate), ("out", out)):
        check(name, which, array, (count, value_heads, value_dim))
    check(name, "norm_weight", norm_weight, (value_dim,))
    for which, gate in (("a", a), ("b", b)):
        check(name, which, gate, (count, value_heads))
    norm_eps = check_eps(f"{name}: norm_eps", norm_eps)
    heads = keys // (2 * key_dim)
    q, k, v = mixed_qkv.split([keys // 2, keys // 2, value_heads * value_dim], dim=1)
    core, _ = fused_sigmoid_gating_delta_rule_update(
        A_log,
        a,
        b,
        dt_bias,
        q.unflatten(1, (heads, key_dim))[None],
        k.unflatten(1, (heads, key_dim))[None],
        v.unflatten(1, (value_heads, value_dim))[None],
        scale=scale,
        initial_state=state,
        cu_seqlens=cu_seqlens,
        ssm_state_indices=state_indices,
        num_accepted_tokens=num_accepted_tokens,
        use_qk_l2norm_in_kernel=True,
    )
    core = core[0].to(out.dtype)
    is_sigmoid = output_gate_activation == "sigmoid"
    return out.copy_(gated_rms_norm(core, output_gate, norm_weight, norm_eps, is_sigmoid))
