# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a prefill of packed projections: as our entries take them, and the same
numbers as peers take them; and what it gives in float64."""

from dataclasses import dataclass

import torch

from .. import problems, reference
from ..problems import Sizes
from ..runtime import Kernel
from .grid import Case
from .inputs import TORCH, to_gpu, to_host, unpack
from .timing import number_of_sets

_MOST_BYTES = 24 << 30
_CHANGING = ("qkvz", "ba", "conv_pool", "state_pool")  # from set to set


@dataclass
class Projections:
    """One set as peers take it, each a piece of memory of its own."""

    q: torch.Tensor  # [T, Hk D]
    k: torch.Tensor
    v: torch.Tensor  # [T, Hv D]
    z: torch.Tensor
    a: torch.Tensor  # [T, Hv]
    b: torch.Tensor
    windows: list[torch.Tensor]  # of q, k, v: [N, channels, K], the oldest input unused
    state: torch.Tensor  # [N, Hv, D, D], values by keys, as it was before


@dataclass
class Problem:
    """The sets of one row. Row i has slot i + 1 of our pools; slot 0 is null and NaN."""

    case: Case
    layer: reference.Layer
    weights: dict[str, torch.Tensor]  # what all sets share, the output too
    ours: list[dict[str, torch.Tensor]]  # of each set
    sets: list[Projections]

    @property
    def bounds(self) -> torch.Tensor:
        return self.weights["cu_seqlens"]

    @property
    def conv_weights(self) -> list[torch.Tensor]:
        """Of q, k, v."""
        return _apart(self.case, self.layer, self.weights["conv_weight"], dim=0)

    def arguments(self, index: int) -> dict[str, torch.Tensor]:
        """Of our entry."""
        return self.weights | self.ours[index]


def _apart(case: Case, layer: reference.Layer, channels: torch.Tensor, dim: int) -> list:
    keys, values = case.heads
    widths = [keys * layer.key_dim] * 2 + [values * layer.value_dim]
    return [part.contiguous() for part in channels.split(widths, dim=dim)]


def to_peers(case: Case, layer: reference.Layer, ours: dict[str, torch.Tensor]) -> Projections:
    """Copies of one set."""
    q, k, v, z, a, b = unpack(layer, case.heads, ours["qkvz"], ours["ba"])
    windows = torch.nn.functional.pad(ours["conv_pool"][1:], (1, 0))
    windows = _apart(case, layer, windows, dim=1)
    return Projections(q, k, v, z, a, b, windows, ours["state_pool"][1:].clone())


def make_problem(kernel: Kernel, layer: reference.Layer, case: Case, sets: int = 0) -> Problem:
    """Fresh inputs on the GPU, of the size that a layer sees; `sets` 0 means as many as no
    cache holds."""
    rows = len(case.lengths)
    sizes = Sizes(*case.heads, case.lengths, slots=rows + 1)
    shapes = problems.shapes(kernel.params, sizes)
    params = {param.name: param for param in kernel.params}
    same = [param for param in kernel.params if param.name not in _CHANGING]
    same = [param for param in same if param.access != "write"]
    made = problems.make(same, sizes, kernel.params)
    weights = {name: to_gpu(array) for name, array in made.items()}
    dtype = TORCH[params["out"].dtype]
    weights["out"] = torch.full(shapes["out"], float("nan"), device="cuda", dtype=dtype)
    generator = torch.Generator("cuda").manual_seed(1)

    def make_set() -> dict[str, torch.Tensor]:
        found = {
            name: torch.randn(
                shapes[name], generator=generator, device="cuda", dtype=TORCH[params[name].dtype]
            )
            for name in _CHANGING
        }
        found["state_pool"].mul_(0.1)
        for pool in ("conv_pool", "state_pool"):
            found[pool][0] = float("nan")
        return found

    ours = [make_set()]
    size = sum(ours[0][name].nbytes for name in ("qkvz", "state_pool")) + weights["out"].nbytes
    count = sets or max(1, min(number_of_sets(size), _MOST_BYTES // size))
    ours += [make_set() for _ in range(count - 1)]
    return Problem(case, layer, weights, ours, [to_peers(case, layer, one) for one in ours])


def exact(problem: Problem) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and states of the first set in float64, before anything has run on it."""
    arguments = {name: to_host(value) for name, value in problem.arguments(0).items()}
    want = reference.evaluate(problem.layer, arguments)
    return tuple(torch.from_numpy(x).cuda() for x in (want["out"], want["state_pool"][1:]))
