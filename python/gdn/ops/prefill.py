# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of ragged batches of tokens, on states [slots, HV, V, K] in place."""

import torch
from torch import Tensor

from ..rule_pool import delta_prefill as ready_prefill
from ..rule_pool import gated_delta_prefill as prefill
from .fakes import register_fake
from .pools import on_pools, with_channels


@torch.library.custom_op("gdn::delta_prefill", mutates_args=("states", "out"))
def delta_prefill(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    states: Tensor,
    slots: Tensor,
    cu_seqlens: Tensor,
    has_initial: Tensor | None,
    cu_checkpoints: Tensor | None,
    checkpoint_tokens: Tensor | None,
    checkpoint_slots: Tensor | None,
    out: Tensor,
    scale: float | None,
    l2norm: bool,
    allow_neg_eigval: bool,
) -> None:
    """See gdn.rule_pool.delta_prefill. The three of checkpoints are given together."""
    checkpoints = None
    if cu_checkpoints is not None:
        checkpoints = (cu_checkpoints, checkpoint_tokens, checkpoint_slots)

    def run(q, k, v, pools, out, scale):
        ready_prefill(
            q,
            k,
            v,
            log_decay,
            beta,
            pools[0],
            slots,
            cu_seqlens,
            has_initial=has_initial,
            checkpoints=checkpoints,
            out=out,
            scale=scale,
            l2norm=l2norm,
            allow_neg_eigval=allow_neg_eigval,
        )

    on_pools("prefill", run, q, k, v, [states], out, scale)


@torch.library.custom_op("gdn::gated_delta_prefill", mutates_args=("states", "out"))
def gated_delta_prefill(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    states: Tensor,
    slots: Tensor,
    write_slots: Tensor,
    cu_seqlens: Tensor,
    out: Tensor,
    scale: float | None,
    l2norm: bool,
    decay_bound: float | None = None,
) -> None:
    """See gdn.rule_pool.gated_delta_prefill."""

    def run(q, k, v, pools, out, scale):
        channels, bias = with_channels(q, a, dt_bias)
        prefill(
            q,
            k,
            v,
            channels,
            b,
            A_log,
            bias,
            pools[0],
            slots,
            cu_seqlens,
            write_slots=write_slots,
            out=out,
            scale=scale,
            l2norm=l2norm,
            decay_bound=decay_bound,
        )

    on_pools("prefill", run, q, k, v, [states], out, scale)


register_fake(delta_prefill)
register_fake(gated_delta_prefill)
