# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The states of a layer of a pool, in place of an array, for functions of arrays: with them go the
planes that states have and the tokens that are pending.

    gated_delta_step(q, k, v, a, b, A_log, dt_bias, pool.layer_states(3), slots)
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from .arrays import View
from .call_options import integer

if TYPE_CHECKING:
    from .state_pool import StatePool

_PENDING = ("pending_keys", "pending_deltas", "pending_decays", "pending_counts", "pending_scales")
_PLANES = ("state_scales", "state_low")
# Numbers of what layers are alike in.
_forms: dict[tuple, int] = {}
_next_form = count()


class LayerStates:
    """See StatePool.layer_states. It keeps the arrays that it has made, so one that is kept costs a
    call less."""

    def __init__(self, pool: StatePool, layer: int):
        layer = integer("layer", layer)
        self._pool, self._layer = pool, layer
        self._made: dict[type, dict[str, object]] = {}
        self._form: int | None = None
        shape = pool.shape
        if not 0 <= layer < shape.num_layers:
            raise ValueError(f"layer: expected 0 to {shape.num_layers - 1}, got {layer}")
        if shape.pending_tokens and not shape.deferred_writes:
            raise ValueError(
                "pool: expected one whose pending tokens are deferred writes, or none, got"
                f" pending_tokens={shape.pending_tokens} without deferred_writes, where the engine"
                " knows how many of them were accepted"
            )
        if shape.deferred_writes and shape.decay_per_channel:
            raise ValueError("pool: expected a decay of each head, got decay_per_channel")

    @property
    def format(self) -> str:
        """As StatePoolShape.state_dtype."""
        return self._pool.shape.state_dtype

    @property
    def deferred_writes(self) -> int:
        """The tokens that stay pending in a slot, or 0."""
        shape = self._pool.shape
        return shape.pending_tokens if shape.deferred_writes else 0

    @property
    def pending_dtype(self) -> str:
        """That of their keys and deltas."""
        return self._pool.shape.pending_dtype

    @property
    def is_array(self) -> bool:
        """Whether the array `state` is all that there is."""
        return not (self._pool.shape.state_planes or self.deferred_writes)

    def __str__(self) -> str:
        more = f" with deferred writes of {self.deferred_writes} tokens" * bool(
            self.deferred_writes
        )
        return f"states of {self.format}{more} of {self.owner}"

    @property
    def owner(self) -> str:
        """Whose pool it is, in words."""
        return "a StatePool"

    def arrays(self, library) -> dict[str, object]:
        """By the names that kernels have, in place, as arrays of `library` (gdn.array_library), the
        same in each call."""
        pool, layer = self._pool, self._layer
        if not self._is_on(library.device):
            place = pool.device.kind, pool.device.ordinal
            expected, found = (f"{kind}:{ordinal}" for kind, ordinal in (library.device, place))
            raise ValueError(f"states: expected a pool on {expected}, as q is, got one on {found}")
        if (made := self._made.get(type(library))) is not None:
            return made
        found = {"state_pool": pool.state(layer)}
        if pool.shape.state_planes:
            found |= zip(_PLANES, pool.planes(layer), strict=False)
        if self.deferred_writes:
            found |= zip(_PENDING, pool.pending(layer), strict=False)
        made = {name: library.in_place(array) for name, array in found.items()}
        self._made[type(library)] = made
        return made

    def _is_on(self, device: tuple[str, int]) -> bool:
        return device == (self._pool.device.kind, self._pool.device.ordinal)

    def form(self, library) -> int | None:
        """A number that layers have in common whose tensors are alike but for their memory. None
        for those on another device, and for arrays without strides in elements."""
        if self._form is None and self._is_on(library.device):
            arrays = self.arrays(library).items()
            try:
                facts = tuple((n, x.shape, x.stride(), x.dtype, x.device) for n, x in arrays)
            except (AttributeError, RuntimeError):
                return None
            key = (self.format, self.deferred_writes, self.pending_dtype, *facts)
            self._form = _forms.setdefault(key, next(_next_form))
        return self._form


class EngineStates(LayerStates):
    """States of a layer in an array of an engine, [P, Hv, dv, dk], with arrays beside it that have
    the same slots: `others` by the names that kernels have. Of states in planes the array is the
    upper plane, and `format` their format."""

    def __init__(
        self,
        state: object,
        others: dict[str, object],
        *,
        format: str,
        deferred_writes: int = 0,
        pending_dtype: str = "float32",
    ):
        #: The engine's.
        self.array = state
        self._arrays = {"state_pool": state} | others
        self._facts = format, deferred_writes, pending_dtype
        self._form = None

    @property
    def format(self) -> str:
        return self._facts[0]

    @property
    def deferred_writes(self) -> int:
        return self._facts[1]

    @property
    def pending_dtype(self) -> str:
        return self._facts[2]

    @property
    def is_array(self) -> bool:
        return len(self._arrays) == 1

    @property
    def owner(self) -> str:
        return "an engine's pool"

    def arrays(self, library) -> dict[str, object]:
        return self._arrays

    def _is_on(self, device: tuple[str, int]) -> bool:
        return True


def refuse_pool(function: str, **arrays: object) -> None:
    """ValueError where one of these is what StatePool.layer_states gives, or a plane of bytes."""
    for name, array in arrays.items():
        if isinstance(array, LayerStates):
            found = str(array)
        elif str(getattr(array, "dtype", "")).endswith("uint8"):
            found = "uint8, as planes of bytes have it"
        else:
            continue
        raise ValueError(
            f"{function}: {name}: expected an array of states of float32, bfloat16 or float16, got"
            f" {found}; layers, and functions of gdn.rule_step and gdn.rule_pool, take"
            " StatePool.layer_states"
        )


class CudaMemory:
    """A view of memory of a GPU, for torch.as_tensor."""

    def __init__(self, view: View, typestr: str, itemsize: int):
        self._view = view  # whose owner keeps the memory
        self.__cuda_array_interface__ = {
            "shape": tuple(view.shape),
            "strides": tuple(itemsize * stride for stride in view.strides),
            "typestr": typestr,
            "data": (view.data, False),
            "version": 3,
        }
