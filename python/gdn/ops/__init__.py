# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated delta rule, convolutions and the norm under the names and with the arguments of other
libraries, as operators of PyTorch for CPUs and CUDA GPUs. Inference only: nothing has a backward.

    from gdn.ops import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule

Starts of sequences (cu_seqlens, query_start_loc) start at 0 or more, do not decrease, and end at
the number of tokens or below: on a CPU others are a ValueError, on a GPU they are clamped, as
gdn.rule says. Other arguments that do not go together are a ValueError everywhere.

gdn.ops.fla, gdn.ops.flashinfer, gdn.ops.vllm and gdn.ops.causal_conv1d have the functions of one
library each. Here are all of them by their names; of a name that several have, FLA's of the rule
and causal-conv1d's of convolutions. gdn.rule says where kernels come from. Needs PyTorch.
"""

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ImportError("gdn.ops: expected PyTorch to be installed; the rule for NumPy is gdn.rule")

from .causal_conv1d import causal_conv1d_fn, causal_conv1d_update
from .fla import (
    chunk_gated_delta_rule,
    chunk_kda,
    fused_gdn_gate,
    fused_kda_gate,
    fused_recurrent_gated_delta_rule,
    fused_recurrent_kda,
    layer_norm_gated,
    layer_norm_swish_gate_linear,
    rms_norm_gated,
    rms_norm_swish_gate_linear,
)
from .flashinfer import (
    gated_delta_rule_decode,
    gated_delta_rule_decode_pretranspose,
    gated_delta_rule_mtp,
)
from .vllm import (
    fused_gdn_decode_post_conv_mtp,
    fused_post_conv_prep,
    fused_recurrent_gated_delta_rule_packed_decode,
    fused_sigmoid_gating_delta_rule_update,
)

__all__ = [
    "causal_conv1d_fn",
    "causal_conv1d_update",
    "chunk_gated_delta_rule",
    "chunk_kda",
    "fused_gdn_decode_post_conv_mtp",
    "fused_gdn_gate",
    "fused_kda_gate",
    "fused_post_conv_prep",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_gated_delta_rule_packed_decode",
    "fused_recurrent_kda",
    "fused_sigmoid_gating_delta_rule_update",
    "gated_delta_rule_decode",
    "gated_delta_rule_decode_pretranspose",
    "gated_delta_rule_mtp",
    "layer_norm_gated",
    "layer_norm_swish_gate_linear",
    "rms_norm_gated",
    "rms_norm_swish_gate_linear",
]
