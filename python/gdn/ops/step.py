# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of a token of each sequence, on states [slots, HV, V, K] in place."""

import torch
from torch import Tensor

from ..rule_step import delta_step as ready_step
from ..rule_step import gated_delta_step as step
from .fakes import register_fake
from .pools import on_pools, with_channels


@torch.library.custom_op("gdn::gated_delta_step", mutates_args=("states", "out"))
def gated_delta_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    states: Tensor,
    slots: Tensor,
    write_slots: Tensor | None,
    out: Tensor,
    scale: float | None,
    l2norm: bool,
    null_slot: int,
    decay_bound: float | None = None,
) -> None:
    """See gdn.rule_step.gated_delta_step."""

    def run(q, k, v, pools, out, scale):
        channels, bias = with_channels(q, a, dt_bias)
        step(
            q,
            k,
            v,
            channels,
            b,
            A_log,
            bias,
            pools[0],
            slots,
            write_slots=write_slots,
            out=out,
            scale=scale,
            l2norm=l2norm,
            null_slot=null_slot,
            decay_bound=decay_bound,
        )

    on_pools("decode", run, q, k, v, [states], out, scale)


@torch.library.custom_op("gdn::delta_step", mutates_args=("states", "out"))
def delta_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    states: Tensor,
    out: Tensor,
    l2norm: bool,
    allow_neg_eigval: bool,
) -> None:
    """See gdn.rule_step.delta_step; sequence n has state n."""
    options = {"l2norm": l2norm, "allow_neg_eigval": allow_neg_eigval}
    ready_step(q, k, v, log_decay, beta, states, out=out, **options)


register_fake(gated_delta_step)
register_fake(delta_step)
