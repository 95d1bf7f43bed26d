# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decode step of a layer on a GPU: its arguments, and our kernel's calls."""

from dataclasses import dataclass

import numpy as np
import torch

from .. import problems, reference
from ..checks import relative_error
from ..problems import Sizes
from ..runtime import Kernel, Param, Pool
from .timing import number_of_sets

_TORCH = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
}


def to_gpu(array: np.ndarray) -> torch.Tensor:
    """A copy; PyTorch does not know ml_dtypes' bfloat16."""
    array = np.ascontiguousarray(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


def to_host(tensor: torch.Tensor) -> np.ndarray:
    """Values in float64, or integers."""
    if tensor.is_floating_point():
        return tensor.double().cpu().numpy()
    return tensor.cpu().numpy()


@dataclass
class Step:
    """The arguments of one configuration: what rows share, and sets of pools."""

    sizes: Sizes
    shared: dict[str, torch.Tensor]
    sets: list[dict[str, torch.Tensor]]

    @property
    def state_bytes(self) -> int:
        """Bytes of the states of all rows, once."""
        pool = self.sets[0]["state_pool"]
        return self.sizes.rows * pool[0].numel() * pool.element_size()

    def states(self) -> list[torch.Tensor]:
        """The states of the rows of each set, flat, as one piece of memory."""
        return [pools["state_pool"][1 : self.sizes.rows + 1].view(-1) for pools in self.sets]


def make_step(
    kernel: Kernel, heads: tuple[int, int], rows: int, conv_layout: str = "SD", seed: int = 1
) -> Step:
    """Random arguments on the GPU. Row i has slot i + 1; slot 0 is null. The convolution
    state has its channels side by side (SD) or its steps (DS)."""
    sizes = Sizes(*heads, (1,) * rows, seed=seed)
    pools = [param for param in kernel.params if param.kind == "pool"]
    others = [param for param in kernel.params if param.kind != "pool"]
    arrays = problems.make(others, sizes)
    symbols = {"Hk": heads[0], "Hv": heads[1], "N": rows, "P": rows + 1}
    shapes = {p.name: problems.shape_of(p.dims, symbols) for p in pools}
    state = next(p for p in pools if p.name == "state_pool")
    size = int(np.prod(shapes["state_pool"])) * torch.empty(0, dtype=_TORCH[state.dtype]).itemsize
    generator = torch.Generator("cuda").manual_seed(seed)

    def make_pool(p: Param) -> torch.Tensor:
        pool = torch.randn(shapes[p.name], generator=generator, device="cuda")
        if p.name == "state_pool":
            return pool.mul_(0.1).to(_TORCH[p.dtype])
        pool = pool.to(_TORCH[p.dtype])
        if conv_layout == "SD":
            pool = pool.transpose(1, 2).contiguous().transpose(1, 2)
        return pool

    sets = [{p.name: make_pool(p) for p in pools} for _ in range(number_of_sets(size))]
    return Step(sizes, {name: to_gpu(array) for name, array in arrays.items()}, sets)


def bindings(kernel: Kernel, step: Step, dependent: bool) -> list:
    """Our kernel bound to each set."""
    bound = []
    for pools in step.sets:
        arguments = step.shared | {name: Pool(pool) for name, pool in pools.items()}
        binding = kernel.bind(**arguments)
        if binding.workspace_bytes:
            # Zeroed on the default stream, which everything here follows.
            binding.set_workspace(stream=torch.cuda.current_stream())
        binding.allow_dependent_launch(dependent)
        bound.append(binding)
    torch.cuda.synchronize()
    return bound


def calls(bound: list) -> list:
    """Launches on the stream that is current when they are made."""
    return [lambda b=b: b.launch(torch.cuda.current_stream()) for b in bound]


def errors(kernel: Kernel, layer: reference.Layer, step: Step, binding) -> tuple[float, float]:
    """Errors of outputs and states of a few rows after one launch on the first set."""
    rows = sorted({0, step.sizes.rows // 2, step.sizes.rows - 1})
    per_row = {p.name for p in kernel.params if p.dims and p.dims[0] == "N"}
    before = {
        name: to_host(value[rows] if name in per_row else value)
        for name, value in step.shared.items()
    }
    picked = [0] + [row + 1 for row in rows]
    for name, pool in step.sets[0].items():
        before[name] = to_host(pool[picked])
    before["slots"] = np.arange(1, len(rows) + 1)
    want = reference.evaluate(layer, before)
    binding.launch(torch.cuda.current_stream())
    torch.cuda.synchronize()
    outputs = [
        relative_error(to_host(step.shared[name][rows]), want[name])
        for name in ("core", "out")
        if name in step.shared
    ]
    state = to_host(step.sets[0]["state_pool"][picked[1:]])
    return max(outputs), relative_error(state, want["state_pool"][1:])
