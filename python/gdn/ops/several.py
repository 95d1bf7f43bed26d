# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several tokens of each sequence, as many of each, with the states after them where FlashInfer's
functions have them."""

import torch
from torch import Tensor

from .convolution import uniform
from .prefill import gated_delta_prefill
from .slots import put_in_range
from .verify import gated_delta_verify


def several_tokens(
    inputs: tuple[Tensor, ...],
    gates: tuple[Tensor, ...],
    states: Tensor,
    slots: Tensor,
    write_slots: Tensor | None,
    buffer: Tensor | None,
    token_slots: Tensor | None,
    out: Tensor,
    scale: float | None,
    l2norm: bool,
) -> None:
    """`inputs` are q, k [B, T, H, K] and v [B, T, HV, V], `gates` a, b [B, T, HV], A_log and
    dt_bias [HV]. Sequence n starts with states[slots[n]], and is skipped if the slot is negative.
    The state after its last token goes to states[write_slots[n]], that after token t to
    buffer[n, t] or to states[token_slots[n, t]], or nowhere where they are None or negative."""
    batch, tokens = inputs[0].shape[:2]
    q, k, v = (x.reshape(batch * tokens, *x.shape[2:]) for x in inputs)
    a, b = (x.reshape(batch * tokens, -1) for x in gates[:2])
    starts = uniform(batch, tokens, q.device)
    flat = (q, k, v, a, b, *gates[2:])
    if buffer is None and token_slots is None and write_slots is not None:
        gated_delta_prefill(*flat, states, slots, write_slots, starts, out, scale, l2norm)
        return
    places = torch.arange(batch, device=q.device)[:, None]
    columns = torch.arange(tokens, device=q.device)
    if buffer is not None:
        kept = buffer.view(-1, *states.shape[1:])
        places = places * buffer.shape[1] + columns
    elif token_slots is not None:
        kept = states.new_empty((batch * tokens, *states.shape[1:]))
        places = places * tokens + columns
    else:
        kept = states.new_empty((1, *states.shape[1:]))
        places = torch.full_like(places + columns, -1)
    gated_delta_verify(*flat, states, slots, starts, kept, places, out, scale, l2norm, -1)
    live = (slots >= 0) & (slots < states.shape[0])
    if token_slots is not None:
        put_in_range(states, kept, token_slots.reshape(-1), live.repeat_interleave(tokens))
    if write_slots is not None:
        put_in_range(states, kept[places[:, -1]], write_slots, live)
