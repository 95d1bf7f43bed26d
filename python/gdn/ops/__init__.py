# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated delta rule under the names and with the arguments of flash-linear-attention (FLA),
FlashInfer and vLLM, as operators of PyTorch for CPUs and CUDA GPUs. Inference only: nothing has a
backward.

    from gdn.ops import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule

gdn.rule says where kernels come from. Both forms of the originals are one operator here: the
kernel is chosen by the numbers of sequences and tokens. Needs PyTorch.
"""

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ImportError("gdn.ops: expected PyTorch to be installed; the rule for NumPy is gdn.rule")

from .kda import chunk_kda, fused_recurrent_kda
from .rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
from .step import (
    fused_sigmoid_gating_delta_rule_update,
    gated_delta_rule_decode_pretranspose,
)

__all__ = [
    "chunk_gated_delta_rule",
    "chunk_kda",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_kda",
    "fused_sigmoid_gating_delta_rule_update",
    "gated_delta_rule_decode_pretranspose",
]
