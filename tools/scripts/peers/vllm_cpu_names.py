# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn's functions under the names of vLLM's operators for CPUs. Their states are [slots, HV, K, V],
and slot 0 is one like others."""

import torch

from .modules import module, without_cuda
from .vllm_names import Platform, install_common


class _Cpu(Platform):
    def is_cpu(self) -> bool:
        return True


def install(device: str) -> None:
    from gdn.ops.arguments import decays

    def gating(A_log, a, b, dt_bias):
        return decays(a[None], A_log, dt_bias), b.sigmoid()[None]

    install_common(_Cpu("cpu"))
    without_cuda()
    module(
        "vllm._custom_ops",
        fused_gdn_gating_cpu=gating,
        fused_sigmoid_gating_delta_rule_update_cpu=_update,
        chunk_gated_delta_rule_cpu=_chunks,
        causal_conv1d_update_cpu=_conv_update,
        causal_conv1d_fwd_cpu=_conv_prefill,
        causal_conv1d_weight_pack=lambda weight: weight,
    )
    below = "vllm.model_executor.layers.mamba.ops.cpu"
    module(f"{below}.gdn_attention", is_arm_bf16=lambda: True)
    module(
        f"{below}.causal_conv1d",
        causal_conv1d_fn_cpu=_conv_fn,
        causal_conv1d_update_torch=_conv_update_torch,
    )
    module("vllm.v1.attention.backends.gdn_attn", GDNAttentionMetadata=None)


def _update(
    A_log, dt_bias, q, k, v, a, b, initial_state_source, initial_state_indices, cu_seqlens,
    use_qk_l2norm_in_kernel,
):  # fmt: skip
    from gdn.ops.step import gated_delta_step

    states, out = initial_state_source.mT.contiguous(), torch.empty_like(v[0])
    gates = (a, b, A_log, dt_bias)
    places = (states, initial_state_indices, None, out)
    gated_delta_step(q[0], k[0], v[0], *gates, *places, None, use_qk_l2norm_in_kernel, -1)
    initial_state_source.copy_(states.mT)
    return out[:, None]


def _chunks(
    query, key, value, g, beta, initial_state, output_final_state, cu_seqlens, head_first,
    use_qk_l2norm_in_kernel, initial_state_indices,
):  # fmt: skip
    from gdn.ops.prefill import delta_prefill

    out, states = torch.empty_like(value[0]), initial_state.mT.contiguous()
    places = (states, initial_state_indices, cu_seqlens, None, None, None, None, out)
    inputs = (query[0], key[0], value[0], g[0], beta[0])
    delta_prefill(*inputs, *places, None, use_qk_l2norm_in_kernel, False)
    return out[None], states.mT.contiguous()


def _conv_fn(
    x, weight, bias, conv_states, query_start_loc, cache_indices=None, has_initial_state=None,
    activation="silu",
):  # fmt: skip
    from gdn.ops.vllm import causal_conv1d_fn

    places = (conv_states, query_start_loc, cache_indices, has_initial_state)
    return causal_conv1d_fn(x, weight, bias, *places, activation, null_block_id=None)


def _conv_prefill(
    x, weight, bias, conv_states, query_start_loc, cache_indices, has_initial_state,
    silu_activation, is_weight_packed,
):  # fmt: skip
    places = (conv_states, query_start_loc, cache_indices, has_initial_state)
    return _conv_fn(x, weight, bias, *places, silu_activation)


def _conv_update(
    x, conv_states, weight, bias, silu_activation, conv_state_indices, is_weight_packed,
    num_accepted_tokens=None,
):  # fmt: skip
    from gdn.ops.vllm import causal_conv1d_update

    # Several tokens are [N, L, D] here.
    tokens = x.transpose(1, 2) if x.dim() == 3 else x
    out = causal_conv1d_update(
        tokens.clone(),
        conv_states,
        weight,
        bias,
        silu_activation,
        conv_state_indices,
        num_accepted_tokens,
        null_block_id=None,
    )
    return out.transpose(1, 2) if x.dim() == 3 else out


def _conv_update_torch(x, conv_state, weight, bias=None, activation=None):
    """What the suite compares with, by PyTorch's convolution in f32."""
    inputs = torch.cat([conv_state, x], -1)
    conv_state.copy_(inputs[..., -conv_state.shape[-1] :])
    bias = None if bias is None else bias.float()
    weight = weight.float()[:, None]
    out = torch.nn.functional.conv1d(inputs.float(), weight, bias, groups=weight.shape[0])
    out = out[..., -x.shape[-1] :]
    return (torch.nn.functional.silu(out) if activation else out).to(x.dtype)
