# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's fused_recurrent_gated_delta_rule, which asks no registry: patch() puts a function in its
place, wherever a module holds it, that serves steps of one token where they are faster.

On an H200 a call takes the host 85 to 106 us, and 119 in FLA, so small steps are faster until the
states fill the GPU; in a graph, where the host has no part, FLA's kernel is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

import torch

from ..kernel_calls import find_refusal
from ..ops import fused_recurrent_gated_delta_rule
from ..ops.arguments import refusal_of
from ..rule_kernels import kind_of, unit_of

# Elements of the states of a step from which the kernel, not the host, says how long it takes.
MOST_STATES = 64 * 32 * 128 * 128
_NAME = "fused_recurrent_gated_delta_rule"
_TAKEN = frozenset(
    ("q", "k", "v", "g", "beta", "scale", "initial_state", "output_final_state")
    + ("use_qk_l2norm_in_kernel", "use_gate_in_kernel", "A_log", "dt_bias")
    + ("use_beta_sigmoid_in_kernel", "allow_neg_eigval", "state_v_first")
)
# The original's arguments by place.
_ORDER = ("q", "k", "v", "g", "gk", "gv", "beta", "scale", "initial_state", "output_final_state")
_ORDER += ("use_qk_l2norm_in_kernel", "use_gate_in_kernel", "A_log", "dt_bias")
_ORDER += ("use_beta_sigmoid_in_kernel", "allow_neg_eigval", "state_v_first", "cu_seqlens")


def why_not(given: dict[str, object], strengths_up_to_one: bool) -> str | None:
    """Why a call goes to FLA; None: gdn serves it, and faster."""
    q, k, v, g, beta = (given.get(name) for name in ("q", "k", "v", "g", "beta"))
    if q is None or k is None or v is None or g is None or beta is None:
        return "gdn needs q, k, v, g and beta"
    tensors = (q, k, v, g, beta, given.get("initial_state"))
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
        return "gdn has no backward, and an input requires a gradient"
    others = {
        name: value
        for name, value in given.items()
        if name not in _TAKEN and not (name in _ORDER and value is None)
    }
    if "cu_seqlens" in others or "gk" in others or "gv" in others:
        return "gdn serves steps of one token with a decay of each head"
    if reason := refusal_of(_NAME, others):
        return reason
    if q.shape[1] != 1 or beta.shape != v.shape[:3] or g.shape != v.shape[:3]:
        return "gdn serves steps of one token with a strength and a decay of each head"
    if not q.dtype == k.dtype == v.dtype:
        return f"gdn expects q, k and v of one type, got {q.dtype}, {k.dtype}, {v.dtype}"
    in_kernel = bool(given.get("use_beta_sigmoid_in_kernel"))
    if given.get("allow_neg_eigval") and not in_kernel:
        return "allow_neg_eigval goes with use_beta_sigmoid_in_kernel"
    if not in_kernel and not strengths_up_to_one:
        return "strengths may be above 1"
    states = v.shape[0] * v.shape[2] * v.shape[3] * q.shape[3]
    if q.is_cuda and (states > MOST_STATES or torch.cuda.is_current_stream_capturing()):
        return "FLA's kernel is as fast without the host"
    device = q.device.type, q.device.index or 0
    kind = kind_of(
        q.shape[-1],
        v.shape[-1],
        unit=unit_of("decode", device),
        doubled_beta=bool(given.get("allow_neg_eigval")),
        l2norm=bool(given.get("use_qk_l2norm_in_kernel")),
        io=str(v.dtype).removeprefix("torch."),
    )
    return find_refusal(kind, device)


def replacement(original: Callable, is_enabled: Callable[[], bool], bounded: bool) -> Callable:
    """`original`, or gdn's function where that is faster. `bounded`: strengths are up to 1."""

    @functools.wraps(original)
    def function(*arguments, **options):
        given = dict(zip(_ORDER, arguments, strict=False)) | options
        if is_enabled() and why_not(given, bounded) is None:
            return fused_recurrent_gated_delta_rule(
                **{name: value for name, value in given.items() if name in _TAKEN}
            )
        return original(*arguments, **options)

    function.gdn_original = original
    return function


def patch(is_enabled: Callable[[], bool], strengths_up_to_one: bool) -> None:
    """Replaces the function in all modules that hold it; again, if it has been replaced before."""
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule as held

    original = getattr(held, "gdn_original", held)
    new = replacement(original, is_enabled, strengths_up_to_one)
    for module in list(sys.modules.values()):
        names = vars(module) if hasattr(module, "__dict__") else {}
        for name, value in list(names.items()):
            if value is original or value is held:
                setattr(module, name, new)
