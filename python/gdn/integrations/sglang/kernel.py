# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a gated delta rule as SGLang's linear attention calls them, on its own pools.

Convolutions and norms stay SGLang's. States are [slots, HV, V, K], a slot below 0 is padding, and
q and k are scaled to unit length in the kernel.
"""

from __future__ import annotations

import logging

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

    def decode(
        self, q, k, v, a, b, *, A_log, dt_bias, ssm_states, cache_indices, query_start_loc, **kwargs
    ) -> torch.Tensor:
        """A token of each sequence: q and k [1, N, H, K], v [1, N, HV, V], a and b [N, HV]."""
        layer = self._layer(ssm_states)
        reason = self._refusal_of_step((q, k, v), ssm_states, layer, layout_of_gates(v, a, b))
        if reason is not None:
            return self._own("decode", reason, layer)(
                q,
                k,
                v,
                a,
                b,
                A_log=A_log,
                dt_bias=dt_bias,
                ssm_states=ssm_states,
                cache_indices=cache_indices,
                query_start_loc=query_start_loc,
                **kwargs,
            )
        out = gated_delta_step(
            q[0],
            k[0],
            v[0],
            a,
            b,
            A_log.detach(),
            dt_bias.detach(),
            ssm_states if layer is None else layer.states,
            cache_indices,
            l2norm=True,
        )
        return out[None]

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
        **kwargs,
    ) -> torch.Tensor:
        """The same of mixed_qkv [N, 2 H K + HV V], where q, k and v are views. Returns
        [1, N, HV, V]."""
        q, k, v = parts_of(mixed_qkv, num_v_heads, head_v_dim, ssm_states.shape[-1])
        layer = self._layer(ssm_states)
        reason = self._refusal_of_step((q, k, v), ssm_states, layer, layout_of_gates(v, a, b))
        if any(value is not None for name, value in kwargs.items() if name.startswith("replayssm")):
            reason = "states are buffered (--enable-linear-replayssm)"
        if reason is not None:
            return self._own("packed_decode", reason, layer)(
                mixed_qkv,
                a,
                b,
                A_log=A_log,
                dt_bias=dt_bias,
                scale=scale,
                ssm_states=ssm_states,
                cache_indices=cache_indices,
                num_v_heads=num_v_heads,
                head_v_dim=head_v_dim,
                **kwargs,
            )
        out = gated_delta_step(
            q,
            k,
            v,
            a,
            b,
            A_log.detach(),
            dt_bias.detach(),
            ssm_states if layer is None else layer.states,
            cache_indices,
            scale=scale,
            l2norm=True,
        )
        return out[None]

    def extend(
        self,
        q,
        k,
        v,
        g,
        beta,
        *,
        ssm_states,
        cache_indices,
        query_start_loc,
        inplace_update=True,
        output=None,
        track_state=None,
        track_chunk_idx=None,
        **kwargs,
    ) -> tuple:
        """Ragged sequences: q and k [1, T, H, K], v [1, T, HV, V], g and beta [1, T, HV].
        Returns the output [1, T, HV, V], and None twice: no state is returned, and none between
        chunks. `track_state` [N, HV, V, K] gets the state of sequence n before its chunk
        track_chunk_idx[n] of 64 tokens."""
        is_tracked = track_state is not None
        slots = cache_indices[: query_start_loc.shape[0] - 1]
        layer, states = self._layer(ssm_states), ssm_states
        if layer is not None and layer.in_planes:
            states = layer.states
        elif layer is not None:
            # From here on SGLang's array is all that there is.
            layer.io = _name(v)
            layer.commit(slots)
        form = {"layout": "ready", "checkpoints": is_tracked} | _facts(states)
        reason = refusal_of("prefill", (q, k, v), ssm_states, **form)
        if not inplace_update:
            reason = "states must not change (multi-item scoring)"
        if states is not ssm_states and is_tracked:
            reason = "states inside of prompts are kept"
        if reason is not None:
            whole = states is ssm_states
            found = self._own("extend", reason, None if whole else layer)(
                q,
                k,
                v,
                g,
                beta,
                ssm_states=ssm_states,
                cache_indices=cache_indices,
                query_start_loc=query_start_loc,
                inplace_update=inplace_update,
                **kwargs,
            )
            if is_tracked:
                fill_tracked(track_state, track_chunk_idx, found[2], query_start_loc)
            return found
        takes = output is not None and output.shape == v.shape and output.dtype == v.dtype
        into = output[0] if takes else None
        inputs = q[0], k[0], v[0], g[0], beta[0]
        if is_tracked:
            tracked = track_state, track_chunk_idx
            out = prefill_tracked(inputs, ssm_states, slots, query_start_loc, into, *tracked)
        else:
            out = delta_prefill(*inputs, states, slots, query_start_loc, out=into, l2norm=True)
        return out[None], None, None

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
        **kwargs,
    ) -> torch.Tensor:
        """Drafts, one behind the other: q and k [1, T, H, K], v [1, T, HV, V], a and b [T, HV].
        The state after token t of sequence n goes to
        `intermediate_states_buffer[intermediate_state_indices[n], t]`; ssm_states are only read.
        With `stable_rows` the indices are others in each step."""
        layer = self._layer(ssm_states)
        reason = refusal_of(
            "verify", (q, k, v), ssm_states, layout=layout_of_gates(v, a, b), verify="buffer"
        )
        if layer is not None:
            reason = "a state is kept for each draft"
        if retrieve_parent_token is not None:
            reason = "drafts are trees"
        elif not intermediate_states_buffer.is_contiguous():
            reason = "the buffer of states has gaps"
        if reason is not None:
            return self._own("target_verify", reason, layer)(
                A_log,
                dt_bias,
                q,
                k,
                v,
                a,
                b,
                ssm_states=ssm_states,
                cache_indices=cache_indices,
                query_start_loc=query_start_loc,
                intermediate_states_buffer=intermediate_states_buffer,
                intermediate_state_indices=intermediate_state_indices,
                cache_steps=cache_steps,
                retrieve_parent_token=retrieve_parent_token,
                stable_rows=stable_rows,
                **kwargs,
            )
        count = query_start_loc.shape[0] - 1
        out = gated_delta_verify(
            q[0],
            k[0],
            v[0],
            a,
            b,
            A_log.detach(),
            dt_bias.detach(),
            ssm_states,
            cache_indices[:count],
            query_start_loc,
            intermediate_states_buffer.flatten(0, 1),
            self._token_slots(intermediate_state_indices, cache_steps, stable_rows)[:count],
            l2norm=True,
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

    def _refusal_of_step(self, inputs, states, layer: SlotLayer | None, layout: str) -> str | None:
        """As refusal_of for decode."""
        facts: dict[str, object] = {}
        if layer is not None:
            layer.io, layer.layout = _name(inputs[2]), layout
            facts = _facts(layer.states)
        return refusal_of("decode", inputs, states, layout=layout, **facts)

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
