# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a peer prepares: its calls and where it leaves its results."""

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Peer:
    """One call for each set of pools. `output`, [rows, Hv, dv], and `states`,
    [rows, Hv, dv, dk], are read after the first call has run."""

    calls: list[Callable[[], object]]
    output: Callable[[], torch.Tensor]
    states: Callable[[], torch.Tensor]
    in_slots: bool = True  # else states lie side by side
    has_norm: bool = False  # of a rule: whether its output is behind the gated norm
