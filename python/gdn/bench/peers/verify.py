# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peers that verify several tokens of each row and keep the state after each. Their `output` is
[rows, T, Hv, dv], their `states` those after the last token."""

from collections.abc import Callable

import torch

from . import vllm
from .peer import Peer


def _flashinfer_calls(x, states_of: Callable[[int], dict], output: torch.Tensor):
    from flashinfer.gdn_decode import gated_delta_rule_decode_pretranspose, gated_delta_rule_mtp

    q, k, v = x.heads_of()

    def call(index: int):
        states = states_of(index)
        # Each entry point takes one type of states.
        function = (
            gated_delta_rule_mtp
            if x.states[index].dtype == torch.float32
            else gated_delta_rule_decode_pretranspose
        )
        pool = {"initial_state": x.states[index]}
        if function is gated_delta_rule_decode_pretranspose:
            pool["state"] = None

        def run():
            return function(
                q=q,
                k=k,
                v=v,
                A_log=x.a_log,
                a=x.a,
                dt_bias=x.dt_bias,
                b=x.b,
                output=output,
                use_qk_l2norm=True,
                **pool,
                **states,
            )

        return run

    return [call(index) for index in range(len(x.states))]


def flashinfer_buffer(x) -> Peer:
    """States after each token to a buffer; the pool stays as it is."""
    output = torch.full_like(x.z, float("nan"))
    shape = (x.rows, x.tokens, *x.states[0].shape[1:])
    buffers = [torch.empty(shape, device="cuda", dtype=x.states[0].dtype) for _ in x.states]
    first = x.slots[:, 0].contiguous()

    def states_of(index: int) -> dict:
        return {
            "initial_state_indices": first,
            "intermediate_states_buffer": buffers[index],
            "disable_state_update": True,
        }

    calls = _flashinfer_calls(x, states_of, output)
    return Peer(calls, lambda: output, lambda: buffers[0][:, -1])


def flashinfer_slots(x) -> Peer:
    """States after each token to slots of the pool; f32 alone."""
    if x.states[0].dtype != torch.float32:
        raise ValueError("states: expected float32")
    output, slots = torch.full_like(x.z, float("nan")), x.slots
    first = slots[:, 0].contiguous()

    def states_of(index: int) -> dict:
        return {
            "initial_state_indices": first,
            "ssm_state_indices": slots,
            "disable_state_update": False,
        }

    calls = _flashinfer_calls(x, states_of, output)
    last = slots[:, -1].long()
    return Peer(calls, lambda: output, lambda: x.states[0][last])


def flashinfer_replay(x) -> Peer:
    """The state stays as it is, and tokens are kept for a commit."""
    from flashinfer.gdn_decode import gated_delta_rule_mtp

    q, k, v = x.heads_of()
    output = torch.full_like(x.z, float("nan"))
    slots, first = len(x.states[0]), x.slots[:, 0].contiguous()
    (keys, size), (values, width) = q.shape[2:], v.shape[2:]
    kept = {
        "replayssm_rawv": torch.empty(slots, values, x.tokens, width, device="cuda", dtype=v.dtype),
        "replayssm_rawk": torch.empty(slots, keys, x.tokens, size, device="cuda", dtype=k.dtype),
        "replayssm_g": torch.empty(slots, values, x.tokens, device="cuda"),
        "replayssm_beta": torch.empty(slots, values, x.tokens, device="cuda"),
    }

    def call(states: torch.Tensor):
        return lambda: gated_delta_rule_mtp(
            q=q,
            k=k,
            v=v,
            initial_state=states,
            initial_state_indices=first,
            A_log=x.a_log,
            a=x.a,
            dt_bias=x.dt_bias,
            b=x.b,
            output=output,
            disable_state_update=True,
            cache_replayssm=True,
            **kept,
        )

    return Peer([call(of) for of in x.states], lambda: output, lambda: x.states[0][first])


def _vllm_slots(x, decode: Callable) -> Peer:
    """vLLM's rule and norm of several tokens; states after each token to slots of the pool."""
    count, slots = x.rows * x.tokens, x.slots
    output = torch.full_like(x.z, float("nan")).view(count, *x.z.shape[2:])
    flat = {
        "mixed_qkv": x.mixed.view(count, -1),
        "a": x.a.view(count, -1),
        "b": x.b.view(count, -1),
        "output_gate": x.z.view_as(output),
    }
    starts = torch.arange(0, count + 1, x.tokens, dtype=torch.int32, device="cuda")
    accepted = torch.ones(x.rows, dtype=torch.int32, device="cuda")

    def call(states: torch.Tensor):
        return lambda: decode(
            **flat,
            A_log=x.a_log,
            dt_bias=x.dt_bias,
            state_indices=slots,
            cu_seqlens=starts,
            num_accepted_tokens=accepted,
            state=states,
            norm_weight=x.norm_weight,
            out=output,
            scale=x.layer.key_dim**-0.5,
            norm_eps=x.layer.norm_eps,
            output_gate_activation=x.layer.gate,
        )

    last = slots[:, -1].long()
    return Peer(
        [call(states) for states in x.states],
        lambda: output.view_as(x.z),
        lambda: x.states[0][last],
        has_norm=True,
    )


def vllm_slots(x) -> Peer:
    """In two launches of Triton."""
    from vllm.third_party.flash_linear_attention.ops.fused_gdn_decode_post_conv_mtp import (
        fused_gdn_decode_post_conv_mtp_triton,
    )

    return _vllm_slots(x, fused_gdn_decode_post_conv_mtp_triton)


def vllm_cuda_slots(x) -> Peer:
    """In one launch, of CUDA."""
    return _vllm_slots(x, vllm.cuda_op())


# Implementation, mode, part of a step; and what prepares its calls.
PEERS = [
    ("flashinfer", "buffer", "rule", flashinfer_buffer),
    ("flashinfer", "slots", "rule", flashinfer_slots),
    ("flashinfer", "replay", "rule", flashinfer_replay),
    ("vllm", "slots", "rule and norm", vllm_slots),
    ("vllm-cuda", "slots", "rule and norm", vllm_cuda_slots),
]
