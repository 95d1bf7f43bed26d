# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions of arrays whose tensors and options were checked before: what the entry takes
is known by the places of arguments, and is launched. As gdn.rule_plan, for the functions that write
to states in place, the convolution and the norm.
"""

from __future__ import annotations

from typing import NamedTuple

from .array_library import TorchArrays, check_order, library_of
from .call import Call
from .kernel_calls import remember
from .rule_plan import keep, key_of, plan_of

_ARGUMENTS = {"state_pool": "states", "token_state_pool": "token_states", "conv_pool": "states"}
_ARGUMENTS |= {"core": "out", "y": "out"}
_INTEGERS = frozenset(("slots", "write_slots", "cu_seqlens", "token_slots", "num_accepted"))
_FLOATS = frozenset(("a", "b", "A_log", "dt_bias", "log_decay", "beta", "bias", "weight"))


class EntryPlan(NamedTuple):
    """What each such call of a thread on a stream does. The last tensor of a call is out, or
    None."""

    call: Call
    known_as: tuple | None
    """What kernel_calls finds the call by where a stream is captured."""
    places: tuple[int, ...]
    """Of each parameter's array among the tensors of a call, or behind them among `constants`."""
    constants: tuple[object, ...]
    """Arrays that the first call has made."""
    converted: tuple[tuple[int, bool], ...]
    """Parameters that are of another type than their tensors, and whether they are integers."""
    reshaped: tuple[tuple[int, tuple[int, ...]], ...]
    """Parameters of another shape, and theirs."""
    result: tuple[int, ...]
    """The shape of the output, whose rows are tokens, and which is of the type of the first
    tensor."""
    starts: int
    """The place of cu_seqlens, or -1."""

    def run(self, arrays: TorchArrays, tensors: tuple):
        """Launches, and returns the output."""
        if self.starts >= 0:
            check_order(arrays, tensors[self.starts], self.result[0])
        out = tensors[-1]
        if out is None:
            out = tensors[0].new_empty(self.result)
        values = (*tensors[:-1], out, *self.constants)
        given = [values[place] for place in self.places]
        for at, is_integer in self.converted:
            array = given[at]
            array = arrays.ids(array) if is_integer else arrays.cast(array, "float32")
            given[at] = arrays.rows_apart(array)
        for at, shape in self.reshaped:
            given[at] = given[at].view(shape)
        if self.known_as is not None:
            remember(self.known_as, self.call)
        self.call(*given)
        return out


class KnownCall:
    """A call of a function with arguments `names`, and what was found for one before that was as
    this one. There are no plans where gdn.rule_plan has no key, and for states of a pool."""

    __slots__ = ("_arrays", "_key", "_names", "_tensors", "plan")

    def __init__(self, names: tuple[str, ...], tensors: tuple, options: tuple, runtime):
        self._arrays = arrays = library_of(tensors[0], runtime, names[0])
        self._names, self._tensors = names, tensors
        # Functions differ in their arguments.
        self._key = key = key_of(arrays, tensors, options, (names, runtime))
        self.plan = None if key is None else plan_of(key)

    def run(self):
        """By its plan, without checks. Returns the output."""
        return self.plan.run(self._arrays, self._tensors)

    def keep(
        self,
        call: Call,
        known_as: tuple,
        given: dict[str, object],
        out,
        *,
        constants: tuple[str, ...] = (),
        reshaped: tuple[str, ...] = (),
    ) -> None:
        """Makes a plan of what the entry took, unless it took what is neither an argument nor the
        same for all such calls, as parameters `constants` are. Those of `reshaped` are views of
        arguments."""
        if self._key is None:
            return
        places, made, converted, shapes = [], [], [], []
        names, tensors = self._names, self._tensors
        for at, name in enumerate(call.names):
            argument = _ARGUMENTS.get(name, name)
            if name == "write_slots" and tensors[names.index(name)] is None:
                argument = "slots"
            place = names.index(argument) if argument in names else -1
            tensor = tensors[place] if place >= 0 else None
            if name in constants or (argument in ("slots", "has_initial") and tensor is None):
                place = len(tensors) + len(made)
                made.append(given[name])
            elif place < 0:
                return
            elif name in reshaped:
                if tensor is not None and self._arrays.rows_apart(tensor) is not tensor:
                    return
                shapes.append((at, tuple(given[name].shape)))
            elif argument != "out" and given[name] is not tensor:
                is_float = name in _FLOATS and self._arrays.dtype_of(given[name]) == "float32"
                if not is_float and name not in _INTEGERS:
                    return
                converted.append((at, name in _INTEGERS))
            places.append(place)
        parts = (tuple(part) for part in (places, made, converted, shapes, out.shape))
        on_gpu = known_as if self._arrays.device[0] == "cuda" else None
        starts = names.index("cu_seqlens") if "cu_seqlens" in call.names else -1
        keep(self._key, EntryPlan(call, on_gpu, *parts, starts))
