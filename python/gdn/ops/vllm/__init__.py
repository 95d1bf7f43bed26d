# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's functions between the projections of a layer and its norm."""

from .conv import causal_conv1d_fn, causal_conv1d_update
from .mtp import fused_gdn_decode_post_conv_mtp
from .packed import fused_recurrent_gated_delta_rule_packed_decode
from .prep import fused_post_conv_prep
from .update import fused_sigmoid_gating_delta_rule_update

__all__ = [
    "causal_conv1d_fn",
    "causal_conv1d_update",
    "fused_gdn_decode_post_conv_mtp",
    "fused_post_conv_prep",
    "fused_recurrent_gated_delta_rule_packed_decode",
    "fused_sigmoid_gating_delta_rule_update",
]
