# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a gated delta rule with a decay of each channel as SGLang's Kimi Delta Attention
calls them, on its own pools.

States are [slots, HV, V, K], a slot below 0 is padding, and q and k are scaled to unit length in
the kernel. Raw gates a have K channels for each of HV heads, and b has one number; of constants
A_log has HV and dt_bias HV * K. With `lower_bound` the decay is bounded (docs/spec/gates.md).
"""

from __future__ import annotations

import torch

from ...ops.fla import fused_kda_gate
from ...rule_pool import delta_prefill, gated_delta_prefill
from ...rule_step import gated_delta_step
from .kernel import GdnKernel, layout_of_gates, parts_of, refusal_of
from .tracked import prefill_tracked


class KdaKernel(GdnKernel):
    """See GdnKernel. SGLang's own kernels verify drafts."""

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
        query_start_loc,
        lower_bound=None,
        **kwargs,
    ) -> torch.Tensor:
        """A token of each sequence: q and k [1, N, H, K], v [1, N, HV, V], a and b of N rows."""
        gates = _Gates(v[0], a, b, A_log, dt_bias, lower_bound)
        reason = refusal_of("decode", (q, k, v), ssm_states, per_channel=True, **gates.form)
        if reason is not None:
            return self._own("decode", reason)(
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
                lower_bound=lower_bound,
                **kwargs,
            )
        return _step(gates, (q[0], k[0], v[0]), ssm_states, cache_indices)

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
        **kwargs,
    ) -> torch.Tensor:
        """The same of mixed_qkv [N, 2 H K + HV V], where q, k and v are views. Returns
        [1, N, HV, V]."""
        inputs = parts_of(mixed_qkv, num_v_heads, head_v_dim, ssm_states.shape[-1])
        gates = _Gates(inputs[2], a, b, A_log, dt_bias, lower_bound)
        reason = refusal_of("decode", inputs, ssm_states, per_channel=True, **gates.form)
        if any(value is not None for name, value in kwargs.items() if name.startswith("replayssm")):
            reason = "states are buffered (--enable-linear-replayssm)"
        if reason is not None:
            return self._own("packed_decode", reason)(
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
                lower_bound=lower_bound,
                **kwargs,
            )
        return _step(gates, inputs, ssm_states, cache_indices, scale=scale)

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
        A_log=None,
        dt_bias=None,
        lower_bound=None,
        beta_is_raw=False,
        is_spec_decode=False,
        return_intermediate_states=False,
        track_state=None,
        track_chunk_idx=None,
        track_ssm_h_src=None,
        **kwargs,
    ) -> torch.Tensor | tuple[torch.Tensor, None]:
        """Ragged sequences: q and k [1, T, H, K], v [1, T, HV, V], g [1, T, HV, K] and beta
        [1, T, HV]. g are logarithms of decays where A_log is None. Returns the output
        [1, T, HV, V], and None for states between chunks with `return_intermediate_states`.
        `track_state` [N, HV, V, K] gets the state of sequence n before its chunk
        track_chunk_idx[n] of 64 tokens."""
        is_tracked = track_state is not None
        gates, form = None, {"layout": "ready", "checkpoints": is_tracked}
        if A_log is not None and beta_is_raw and not is_tracked:
            gates = _Gates(v[0], g, beta, A_log, dt_bias, lower_bound)
            form = gates.form
        reason = refusal_of("prefill", (q, k, v), ssm_states, per_channel=True, **form)
        if is_spec_decode:
            reason = "tokens are those of a draft"
        elif return_intermediate_states and not is_tracked and _has_any(track_ssm_h_src):
            reason = "states between chunks are returned"
        if reason is not None:
            return self._own("extend", reason)(
                q,
                k,
                v,
                g,
                beta,
                ssm_states=ssm_states,
                cache_indices=cache_indices,
                query_start_loc=query_start_loc,
                A_log=A_log,
                dt_bias=dt_bias,
                lower_bound=lower_bound,
                beta_is_raw=beta_is_raw,
                is_spec_decode=is_spec_decode,
                return_intermediate_states=return_intermediate_states,
                track_state=track_state,
                track_chunk_idx=track_chunk_idx,
                track_ssm_h_src=track_ssm_h_src,
                **kwargs,
            )
        inputs, slots = (q[0], k[0], v[0]), cache_indices[: query_start_loc.shape[0] - 1]
        places = ssm_states, slots, query_start_loc
        if gates is not None:
            out = gated_delta_prefill(*inputs, *gates.arrays, *places, **gates.options)
        else:
            decay, strength = g[0], beta[0]
            if A_log is not None:
                decay = fused_kda_gate(decay, A_log.detach(), dt_bias.detach(), lower_bound)
            if beta_is_raw:
                strength = strength.float().sigmoid()
            inputs = *inputs, decay, strength
            if is_tracked:
                out = prefill_tracked(inputs, *places, None, track_state, track_chunk_idx)
            else:
                out = delta_prefill(*inputs, *places, l2norm=True)
        return (out[None], None) if return_intermediate_states else out[None]

    def target_verify(self, *args, **kwargs) -> torch.Tensor:
        """SGLang's."""
        return self._own("target_verify", "decays are those of channels")(*args, **kwargs)


class _Gates:
    """Raw gates of tokens whose values are v [T, HV, V]."""

    def __init__(self, v, a, b, A_log, dt_bias, bound: float | None):
        tokens, heads = v.shape[:2]
        bias = dt_bias.detach().reshape(heads, -1)
        a, b = a.reshape(tokens, *bias.shape), b.reshape(tokens, heads)
        self.arrays = a, b, A_log.detach().reshape(heads), bias
        bound = None if bound is None else float(bound)
        self.options = {"l2norm": True, "decay_bound": bound}
        #: Of the kernel, as kind_of takes it.
        self.form = {"layout": layout_of_gates(v, a, b)}
        if self.form["layout"] == "gated":
            self.form["decay_bound"] = bound


def _step(gates: _Gates, inputs, states: torch.Tensor, slots: torch.Tensor, **options):
    """A token of each sequence. The output is [1, N, HV, V]."""
    return gated_delta_step(*inputs, *gates.arrays, states, slots, **gates.options, **options)[None]


def _has_any(indices: torch.Tensor | None) -> bool:
    """Whether SGLang reads states between chunks."""
    return indices is None or indices.numel() > 0
