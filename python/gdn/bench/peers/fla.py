# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA (flash-linear-attention). Its recurrence writes new f32 states, whatever type
it reads; its convolution keeps windows of K inputs in a cache of its own."""

import torch

from ..inputs import Inputs, Step
from .peer import Peer


def rule(step: Step, x: Inputs) -> Peer:
    """The fused recurrence from ready gates."""
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule

    q, k, v = x.heads_of(x.convolved)
    rate = -torch.exp(step.shared["A_log"].float())
    g = rate * torch.nn.functional.softplus(x.a.float() + step.shared["dt_bias"].float())
    beta = torch.sigmoid(x.b.float())
    left: dict = {}

    def call(index: int, state: torch.Tensor):
        def run():
            left[index] = fused_recurrent_gated_delta_rule(
                q,
                k,
                v,
                g=g[:, None],
                beta=beta[:, None],
                initial_state=state,
                output_final_state=True,
                use_qk_l2norm_in_kernel=True,
                state_v_first=True,
            )

        return run

    calls = [call(index, state) for index, state in enumerate(step.states)]
    return Peer(calls, lambda: left[0][0][:, 0], lambda: left[0][1], in_slots=False)


def decode_step(step: Step, x: Inputs) -> Peer:
    """As its layer does a step: three convolutions, the recurrence with the gates in the
    kernel, the gated norm."""
    from fla.modules.causal_conv1d import causal_conv1d_update
    from fla.modules.fused_norm_gate import rms_norm_gated
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule

    layer, sizes, shared = step.layer, step.sizes, step.shared
    keys = sizes.key_heads * layer.key_dim
    widths = [keys, keys, x.mixed.shape[1] - 2 * keys]
    inputs = [part.contiguous() for part in x.mixed.split(widths, dim=1)]
    weights = [part.contiguous() for part in shared["conv_weight"].split(widths, dim=0)]
    a, b, z = x.a[:, None], x.b[:, None], x.z[:, None]
    gate = "swish" if layer.gate == "silu" else layer.gate
    left: dict = {}

    def call(index: int, state: torch.Tensor, window: torch.Tensor):
        # The oldest of the K inputs is dropped by the step.
        full = torch.nn.functional.pad(window, (1, 0))
        caches = [part.contiguous() for part in full.split(widths, dim=1)]

        def run():
            q, k, v = (
                causal_conv1d_update(part[:, None], cache, weight=weight, activation="silu")[0]
                for part, cache, weight in zip(inputs, caches, weights, strict=True)
            )
            o, new = fused_recurrent_gated_delta_rule(
                q.view(sizes.rows, 1, sizes.key_heads, -1),
                k.view(sizes.rows, 1, sizes.key_heads, -1),
                v.view(sizes.rows, 1, sizes.value_heads, -1),
                g=a,
                beta=b,
                initial_state=state,
                output_final_state=True,
                use_qk_l2norm_in_kernel=True,
                use_gate_in_kernel=True,
                A_log=shared["A_log"],
                dt_bias=shared["dt_bias"],
                use_beta_sigmoid_in_kernel=True,
                state_v_first=True,
            )
            normed = rms_norm_gated(o, z, shared["norm_weight"], None, gate, eps=layer.norm_eps)
            left[index] = normed, new

        return run

    pairs = zip(step.states, step.windows, strict=True)
    calls = [call(index, *pair) for index, pair in enumerate(pairs)]
    return Peer(calls, lambda: left[0][0][:, 0], lambda: left[0][1], in_slots=False)
