# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn::delta_layer, a layer behind its projections as an operator on states as transformers'
caches keep them. Its fake kernel lets torch.compile trace through it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..layer_kernels import LayerKind
from ..layer_run import LayerWeights, run_layer
from .fakes import register_fake


def run_on_cache(
    kind: LayerKind,
    projections: Sequence[Tensor],
    weights: LayerWeights,
    conv_states: Tensor,
    recurrent_states: Tensor,
    has_initial: bool,
) -> Tensor:
    """See gdn.layer_run.run_layer. conv_states are [B, C, K], of which the first column is not
    looked at; recurrent_states [B, Hv, dk, dv], whose memory is [B, Hv, dv, dk]. Both are changed
    in place. Returns what is behind the norm, [B * T, Hv * dv]."""
    tokens = projections[0].shape[0]
    heads, _, value_dim = recurrent_states.shape[1:]
    out = projections[0].new_empty((tokens, heads * value_dim))
    run_layer(
        kind,
        projections,
        weights,
        conv_states[:, :, 1:],
        recurrent_states.mT,
        out.view(tokens, heads, value_dim),
        has_initial=has_initial,
    )
    return out


def conv_type(conv_weight: Tensor, io: torch.dtype) -> str | None:
    """LayerKind.conv of these weights."""
    dtype = conv_weight.dtype
    return None if dtype == io else str(dtype).removeprefix("torch.")


@torch.library.custom_op("gdn::delta_layer", mutates_args=("conv_states", "recurrent_states"))
def delta_layer(
    projections: Sequence[Tensor],
    conv_weight: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    norm_weight: Tensor,
    conv_states: Tensor,
    recurrent_states: Tensor,
    has_initial: bool,
    layout: str,
    norm_eps: float,
    gate: str,
    per_channel: bool,
    doubled_beta: bool,
    decay_bound: float | None = None,
) -> Tensor:
    """run_on_cache with the members of the kind and of the weights as arguments."""
    kind = LayerKind(
        layout,
        recurrent_states.shape[2],
        recurrent_states.shape[3],
        conv_states.shape[2],
        norm_eps,
        gate,
        str(projections[0].dtype).removeprefix("torch."),
        str(recurrent_states.dtype).removeprefix("torch."),
        per_channel,
        doubled_beta,
        decay_bound,
        conv_type(conv_weight, projections[0].dtype),
    )
    weights = LayerWeights(conv_weight, A_log, dt_bias, norm_weight)
    return run_on_cache(kind, projections, weights, conv_states, recurrent_states, has_initial)


def _results(
    projections, conv_weight, A_log, dt_bias, norm_weight, conv_states, recurrent_states, *_
):
    heads, _, value_dim = recurrent_states.shape[1:]
    return projections[0].new_empty((projections[0].shape[0], heads * value_dim))


register_fake(delta_layer, _results)
