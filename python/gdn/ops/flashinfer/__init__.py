# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's functions of the gated delta rule."""

from .decode import gated_delta_rule_decode, gated_delta_rule_decode_pretranspose
from .mtp import gated_delta_rule_mtp
from .prefill import chunk_gated_delta_rule

__all__ = [
    "chunk_gated_delta_rule",
    "gated_delta_rule_decode",
    "gated_delta_rule_decode_pretranspose",
    "gated_delta_rule_mtp",
]
