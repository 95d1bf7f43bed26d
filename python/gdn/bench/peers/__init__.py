# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other implementations of decode, where they can be imported. They work on the
states and windows of the same sets as ours and on the same numbers: the whole step
(convolution, rule and norm, as many launches as they take) or the rule alone."""

from collections.abc import Callable

from ..inputs import Inputs, Step
from . import fla, flashinfer, vllm
from .peer import Peer

# Implementation, part (step, rule, or rule and norm), variant; and what prepares its calls.
PEERS: list[tuple[str, str, str, Callable[[Step, Inputs], Peer]]] = [
    ("fla", "rule", "", fla.rule),
    ("fla", "step", "", fla.decode_step),
    ("flashinfer", "rule", "pool", flashinfer.rule_on_pool),
    ("flashinfer", "rule", "state", flashinfer.rule_on_states),
    ("flashinfer", "step", "conv and norm of vllm", flashinfer.decode_step),
    ("vllm", "rule", "packed decode", vllm.rule),
    ("vllm", "step", "packed decode", vllm.decode_step),
    ("vllm-cuda", "rule and norm", "", vllm.rule_and_norm),
    ("vllm-cuda", "step", "convolution of Triton", vllm.decode_step_of_cuda),
]
