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
from .kernel import Gates, GdnKernel, NoKernel, layout_of_gates, or_own, refusal_of
from .tracked import prefill_tracked


class KdaKernel(GdnKernel):
    """See GdnKernel."""

    supports_safe_gate_verify = True

    def _gates(self, v, a, b, A_log, dt_bias, bound: float | None) -> Gates:
        tokens, heads = v.shape[:2]
        bias = dt_bias.detach().reshape(heads, -1)
        a, b = a.reshape(tokens, *bias.shape), b.reshape(tokens, heads)
        bound = None if bound is None else float(bound)
        form = {"per_channel": True, "layout": layout_of_gates(v, a, b)}
        if form["layout"] == "gated":
            form["decay_bound"] = bound
        arrays = a, b, A_log.detach().reshape(heads), bias
        return Gates(arrays, {"l2norm": True, "decay_bound": bound}, form)

    @or_own
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
        **_others,
    ) -> torch.Tensor | tuple[torch.Tensor, None] | NoKernel:
        """Ragged sequences: q and k [1, T, H, K], v [1, T, HV, V], g [1, T, HV, K] and beta
        [1, T, HV]. g are logarithms of decays where A_log is None. Returns the output
        [1, T, HV, V], and None for states between chunks with `return_intermediate_states`.
        `track_state` [N, HV, V, K] gets the state of sequence n before its chunk
        track_chunk_idx[n] of 64 tokens."""
        is_tracked = track_state is not None
        gates, form = None, {"per_channel": True, "layout": "ready"}
        if A_log is not None and beta_is_raw:
            gates = self._gates(v[0], g, beta, A_log, dt_bias, lower_bound)
            form = gates.form
        if is_spec_decode:
            return NoKernel("tokens are those of a draft")
        if return_intermediate_states and not is_tracked and _has_any(track_ssm_h_src):
            return NoKernel("states between chunks are returned")
        if (reason := refusal_of("prefill", (q, k, v), ssm_states, **form)) is not None:
            return NoKernel(reason)
        inputs, slots = (q[0], k[0], v[0]), cache_indices[: query_start_loc.shape[0] - 1]
        if form["layout"] == "ready":
            # Once for all launches.
            gates, decay, strength = None, g[0], beta[0]
            if A_log is not None:
                decay = fused_kda_gate(decay, A_log.detach(), dt_bias.detach(), lower_bound)
            inputs = *inputs, decay, strength.float().sigmoid() if beta_is_raw else strength

        def prefill(places, starts, out=None):
            at = ssm_states, places, starts
            if gates is None:
                return delta_prefill(*inputs, *at, out=out, l2norm=True)
            return gated_delta_prefill(*inputs, *gates.arrays, *at, out=out, **gates.options)

        if is_tracked:
            places = ssm_states, slots, query_start_loc
            out = prefill_tracked(prefill, v[0], *places, None, track_state, track_chunk_idx)
        else:
            out = prefill(slots, query_start_loc)
        return (out[None], None) if return_intermediate_states else out[None]


def _has_any(indices: torch.Tensor | None) -> bool:
    """Whether SGLang reads states between chunks."""
    return indices is None or indices.numel() > 0
