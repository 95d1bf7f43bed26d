# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the rule on tensors of PyTorch whose shapes, strides, types and options were checked
before: what they need is found once, and then they are launched. Checks and small tensors take
longer on the host than the kernel of a token.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from .array_library import TorchArrays
from .call import Call
from .kernel_calls import remember

_plans = threading.local()
_MOST_PLANS = 256
# Of options that are what they were as long as they are equal.
_PLAIN = frozenset((type(None), bool, int, float, str))


class RulePlan(NamedTuple):
    """What each such call of a thread on a stream does. Heads are those of the kernel, and all
    arrays are read where they are."""

    call: Call
    names: tuple[str, ...]
    """Those of the call's parameters."""
    known_as: tuple | None
    """What kernel_calls finds the call by where a stream is captured."""
    tokens: tuple[tuple[int, ...], ...]
    """Shapes of q, k, v, log_decay and beta as the entry takes them."""
    states: tuple[int, ...]
    """The shape of the states, [.., dv, dk]."""
    order: str
    """How they lie in memory, "vk" or "kv"."""
    state_type: object
    result: tuple[int, ...]
    """The shape of the output."""
    reads_states: bool
    """The entry reads the initial states and writes others; otherwise it changes a copy."""
    constants: dict[str, object]

    def run(self, arrays, q, k, v, log_decay, beta, initial_state, cu_seqlens):
        """See gdn.rule.gated_delta_rule."""
        shapes, given = self.tokens, dict(self.constants)
        given["q"], given["k"] = q.reshape(shapes[0]), k.reshape(shapes[1])
        given["v"] = v.reshape(shapes[2])
        given["log_decay"] = log_decay.float().reshape(shapes[3])
        given["beta"] = beta.float().reshape(shapes[4])
        if cu_seqlens is not None:
            given["cu_seqlens"] = arrays.rows_apart(arrays.ids(cu_seqlens))
        given["core"] = out = v.new_empty(shapes[2])
        made = v.new_zeros if initial_state is None else v.new_empty
        if self.order == "vk":
            states = made(self.states, dtype=self.state_type)
        else:
            *heads, value_dim, key_dim = self.states
            states = made((*heads, key_dim, value_dim), dtype=self.state_type).mT
        if initial_state is not None and not self.reads_states:
            states.copy_(initial_state)
        given["state_pool"] = initial_state if self.reads_states else states
        given["token_state_pool"] = states
        if self.known_as is not None:
            remember(self.known_as, self.call)
        self.call.launch(*[given[name] for name in self.names])
        return out.view(self.result), states


def key_of(arrays, tensors: tuple, options: tuple, function: tuple = ()) -> tuple | None:
    """What a plan depends on; None where there are none: for NumPy's arrays, and where a stream is
    captured, and for options of other types than Python's."""
    if not isinstance(arrays, TorchArrays) or arrays.capturing:
        return None
    for option in options:
        if type(option) not in _PLAIN:
            return None
    wants_gradients = arrays.torch.is_grad_enabled()
    try:
        for x in tensors:
            if x is not None and x.is_neg():  # the checks refuse it
                return None
        facts = [
            None
            if x is None
            else (x.shape, x.stride(), x.dtype, x.device, wants_gradients and x.requires_grad)
            for x in tensors
        ]
    except (AttributeError, RuntimeError):  # no tensors, or none with strides: they are refused
        return None
    return (arrays.stream, *function, *options, *facts)


def plan_of(key: tuple) -> RulePlan | None:
    """The plan of this thread."""
    return _plans.__dict__.setdefault("known", {}).get(key)


def keep(key: tuple, plan: RulePlan) -> None:
    known = _plans.__dict__.setdefault("known", {})
    if len(known) >= _MOST_PLANS:
        known.clear()
    known[key] = plan
