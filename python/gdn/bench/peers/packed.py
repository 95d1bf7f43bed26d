# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peers' prefill of projections, each as the chain of kernels that it takes: convolutions
with SiLU, l2norm, gates, rule, gated norm. FLA has all of them, and its layer calls them so;
the others have a rule, before and behind which stand FLA's kernels.

Queries, keys and values come apart, each in one piece of memory, and have a convolution
each: of one convolution over all channels the rules would need copies.
"""

from collections.abc import Callable

import torch

from ..packed_inputs import Problem, Projections
from .prefill import PrefillPeer, peer_of

# From convolved queries and keys [1, T, Hk, D] and values [1, T, Hv, D] to outputs
# [.., T, Hv, D] and states.
Rule = Callable[[Projections, torch.Tensor, torch.Tensor, torch.Tensor], tuple]
# The same with log decays and strengths [1, T, Hv], f32.
Ready = Callable[..., tuple]


def convolve(x: torch.Tensor, weight: torch.Tensor, window: torch.Tensor, bounds: torch.Tensor):
    """What the convolution and SiLU give of inputs [T, channels], and the new windows."""
    from fla.modules.causal_conv1d import causal_conv1d

    return causal_conv1d(
        x[None],
        weight,
        initial_state=window,
        output_final_state=True,
        activation="silu",
        cu_seqlens=bounds,
    )


def normalise(x: torch.Tensor) -> torch.Tensor:
    """To unit length."""
    from fla.modules.l2norm import l2norm_fwd

    return l2norm_fwd(x)[0]


def gates(a: torch.Tensor, b: torch.Tensor, a_log: torch.Tensor, dt_bias: torch.Tensor):
    """Log decays and strengths in f32 from raw ones [T, Hv]."""
    from fla.ops.common.gate import fused_beta_sigmoid_fwd
    from fla.ops.gated_delta_rule.gate import gdn_gate_fwd

    return gdn_gate_fwd(a[None], a_log, dt_bias), fused_beta_sigmoid_fwd(b[None])


def gated_norm(core: torch.Tensor, z: torch.Tensor, weight: torch.Tensor, gate: str, eps: float):
    from fla.modules.fused_norm_gate import rms_norm_gated

    activation = "swish" if gate == "silu" else gate
    return rms_norm_gated(core, z, weight, None, activation, eps=eps)


def fla_rule(problem: Problem, l2norm: bool = True) -> Rule:
    """With l2norm and gates as its layer asks for them."""
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    bounds, weights = problem.bounds.long(), problem.weights

    def rule(x, q, k, v):
        return chunk_gated_delta_rule(
            q,
            k,
            v,
            g=x.a[None],
            beta=x.b[None],
            initial_state=x.state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=l2norm,
            use_beta_sigmoid_in_kernel=True,
            use_gate_in_kernel=True,
            A_log=weights["A_log"],
            dt_bias=weights["dt_bias"],
            state_v_first=True,
            cu_seqlens=bounds,
        )

    return rule


def flashqla_ready(problem: Problem) -> Ready:
    from flash_qla import chunk_gated_delta_rule

    def rule(x, q, k, v, decay, beta):
        return chunk_gated_delta_rule(
            q,
            k,
            v,
            decay,
            beta,
            initial_state=x.state,
            output_final_state=True,
            state_v_first=True,
            cu_seqlens=problem.bounds,
        )

    return rule


def flashinfer_ready(problem: Problem, l2norm: bool = True) -> Ready:
    """With the l2norm of its own, one launch for queries and keys, or without any. It takes
    the decay itself, not its logarithm."""
    from flashinfer.gdn_prefill import chunk_gated_delta_rule

    bounds = problem.bounds.long()

    def rule(x, q, k, v, decay, beta):
        return chunk_gated_delta_rule(
            q[0],
            k[0],
            v[0],
            g=decay[0].exp_(),
            beta=beta[0],
            initial_state=x.state,
            output_final_state=True,
            cu_seqlens=bounds,
            use_qk_l2norm_in_kernel=l2norm,
            max_seqlen=max(problem.case.lengths),
        )

    return rule


def behind(problem: Problem, ready: Ready, l2norm: bool) -> Rule:
    """A rule behind FLA's gates, and behind its l2norm where that is said."""
    weights = problem.weights

    def rule(x, q, k, v):
        decay, beta = gates(x.a, x.b, weights["A_log"], weights["dt_bias"])
        if l2norm:
            q, k = normalise(q), normalise(k)
        return ready(x, q, k, v, decay, beta)

    return rule


def flashqla_rule(problem: Problem) -> Rule:
    """Behind FLA's l2norm: its own is what torch.compile makes of a formula."""
    return behind(problem, flashqla_ready(problem), l2norm=True)


def flashinfer_rule(problem: Problem) -> Rule:
    return behind(problem, flashinfer_ready(problem), l2norm=False)


def flashinfer_rule_fla_l2norm(problem: Problem) -> Rule:
    return behind(problem, flashinfer_ready(problem, l2norm=False), l2norm=True)


def chain(problem: Problem, rule: Rule) -> PrefillPeer:
    """The rule between FLA's convolutions and its gated norm."""
    layer, weights, bounds = problem.layer, problem.weights, problem.bounds.long()

    def call(x: Projections):
        with torch.no_grad():
            parts = zip((x.q, x.k, x.v), problem.conv_weights, x.windows, strict=True)
            mixed = [convolve(part, w, window, bounds)[0] for part, w, window in parts]
            q, k = (m.view(*m.shape[:2], -1, layer.key_dim) for m in mixed[:2])
            v = mixed[2].view(*mixed[2].shape[:2], -1, layer.value_dim)
            core, states = rule(x, q, k, v)
            z = x.z.view(core.shape)
            return gated_norm(core, z, weights["norm_weight"], layer.gate, layer.norm_eps), states

    return peer_of(problem, call)


def _of(rule: Callable[[Problem], Rule]) -> Callable[[Problem], PrefillPeer]:
    return lambda problem: chain(problem, rule(problem))


# Implementation, variant, the module that it needs, and what prepares its calls.
PEERS: list[tuple[str, str, str, Callable[[Problem], PrefillPeer]]] = [
    ("fla", "conv, l2norm, gates, rule, norm", "fla", _of(fla_rule)),
    ("flashinfer", "conv, gates, norm of fla", "flashinfer", _of(flashinfer_rule)),
    (
        "flashinfer-fla-l2norm",
        "conv, l2norm, gates, norm of fla",
        "flashinfer",
        _of(flashinfer_rule_fla_l2norm),
    ),
    ("flashqla", "conv, l2norm, gates, norm of fla", "flash_qla", _of(flashqla_rule)),
]
