# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a decode step on a GPU: as our entries take them, and the same
numbers as peers take them."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from .. import problems, reference
from ..problems import Sizes
from ..runtime import Kernel, Param
from .timing import number_of_sets

TORCH = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
    "uint8": torch.uint8,
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
    """The arguments of one configuration: what rows share, and sets of slots of the same
    pools. Slots are in random order, as those of a server are after a while, and the same
    for everybody who takes slots; slot 0 is null. Who takes states side by side has those
    of as many slots one after another."""

    layer: reference.Layer
    sizes: Sizes
    shared: dict[str, torch.Tensor]
    pools: dict[str, torch.Tensor]
    slots: list[torch.Tensor]  # of each set, [rows]

    @property
    def sets(self) -> list[dict[str, torch.Tensor]]:
        """What the arguments of a set are apart from what is shared."""
        return [self.pools | {"slots": slots} for slots in self.slots]

    @property
    def state_bytes(self) -> int:
        """Bytes of the states of all rows, once."""
        pool = self.pools["state_pool"]
        return self.sizes.rows * pool[0].numel() * pool.element_size()

    def in_order(self) -> "Step":
        """The same step with the slots of each set one after another: those of the states that
        who takes no slots has."""
        rows, like = self.sizes.rows, self.slots[0]
        slots = torch.arange(1, 1 + len(self.slots) * rows, dtype=like.dtype, device=like.device)
        # Memory of its own for each set, as in random order.
        return replace(self, slots=[own.clone() for own in slots.view(-1, rows)])

    def _side_by_side(self, name: str) -> list[torch.Tensor]:
        rows = self.sizes.rows
        return [self.pools[name][1 + i * rows :][:rows] for i in range(len(self.slots))]

    @property
    def states(self) -> list[torch.Tensor]:
        """States side by side for each set, [rows, Hv, dv, dk], one piece of memory."""
        return self._side_by_side("state_pool")

    @property
    def windows(self) -> list[torch.Tensor]:
        """The same of windows of the convolution, [rows, channels, K - 1]."""
        return self._side_by_side("conv_pool")

    def slots_of(self, in_slots: bool) -> torch.Tensor:
        """The slots of the rows of the first set, or those side by side."""
        rows = self.sizes.rows
        return self.slots[0].long() if in_slots else torch.arange(1, rows + 1, device="cuda")

    def states_in_slots(self) -> torch.Tensor:
        """The states that the rows of the first set have in their slots, [rows, Hv, dv, dk]."""
        return self.pools["state_pool"][self.slots_of(True)]

    @property
    def picked(self) -> list[int]:
        """The rows whose results are compared with float64."""
        return sorted({0, self.sizes.rows // 2, self.sizes.rows - 1})


def random_slots(count: int, like: torch.dtype = torch.int32) -> torch.Tensor:
    """Slots 1 to `count` in random order, the same for the same number."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(5))
    return (1 + order).to(like).cuda()


def make_step(
    kernel: Kernel,
    layer: reference.Layer,
    heads: tuple[int, int],
    rows: int,
    conv_layout: str = "SD",
    seed: int = 1,
) -> Step:
    """Random arguments on the GPU. The convolution state has its channels side by side
    (SD) or its steps (DS)."""
    sizes = Sizes(*heads, (1,) * rows, seed=seed)
    pools = [param for param in kernel.params if param.kind == "pool"]
    others = [param for param in kernel.params if param.kind != "pool"]
    arrays = problems.make(others, sizes)
    slots = arrays.pop("slots")
    symbols = {"Hk": heads[0], "Hv": heads[1], "N": rows, "P": rows}
    state = next(p for p in pools if p.name == "state_pool")
    size = int(np.prod(problems.shape_of(state.dims, symbols)))
    count = number_of_sets(size * torch.empty(0, dtype=TORCH[state.dtype]).itemsize)
    symbols["P"] = 1 + count * rows
    shapes = {p.name: problems.shape_of(p.dims, symbols) for p in pools}
    generator = torch.Generator("cuda").manual_seed(seed)

    def make_pool(p: Param) -> torch.Tensor:
        if p.dtype == "uint8":  # of a plane
            bytes_of = torch.randint(1, 256, shapes[p.name], generator=generator, device="cuda")
            return bytes_of.to(torch.uint8)
        if p.name == "state_scales":
            scales = torch.rand(shapes[p.name], generator=generator, device="cuda")
            return scales.mul_(0.0015).add_(0.0005)
        if not TORCH[p.dtype].is_floating_point:
            return torch.zeros(shapes[p.name], device="cuda", dtype=TORCH[p.dtype])
        pool = torch.randn(shapes[p.name], generator=generator, device="cuda")
        if p.name == "state_pool":
            return pool.mul_(0.1).to(TORCH[p.dtype])
        pool = pool.to(TORCH[p.dtype])
        if p.name == "conv_pool" and conv_layout == "SD":
            pool = pool.transpose(1, 2).contiguous().transpose(1, 2)
        return pool

    shared = {name: to_gpu(array) for name, array in arrays.items()}
    order = random_slots(count * rows, TORCH[slots.dtype.name])
    made = {p.name: make_pool(p) for p in pools}
    # Memory of its own for each set: some peers want it aligned.
    own = [slots.clone() for slots in order.view(count, rows)]
    return Step(layer, sizes, shared, made, own)


def unpack(
    layer: reference.Layer, heads: tuple[int, int], qkvz: torch.Tensor, ba: torch.Tensor
) -> list[torch.Tensor]:
    """q, k, v, z, a and b of packed projections, interleaved or flat: each [tokens, width],
    contiguous."""
    keys, values = heads
    widths = [keys * layer.key_dim] * 2 + [values * layer.value_dim] * 2
    if layer.layout == "interleaved":
        group = qkvz.view(len(qkvz), keys, -1)
        parts = group.split([width // keys for width in widths], dim=2)
        b, a = ba.view(len(ba), keys, 2, -1).unbind(2)
    elif layer.layout == "flat":
        parts = qkvz.split(widths, dim=1)
        b, a = ba.chunk(2, dim=1)
    else:
        raise ValueError(f"layout: expected interleaved or flat, got {layer.layout}")
    return [part.reshape(len(qkvz), -1).contiguous() for part in (*parts, a, b)]


@dataclass
class Inputs:
    """The projections of a step as peers take them, each contiguous, in the io type."""

    step: Step
    mixed: torch.Tensor  # [rows, channels]: queries, keys, values of all heads
    z: torch.Tensor | None  # [rows, Hv, dv]
    a: torch.Tensor  # [rows, Hv]
    b: torch.Tensor

    @classmethod
    def of(cls, step: Step) -> "Inputs":
        """From the packed projections of our entries, interleaved or flat."""
        sizes, shared = step.sizes, step.shared
        heads = (sizes.key_heads, sizes.value_heads)
        q, k, v, z, a, b = unpack(step.layer, heads, shared["qkvz"], shared["ba"])
        return cls(step, torch.cat([q, k, v], dim=1), z.view(*a.shape, -1), a, b)

    @cached_property
    def convolved(self) -> torch.Tensor:
        """What the convolution and SiLU give, in the io type: what the rule alone starts
        from. Of windows that lie side by side now."""
        history = torch.cat([self.step.windows[0], self.mixed[:, :, None]], dim=2).float()
        mixed = (history * self.step.shared["conv_weight"].float()).sum(-1)
        return torch.nn.functional.silu(mixed).to(self.mixed.dtype)

    def heads_of(self, mixed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys [rows, 1, Hk, dk] and values [rows, 1, Hv, dv], contiguous."""
        layer, sizes = self.step.layer, self.step.sizes
        keys = sizes.key_heads * layer.key_dim
        q, k, v = mixed.split([keys, keys, mixed.shape[1] - 2 * keys], dim=1)
        shape = (sizes.rows, 1, sizes.key_heads, layer.key_dim)
        return (
            q.reshape(shape).contiguous(),
            k.reshape(shape).contiguous(),
            v.reshape(sizes.rows, 1, sizes.value_heads, layer.value_dim).contiguous(),
        )

    def new_output(self) -> torch.Tensor:
        """[rows, 1, Hv, dv] of the io type, NaN."""
        sizes = self.step.sizes
        shape = (sizes.rows, 1, sizes.value_heads, self.step.layer.value_dim)
        return torch.full(shape, float("nan"), device="cuda", dtype=self.mixed.dtype)
