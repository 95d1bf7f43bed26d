# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's kernels of a decode step: in Triton the update of the convolution, the packed
decode (split, l2norm, gates, rule, in place) and the gated norm, three launches; in CUDA one for
rule and norm, behind that convolution.

They are called as its layer calls them, except that projections come contiguous and
the convolution writes beside its input, so that every replay sees the same numbers.
"""

from collections.abc import Callable

import torch

from ..inputs import Inputs, Step
from .peer import Peer


def convolution(step: Step, x: Inputs, pools: dict[str, torch.Tensor], output: torch.Tensor):
    """The update of the convolution on slots of the pool, [slots, channels, K - 1]."""
    from vllm.model_executor.layers.mamba.ops.causal_conv1d import causal_conv1d_update

    return lambda: causal_conv1d_update(
        x.mixed,
        pools["conv_pool"],
        step.shared["conv_weight"],
        None,
        "silu",
        conv_state_indices=pools["slots"],
        out=output,
    )


def norm(step: Step, x: Inputs, core: torch.Tensor, output: torch.Tensor):
    """The gated norm of each head."""
    from vllm.third_party.flash_linear_attention.ops.layernorm_guard import layer_norm_fwd

    size = step.layer.value_dim
    rows, gate, normed = core.view(-1, size), x.z.view(-1, size), output.view(-1, size)
    return lambda: layer_norm_fwd(
        rows,
        step.shared["norm_weight"],
        None,
        step.layer.norm_eps,
        z=gate,
        out=normed,
        group_size=size,
        norm_before_gate=True,
        is_rms_norm=True,
        activation=step.layer.gate,
    )


def _decode(step: Step, x: Inputs, mixed: torch.Tensor, pools: dict, output: torch.Tensor):
    from vllm.third_party.flash_linear_attention.ops.fused_recurrent import (
        fused_recurrent_gated_delta_rule_packed_decode,
    )

    return lambda: fused_recurrent_gated_delta_rule_packed_decode(
        mixed_qkv=mixed,
        a=x.a,
        b=x.b,
        A_log=step.shared["A_log"],
        dt_bias=step.shared["dt_bias"],
        scale=step.layer.key_dim**-0.5,
        initial_state=pools["state_pool"],
        out=output,
        ssm_state_indices=pools["slots"],
        use_qk_l2norm_in_kernel=True,
    )


def rule(step: Step, x: Inputs) -> Peer:
    """The packed decode from what the convolution gives."""
    output = x.new_output()
    calls = [_decode(step, x, x.convolved, pools, output) for pools in step.sets]
    return Peer(calls, lambda: output[:, 0], step.states_in_slots)


def rule_of_gates(step: Step, x: Inputs) -> Peer:
    """The other kernel of its layer: queries, keys and values apart, gates in the kernel."""
    from vllm.third_party.flash_linear_attention.ops.fused_sigmoid_gating import (
        fused_sigmoid_gating_delta_rule_update,
    )

    q, k, v = (part.transpose(0, 1) for part in x.heads_of(x.convolved))
    starts = torch.arange(step.sizes.rows + 1, dtype=torch.int32, device="cuda")
    left: dict = {}

    def call(index: int, pools: dict[str, torch.Tensor]):
        def run():
            left[index] = fused_sigmoid_gating_delta_rule_update(
                A_log=step.shared["A_log"],
                a=x.a,
                b=x.b,
                dt_bias=step.shared["dt_bias"],
                q=q,
                k=k,
                v=v,
                initial_state=pools["state_pool"],
                cu_seqlens=starts,
                ssm_state_indices=pools["slots"],
                use_qk_l2norm_in_kernel=True,
            )[0]

        return run

    calls = [call(index, pools) for index, pools in enumerate(step.sets)]
    return Peer(calls, lambda: left[0][0], step.states_in_slots)


def decode_step(step: Step, x: Inputs) -> Peer:
    """Convolution, packed decode, norm."""
    core, output, mixed = x.new_output(), x.new_output(), torch.empty_like(x.mixed)
    normalise = norm(step, x, core, output)

    def call(pools: dict[str, torch.Tensor]):
        convolve = convolution(step, x, pools, mixed)
        decode = _decode(step, x, mixed, pools, core)

        def run():
            convolve()
            decode()
            normalise()

        return run

    calls = [call(pools) for pools in step.sets]
    return Peer(calls, lambda: output[:, 0], step.states_in_slots)


def cuda_op() -> Callable:
    """The operator of CUDA, of vLLM's library, by the names of its Triton form's arguments. Raises
    ImportError where nobody has loaded it."""
    import vllm._C_stable_libtorch  # noqa: F401

    name = "fused_gdn_decode_post_conv_mtp"
    if not hasattr(torch.ops._C, name):
        raise ImportError(f"expected vLLM's library with the operator {name}, found none")
    op = getattr(torch.ops._C, name)

    def run(
        *,
        mixed_qkv,
        a,
        b,
        A_log,  # noqa: N803
        dt_bias,
        state_indices,
        cu_seqlens,
        num_accepted_tokens,
        state,
        output_gate,
        norm_weight,
        out,
        scale,
        norm_eps,
        output_gate_activation,
    ):
        pools = (state_indices, cu_seqlens, num_accepted_tokens, state)
        norm = (output_gate, norm_weight, out, scale, norm_eps, output_gate_activation)
        op(mixed_qkv, a, b, A_log, dt_bias, *pools, *norm)

    return run


def _cuda(step: Step, x: Inputs, mixed: torch.Tensor, pools: dict, output: torch.Tensor):
    """Rule and norm of one token of each row, which is the one that was accepted."""
    rows, op = step.sizes.rows, cuda_op()
    slots = pools["slots"][:, None]
    starts = torch.arange(rows + 1, dtype=torch.int32, device="cuda")
    accepted = torch.ones(rows, dtype=torch.int32, device="cuda")
    return lambda: op(
        mixed_qkv=mixed,
        a=x.a,
        b=x.b,
        A_log=step.shared["A_log"],
        dt_bias=step.shared["dt_bias"],
        state_indices=slots,
        cu_seqlens=starts,
        num_accepted_tokens=accepted,
        state=pools["state_pool"],
        output_gate=x.z,
        norm_weight=step.shared["norm_weight"],
        out=output[:, 0],
        scale=step.layer.key_dim**-0.5,
        norm_eps=step.layer.norm_eps,
        output_gate_activation=step.layer.gate,
    )


def rule_and_norm(step: Step, x: Inputs) -> Peer:
    """The operator of CUDA from what the convolution gives."""
    output = x.new_output()
    calls = [_cuda(step, x, x.convolved, pools, output) for pools in step.sets]
    return Peer(calls, lambda: output[:, 0], step.states_in_slots, has_norm=True)


def decode_step_of_cuda(step: Step, x: Inputs) -> Peer:
    """Convolution, and the operator of CUDA."""
    output, mixed = x.new_output(), torch.empty_like(x.mixed)

    def call(pools: dict[str, torch.Tensor]):
        convolve = convolution(step, x, pools, mixed)
        decode = _cuda(step, x, mixed, pools, output)

        def run():
            convolve()
            decode()

        return run

    calls = [call(pools) for pools in step.sets]
    return Peer(calls, lambda: output[:, 0], step.states_in_slots)
