# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn's functions under vLLM's names. What the suite compares them with are vLLM's kernels; here it
is the recurrence of reference.py instead."""

import torch

from .modules import module, without_cuda
from .reference import fused_recurrent_gated_delta_rule, rmsnorm_fn


class Platform:
    """What tests ask about where they run."""

    def __init__(self, device: str):
        self.device_type = device

    def is_cpu(self) -> bool:
        # What vLLM's own functions for CPUs lack.
        return False

    def is_cuda(self) -> bool:
        return self.device_type == "cuda"

    def is_cuda_alike(self) -> bool:
        # Tests of tensors, on any device.
        return True

    def is_xpu(self) -> bool:
        return False

    def has_device_capability(self, least: int) -> bool:
        return True


def install(device: str) -> None:
    from gdn.ops import vllm as ours

    install_common(Platform(device))
    module(
        "vllm.model_executor.layers.mamba.ops.causal_conv1d",
        causal_conv1d_fn=ours.causal_conv1d_fn,
        causal_conv1d_update=ours.causal_conv1d_update,
    )
    module(
        "vllm.third_party.flash_linear_attention.ops",
        fused_recurrent_gated_delta_rule=fused_recurrent_gated_delta_rule,
        fused_recurrent_gated_delta_rule_packed_decode=(
            ours.fused_recurrent_gated_delta_rule_packed_decode
        ),
        fused_sigmoid_gating_delta_rule_update=ours.fused_sigmoid_gating_delta_rule_update,
    )
    below = "vllm.third_party.flash_linear_attention.ops"
    module(f"{below}.fused_gdn_prefill_post_conv", fused_post_conv_prep=ours.fused_post_conv_prep)
    several = ours.fused_gdn_decode_post_conv_mtp
    module(f"{below}.fused_gdn_decode_post_conv_mtp", fused_gdn_decode_post_conv_mtp_triton=several)
    module("vllm._custom_ops", fused_gdn_decode_post_conv_mtp=several)
    # How the suite asks whether there is such an operator.
    torch.ops._C.fused_gdn_decode_post_conv_mtp = several
    module(f"{below}.layernorm_guard", rmsnorm_fn=rmsnorm_fn)
    if device == "cpu":
        without_cuda()


def install_common(platform: Platform) -> None:
    module("vllm.platforms", current_platform=platform)
    module("vllm.utils.torch_utils", set_random_seed=torch.manual_seed)
    module("vllm.v1.attention.backends.utils", NULL_BLOCK_ID=0, PAD_SLOT_ID=-1)
    module("vllm._custom_ops")
