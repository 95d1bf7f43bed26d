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
from .pool_states import LayerStates
from .rule_plan import keep, key_of, plan_of
from .skipped_rows import slots_with_tokens

_ARGUMENTS = {"state_pool": "states", "token_state_pool": "token_states", "conv_pool": "states"}
_ARGUMENTS |= {"core": "out", "y": "out"}
_INTEGERS = frozenset(("slots", "write_slots", "cu_seqlens", "token_slots", "num_accepted"))
_RAW_GATES, _READY_GATES = ("a", "b", "A_log", "dt_bias"), ("log_decay", "beta")
_FLOATS = frozenset((*_RAW_GATES, *_READY_GATES, "bias", "weight"))


class CommitPlan(NamedTuple):
    """A launch that puts what is pending in slots into their states."""

    call: Call
    known_as: tuple | None
    """What kernel_calls finds the call by where a stream is captured."""
    places: tuple[int, ...]
    """Of each parameter's array among the tensors of a call; -1: the slots."""
    slots: int = -1
    """The place of the slots among parameters of a prefill, and of the starts of sequences."""
    starts: int = -1
    no_slot: object = -1
    """What is said of sequences without tokens."""

    def run(self, tensors: tuple, slots) -> None:
        """Launches, of `slots` that are i32."""
        if self.known_as is not None:
            remember(self.known_as, self.call)
        self.call.launch(*[slots if place < 0 else tensors[place] for place in self.places])

    def run_ahead(self, arrays: TorchArrays, tensors: tuple, given: list) -> None:
        """The same of a prefill that gets `given`."""
        slots, starts = given[self.slots], given[self.starts]
        self.run(tensors, slots_with_tokens(arrays, slots, starts, self.no_slot))


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
    converted: tuple[tuple[tuple[int, ...], bool], ...]
    """Parameters of one tensor that are of another type, and whether they are integers."""
    reshaped: tuple[tuple[int, tuple[int, ...]], ...]
    """Parameters of another shape, and theirs."""
    result: tuple[int, ...]
    """The shape of the output, whose rows are tokens, and which is of the type of the first
    tensor."""
    starts: int
    """The place of cu_seqlens, or -1."""
    gates: tuple[int, ...]
    """The places of raw gates that are made ready: they are ahead of the constants then."""
    commit: CommitPlan | None
    """What is launched ahead."""

    def run(self, arrays: TorchArrays, tensors: tuple):
        """Launches, and returns the output."""
        if self.starts >= 0:
            check_order(arrays, tensors[self.starts], self.result[0])
        out = tensors[-1]
        if out is None:
            out = tensors[0].new_empty(self.result)
        made = self.constants
        if self.gates:
            ready = arrays.ready_gates(*[tensors[place] for place in self.gates])
            made = (*map(arrays.rows_apart, ready), *made)
        values = (*tensors[:-1], out, *made)
        given = [values[place] for place in self.places]
        for parameters, is_integer in self.converted:
            array = given[parameters[0]]
            array = arrays.ids(array) if is_integer else arrays.cast(array, "float32")
            array = arrays.rows_apart(array)
            for at in parameters:
                given[at] = array
        for at, shape in self.reshaped:
            given[at] = given[at].view(shape)
        if self.commit is not None:
            self.commit.run_ahead(arrays, tensors, given)
        if self.known_as is not None:
            remember(self.known_as, self.call)
        self.call.launch(*given)
        return out


class KnownCall:
    """A call of a function with arguments `names`, and what was found for one before that was as
    this one. There are no plans where gdn.rule_plan has no key. Of states of a pool all arrays are
    tensors of the call, ahead of the last one."""

    __slots__ = ("_key", "_names", "_tensors", "arrays", "plan")

    def __init__(
        self, names: tuple[str, ...], tensors: tuple, options: tuple, runtime, states=None
    ):
        self.arrays = arrays = library_of(tensors[0], runtime, names[0])
        function = names, runtime  # functions differ in their arguments
        if isinstance(states, LayerStates):
            form = states.form(arrays) if isinstance(arrays, TorchArrays) else None
            if form is None:
                self._key = self.plan = None
                return
            held = states.arrays(arrays)
            state, *others = held.values()
            at = names.index("states")
            tensors = (*tensors[:at], state, *tensors[at + 1 :])
            self._names = (*names[:-1], *list(held)[1:], names[-1])
            self._tensors = (*tensors[:-1], *others, tensors[-1])
            function = (*function, form)
        else:
            self._names, self._tensors = names, tensors
        self._key = key = key_of(arrays, tensors, options, function)
        self.plan = None if key is None else plan_of(key)

    def run(self):
        """By its plan, without checks. Returns the output."""
        return self.plan.run(self.arrays, self._tensors)

    def commit(self, slots) -> None:
        """The same of a commit alone, of these slots as i32."""
        self.plan.run(self._tensors, slots)

    def keep_commit(self, call: Call, known_as: tuple) -> None:
        """Makes the plan of a commit alone."""
        if self._key is not None and (plan := self._plan_commit(call, known_as)) is not None:
            keep(self._key, plan)

    def _plan_commit(self, call: Call, known_as: tuple, **places: object) -> CommitPlan | None:
        arguments = [_ARGUMENTS.get(name, name) for name in call.names]
        if not set(arguments) <= set(self._names):
            return None
        at = (-1 if name == "slots" else self._names.index(name) for name in arguments)
        return CommitPlan(call, self._on_gpu(known_as), tuple(at), **places)

    def _on_gpu(self, known_as: tuple) -> tuple | None:
        return known_as if self.arrays.device[0] == "cuda" else None

    def keep(
        self,
        call: Call,
        known_as: tuple,
        given: dict[str, object],
        out,
        *,
        constants: tuple[str, ...] = (),
        reshaped: tuple[str, ...] = (),
        commit: tuple[Call, tuple] | None = None,
    ) -> None:
        """Makes a plan of what the entry took, unless it took what is neither an argument nor the
        same for all such calls, as parameters `constants` are. Those of `reshaped` are views of
        arguments. `commit` is a call that was launched ahead, and what that is known as."""
        if self._key is None:
            return
        places, made, converted, shapes = [], [], {}, []
        names, tensors, gates = self._names, self._tensors, ()
        if "a" in names and "log_decay" in call.names:
            gates = tuple(map(names.index, _RAW_GATES))
            if len(tensors[gates[0]].shape) == 3:  # whose decays have a bound
                return
        # Behind the tensors of a call there are first the gates that are made.
        behind = len(tensors) + (len(_READY_GATES) if gates else 0)
        for at, name in enumerate(call.names):
            argument = _ARGUMENTS.get(name, name)
            if name == "write_slots" and tensors[names.index(name)] is None:
                argument = "slots"
            place = names.index(argument) if argument in names else -1
            tensor = tensors[place] if place >= 0 else None
            if name in constants or (argument in ("slots", "has_initial") and tensor is None):
                place = behind + len(made)
                made.append(given[name])
            elif gates and name in _READY_GATES:
                place = len(tensors) + _READY_GATES.index(name)
            elif place < 0:
                return
            elif name in reshaped:
                if tensor is not None and self.arrays.rows_apart(tensor) is not tensor:
                    return
                shapes.append((at, tuple(given[name].shape)))
            elif argument != "out" and given[name] is not tensor:
                is_float = name in _FLOATS and self.arrays.dtype_of(given[name]) == "float32"
                if not is_float and name not in _INTEGERS:
                    return
                parameters, _ = converted.get(place, ((), False))
                converted[place] = (*parameters, at), name in _INTEGERS
            places.append(place)
        parts = (tuple(part) for part in (places, made, converted.values(), shapes, out.shape))
        starts = names.index("cu_seqlens") if "cu_seqlens" in call.names else -1
        ahead = None
        if commit is not None:
            ahead = self._plan_commit(
                *commit,
                slots=call.names.index("slots"),
                starts=call.names.index("cu_seqlens"),
                no_slot=self.arrays.numbers(range(-1, 0), "int32"),
            )
            if ahead is None:
                return
        keep(self._key, EntryPlan(call, self._on_gpu(known_as), *parts, starts, gates, ahead))
