# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn's functions under FlashInfer's names."""

import pytest
import torch

from .modules import module, without_cuda


def install(device: str) -> None:
    from gdn.ops import flashinfer as ours

    module(
        "flashinfer.gdn_decode",
        gated_delta_rule_decode=ours.gated_delta_rule_decode,
        gated_delta_rule_decode_pretranspose=ours.gated_delta_rule_decode_pretranspose,
        gated_delta_rule_mtp=ours.gated_delta_rule_mtp,
    )
    module("flashinfer.gdn_prefill", chunk_gated_delta_rule=_prefill)
    module(
        "flashinfer.utils",
        get_compute_capability=lambda device: (9, 0),
        is_sm90a_supported=lambda device: True,
        is_sm100a_supported=lambda device: False,
        is_sm12x_supported=lambda device: False,
    )
    module("flashinfer.cute_dsl.utils", is_cute_dsl_arch_supported=lambda *arguments: True)
    module(
        "flashinfer.gdn_kernels.gdn_decode_bf16_state",
        gated_delta_rule=_on_narrow_states,
        gated_delta_rule_mtp=_on_narrow_states,
    )
    if device == "cpu":
        without_cuda()


def _prefill(*arguments, **options):
    """In the suite's version use_qk_l2norm_in_kernel, the tenth argument, is not looked at."""
    from gdn.ops.flashinfer import chunk_gated_delta_rule

    if len(arguments) > 9:
        arguments = (*arguments[:9], False, *arguments[10:])
    options.pop("use_qk_l2norm_in_kernel", None)
    return chunk_gated_delta_rule(*arguments, **options)


def _on_narrow_states(
    *,
    A_log: torch.Tensor,
    a: torch.Tensor,
    dt_bias: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    b: torch.Tensor,
    initial_state_source: torch.Tensor,
    initial_state_indices: torch.Tensor,
    use_qk_l2norm_in_kernel: bool = True,
    scale: float | None = None,
    output: torch.Tensor | None = None,
    softplus_beta: float = 1.0,
    softplus_threshold: float = 20.0,
    output_state_indices: torch.Tensor | None = None,
    intermediate_states_buffer: torch.Tensor | None = None,
    ssm_state_indices: torch.Tensor | None = None,
    disable_state_update: bool = False,
    **others,
) -> torch.Tensor:
    """FlashInfer's functions on states of bf16, which its suite calls beside the public ones."""
    from gdn.ops.flashinfer import gated_delta_rule_decode_pretranspose, gated_delta_rule_mtp

    for name, value in others.items():
        if value is not None and value is not False:
            pytest.skip(f"FlashInfer's kernel is not available: {name}")
    given = (A_log, a, dt_bias, b)
    options = {"use_qk_l2norm": use_qk_l2norm_in_kernel, "scale": scale, "output": output}
    options["output_state_indices"] = output_state_indices
    if q.shape[1] == 1:
        options |= {
            "initial_state": initial_state_source,
            "initial_state_indices": initial_state_indices,
        }
        return gated_delta_rule_decode_pretranspose(q, k, v, None, *given, **options)[0]
    return gated_delta_rule_mtp(
        q,
        k,
        v,
        initial_state_source,
        initial_state_indices,
        *given,
        intermediate_states_buffer=intermediate_states_buffer,
        ssm_state_indices=ssm_state_indices,
        disable_state_update=disable_state_update,
        **options,
    )[0]
