# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows that are kept as rings, as causal-conv1d does with `cache_seqlens`."""

import torch
from torch import Tensor

from .slots import put


class Rings:
    """Copies of the rings of a batch as windows, the oldest input first. `ends` [N] has the tokens
    of each sequence so far: the next goes to column ends[n] % W."""

    def __init__(self, rings: Tensor, slots: Tensor, ends: Tensor):
        self._rings = rings
        self._live = (slots >= 0) & (slots < rings.shape[0])
        self._at = slots.long().clamp(0, rings.shape[0] - 1)
        columns = torch.arange(rings.shape[2], device=rings.device)
        self._columns = (ends.long()[:, None] + columns) % rings.shape[2]
        taken = rings[self._at]
        self.windows = taken.gather(2, self._columns[:, None].expand(taken.shape))
        index = torch.arange(slots.shape[0], device=rings.device)
        self.slots = torch.where(self._live, index, -1)

    def store(self, tokens: int) -> None:
        """The windows `tokens` later, into the rings."""
        columns = (self._columns + tokens) % self._rings.shape[2]
        columns = columns[:, None].expand(self.windows.shape)
        new = torch.empty_like(self.windows).scatter_(2, columns, self.windows)
        put(self._rings, new, self._at, self._live)
