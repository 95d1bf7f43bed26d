# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a gated delta rule as SGLang's linear attention calls them, on its own pools.

Convolutions and norms stay SGLang's. States are [slots, HV, V, K], a slot below 0 is padding, and
q and k are scaled to unit length in the kernel.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import NamedTuple

import torch
from sglang.srt.layers.attention.linear.kernels.kernel_backend import LinearAttnKernelBase

from ...kernel_calls import find_refusal
from ...rule_entry import layout_of
from ...rule_kernels import kind_of, unit_of
from ...rule_pool import delta_prefill
from ...rule_step import gated_delta_step
from ...rule_verify import gated_delta_verify
from .slots import SlotLayer, find_layer
from .tracked import fill_tracked, prefill_tracked

logger = logging.getLogger("gdn")


class NoKernel(NamedTuple):
    """Why gdn has no kernel for a call; `layer` has states that are not all in SGLang's array."""

    reason: str
    layer: SlotLayer | None = None


class Gates(NamedTuple):
    """Raw gates a and b of tokens, A_log and dt_bias."""

    arrays: tuple[torch.Tensor, ...]
    #: Of functions that take these.
    options: dict[str, object]
    #: Of their kernels, as kind_of takes it.
    form: dict[str, object]


def or_own(method: Callable) -> Callable:
    """`method` of a kernel, or where it returns NoKernel SGLang's, which gets the same
    arguments."""

    @functools.wraps(method)
    def run(self, *args, **kwargs):
        found = method(self, *args, **kwargs)
        if isinstance(found, NoKernel):
            return self._own(method.__name__, *found)(*args, **kwargs)
        return found

    return run


class GdnKernel(LinearAttnKernelBase):
    """See LinearAttnKernelBase of SGLang. What gdn has no kernel for goes to `fallback`, SGLang's
    own; the reason is logged once. `slots` is the backend whose pools keep more in a slot than
    SGLang does, or None: there is no kernel of SGLang's for these, but for prefill behind a
    commit."""

    supports_packed_decode = True
    supports_strided_target_verify_qkv = True
    supports_track_state_snapshot = True

    def __init__(self, fallback: LinearAttnKernelBase, slots: str | None = None):
        self._fallback = fallback
        self._slots = slots
        #: What went to it.
        self.reasons: set[str] = set()
        self._places: tuple | None = None

    def _gates(self, v, a, b, A_log, dt_bias, _bound) -> Gates:
        """Those of tokens whose values are v [T, HV, V]."""
        arrays = a, b, A_log.detach(), dt_bias.detach()
        return Gates(arrays, {"l2norm": True}, {"layout": layout_of_gates(v, a, b)})

    @or_own
    def decode(
        self,
        q,
        k,
        v,
        a,
        b,
        *,
        A_log,
        dt_bias,
        ssm_states,
        cache_indices,
        lower_bound=None,
        **_others,
    ) -> torch.Tensor | NoKernel:
        """A token of each sequence: q and k [1, N, H, K], v [1, N, HV, V], a and b of N rows."""
        gates = self._gates(v[0], a, b, A_log, dt_bias, lower_bound)
        return self._step((q[0], k[0], v[0]), gates, ssm_states, cache_indices)

    @or_own
    def packed_decode(
        self,
        mixed_qkv,
        a,
        b,
        *,
        A_log,
        dt_bias,
        scale,
        ssm_states,
        cache_indices,
        num_v_heads,
        head_v_dim,
        lower_bound=None,
        **others,
    ) -> torch.Tensor | NoKernel:
        """The same of mixed_qkv [N, 2 H K + HV V], where q, k and v are views. Returns
        [1, N, HV, V]."""
        if any(value is not None for name, value in others.items() if name.startswith("replayssm")):
            reason = "states are buffered (--enable-linear-replayssm)"
            return NoKernel(reason, self._layer(ssm_states))
        inputs = parts_of(mixed_qkv, num_v_heads, head_v_dim, ssm_states.shape[-1])
        gates = self._gates(inputs[2], a, b, A_log, dt_bias, lower_bound)
        return self._step(inputs, gates, ssm_states, cache_indices, scale=scale)

    def _step(self, inputs, gates: Gates, states, slots, **options) -> torch.Tensor | NoKernel:
        layer, form = self._layer(states), gates.form
        if layer is not None:
            layer.io, layer.layout = _name(inputs[2]), form["layout"]
            form = form | _facts(layer.states)
        reason = refusal_of("decode", inputs, states, **form)
        if reason is not None:
            return NoKernel(reason, layer)
        places = states if layer is None else layer.states, slots
        return gated_delta_step(*inputs, *gates.arrays, *places, **gates.options, **options)[None]

    def extend(
        self,
        q,
        k,
        v,
        g,
        beta,
        *,
        output=None,
        track_state=None,
        track_chunk_idx=None,
        **given,
    ) -> tuple:
        """Ragged sequences: q and k [1, T, H, K], v [1, T, HV, V], g and beta [1, T, HV].
        Returns the output [1, T, HV, V], and None twice: no state is returned, and none between
        chunks. `track_state` [N, HV, V, K] gets the state of sequence n before its chunk
        track_chunk_idx[n] of 64 tokens."""
        is_tracked = track_state is not None
        ssm_states, query_start_loc = given["ssm_states"], given["query_start_loc"]
        slots = given["cache_indices"][: query_start_loc.shape[0] - 1]
        layer, states = self._layer(ssm_states), ssm_states
        if layer is not None and layer.in_planes:
            states = layer.states
        elif layer is not None:
            # From here on SGLang's array is all that there is.
            layer.io = _name(v)
            layer.commit(slots)
        form = {"layout": "ready"} | _facts(states)
        reason = refusal_of("prefill", (q, k, v), ssm_states, **form)
        if not given.get("inplace_update", True):
            reason = "states must not change (multi-item scoring)"
        if states is not ssm_states and is_tracked:
            reason = "states inside of prompts are kept"
        if reason is not None:
            theirs = self._own("extend", reason, None if states is ssm_states else layer)
            found = theirs(q, k, v, g, beta, **given)
            if is_tracked:
                fill_tracked(track_state, track_chunk_idx, found[2], query_start_loc)
            return found
        takes = output is not None and output.shape == v.shape and output.dtype == v.dtype
        into = output[0] if takes else None
        inputs = q[0], k[0], v[0], g[0], beta[0]

        def prefill(places, starts, into):
            return delta_prefill(*inputs, states, places, starts, out=into, l2norm=True)

        if is_tracked:
            tracked = track_state, track_chunk_idx
            out = prefill_tracked(prefill, v[0], states, slots, query_start_loc, into, *tracked)
        else:
            out = prefill(slots, query_start_loc, into)
        return out[None], None, None

    @or_own
    def target_verify(
        self,
        A_log,
        dt_bias,
        q,
        k,
        v,
        a,
        b,
        *,
        ssm_states,
        cache_indices,
        query_start_loc,
        intermediate_states_buffer,
        intermediate_state_indices,
        cache_steps,
        retrieve_parent_token,
        stable_rows=False,
        lower_bound=None,
        **_others,
    ) -> torch.Tensor | NoKernel:
        """Drafts, one behind the other: q and k [1, T, H, K], v [1, T, HV, V], a and b of T rows.
        The state after token t of sequence n goes to
        `intermediate_states_buffer[intermediate_state_indices[n], t]`; ssm_states are only read.
        With `stable_rows` the indices are others in each step."""
        layer, buffer = self._layer(ssm_states), intermediate_states_buffer
        inputs = q[0], k[0], v[0]
        gates = self._gates(v[0], a, b, A_log, dt_bias, lower_bound)
        if retrieve_parent_token is not None:
            reason = "drafts are trees"
        elif buffer is None:
            reason = "states are buffered (--enable-linear-replayssm-spec)"
        elif not buffer.is_contiguous():
            reason = "the buffer of states has gaps"
        elif buffer.dtype != ssm_states.dtype:
            reason = f"the buffer of states is of {buffer.dtype}, and states of {ssm_states.dtype}"
        elif layer is not None:
            reason = "a state is kept for each draft"
        else:
            reason = refusal_of("verify", inputs, ssm_states, verify="buffer", **gates.form)
        if reason is not None:
            return NoKernel(reason, layer)
        count = query_start_loc.shape[0] - 1
        out = gated_delta_verify(
            *inputs,
            *gates.arrays,
            ssm_states,
            cache_indices[:count],
            query_start_loc,
            buffer.flatten(0, 1),
            self._token_slots(intermediate_state_indices, cache_steps, stable_rows)[:count],
            **gates.options,
        )
        return out[None]

    def _token_slots(self, rows: torch.Tensor, steps: int, changing: bool) -> torch.Tensor:
        """Slots of the flat buffer [rows, steps]. Rows that are the same tensor in all steps are
        computed once."""
        if self._places is not None and self._places[0] is rows and self._places[1] == steps:
            return self._places[2]
        slots = rows[:, None] * steps + torch.arange(steps, dtype=rows.dtype, device=rows.device)
        # Memory of a graph is not for later steps.
        if not changing and not (rows.is_cuda and torch.cuda.is_current_stream_capturing()):
            self._places = rows, steps, slots
        return slots

    def _layer(self, states: torch.Tensor) -> SlotLayer | None:
        """Where there are states that SGLang's array lacks."""
        if self._slots is None:
            return None
        if (found := find_layer(states)) is None:
            raise ValueError(
                f"--linear-attn-backend {self._slots}: expected a pool of states that gdn's hooks"
                " made, got one of SGLang's; its log says which hook it has not applied"
            )
        return found

    def _own(self, name: str, reason: str, layer: SlotLayer | None = None):
        """SGLang's method, instead of ours. Raises ValueError for a `layer` whose states are not
        all in SGLang's array."""
        if layer is not None:
            raise ValueError(
                f"--linear-attn-backend {self._slots}: expected a kernel for {name} on"
                f" {layer.states}, got none: {reason}"
            )
        if (text := f"{name}: {reason}") not in self.reasons:
            self.reasons.add(text)
            logger.warning("SGLang's own kernel runs for %s", text)
        return getattr(self._fallback, name)


def parts_of(mixed_qkv: torch.Tensor, value_heads: int, value_dim: int, key_dim: int):
    """q, k [N, H, K] and v [N, HV, V], as views."""
    keys = (mixed_qkv.shape[1] - value_heads * value_dim) // 2
    q, k, v = mixed_qkv.split([keys, keys, value_heads * value_dim], 1)
    return (*(x.unflatten(1, (-1, key_dim)) for x in (q, k)), v.unflatten(1, (-1, value_dim)))


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def layout_of_gates(v: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> str:
    return layout_of(_name(v), _name(a), _name(b))


def _facts(states) -> dict[str, object]:
    """What kind_of takes of states that are no array alone."""
    if isinstance(states, torch.Tensor):
        return {}
    return {
        "state": states.format,
        "deferred_writes": states.deferred_writes,
        "pending": states.pending_dtype,
    }


def refusal_of(entry: str, inputs, states: torch.Tensor, **form) -> str | None:
    """Why gdn has no kernel of an entry, or None where it has one. `form` are arguments of
    kind_of."""
    q, k, v = inputs
    if not q.dtype == k.dtype == v.dtype:
        return f"q, k and v are of types {q.dtype}, {k.dtype} and {v.dtype}"
    sizes = states.shape[-1], states.shape[-2]
    device = v.device.type, v.device.index or 0
    unit = unit_of(entry, device)
    if any(size % unit for size in sizes):
        return f"heads of {sizes[0]} x {sizes[1]} are no multiples of {unit}"
    facts = {"io": _name(v), "state": _name(states), "l2norm": True} | form
    kind = kind_of(*sizes, **facts)
    return find_refusal(kind, device)
