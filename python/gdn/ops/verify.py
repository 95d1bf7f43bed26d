# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of tokens that may be rejected, on states [slots, HV, V, K]."""

import torch
from torch import Tensor

from ..rule_verify import gated_delta_verify as verify
from ..rule_verify import gated_delta_verify_in_slots as verify_in_slots
from .fakes import register_fake
from .pools import on_pools, with_channels


@torch.library.custom_op("gdn::gated_delta_verify", mutates_args=("token_states", "out"))
def gated_delta_verify(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    states: Tensor,
    slots: Tensor,
    cu_seqlens: Tensor,
    token_states: Tensor,
    token_slots: Tensor,
    out: Tensor,
    scale: float | None,
    l2norm: bool,
    null_slot: int,
    decay_bound: float | None = None,
) -> None:
    """See gdn.rule_verify.gated_delta_verify."""

    def run(q, k, v, pools, out, scale):
        kept, read = pools
        channels, bias = with_channels(q, a, dt_bias)
        gates = (channels, b, A_log, bias)
        options = {"out": out, "scale": scale, "l2norm": l2norm, "null_slot": null_slot}
        options["decay_bound"] = decay_bound
        verify(q, k, v, *gates, read, slots, cu_seqlens, kept, token_slots, **options)

    on_pools("verify", run, q, k, v, [token_states, states], out, scale)


@torch.library.custom_op("gdn::gated_delta_verify_in_slots", mutates_args=("states", "out"))
def gated_delta_verify_in_slots(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    states: Tensor,
    token_slots: Tensor,
    num_accepted: Tensor,
    cu_seqlens: Tensor,
    out: Tensor,
    scale: float | None,
    l2norm: bool,
    null_slot: int,
    decay_bound: float | None = None,
) -> None:
    """See gdn.rule_verify.gated_delta_verify_in_slots."""

    def run(q, k, v, pools, out, scale):
        channels, bias = with_channels(q, a, dt_bias)
        gates = (channels, b, A_log, bias)
        options = {"out": out, "scale": scale, "l2norm": l2norm, "null_slot": null_slot}
        options["decay_bound"] = decay_bound
        verify_in_slots(q, k, v, *gates, pools[0], token_slots, num_accepted, cu_seqlens, **options)

    on_pools("verify", run, q, k, v, [states], out, scale)


register_fake(gated_delta_verify)
register_fake(gated_delta_verify_in_slots)
