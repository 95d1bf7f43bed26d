# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of the gated delta rule that layers of transformers call, with gdn's kernels.

A module of transformers has its own functions, which all models of it share. Prompts go in chunks;
a token goes through a step that changes the cache's state in place. Calls that need a gradient, or
a kernel that is not there, go to the original functions; the reason is logged once.
"""

from __future__ import annotations

import functools
import logging
from types import ModuleType

import torch

from ..kernel_calls import find_refusal
from ..ops import chunk_gated_delta_rule
from ..ops.step import delta_step
from ..rule_kernels import UNIT, kind_of, unit_of

logger = logging.getLogger("gdn.integrations.transformers")

_CHUNK, _RECURRENT = "torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"


def has_functions(module: ModuleType) -> bool:
    """Whether a module of transformers has these functions."""
    return hasattr(module, _CHUNK) and hasattr(module, _RECURRENT)


def replace(module: ModuleType, doubled: bool) -> None:
    """Replaces a module's functions, for strengths up to 2 if `doubled`. A second call changes
    nothing. Raises ValueError where they are replaced for another range."""
    for name, run in ((_CHUNK, _chunk), (_RECURRENT, _recurrent)):
        original = getattr(module, name)
        if not hasattr(original, "gdn_original"):
            setattr(module, name, _replacement(original, run, doubled))
        elif original.gdn_doubled != doubled:
            raise ValueError(
                f"model: expected linear_allow_neg_eigval {original.gdn_doubled}, that of the"
                f" model that is patched, got {doubled}"
            )


def put_back(module: ModuleType) -> None:
    """Puts a module's original functions back."""
    for name in (_CHUNK, _RECURRENT):
        found = getattr(module, name, None)
        if hasattr(found, "gdn_original"):
            setattr(module, name, found.gdn_original)


def _replacement(original, run, doubled: bool):
    logged: set[str] = set()

    @functools.wraps(original)
    def rule(query, key, value, g, beta, *arguments, **options):
        reason = _refusal(query, key, value, g, beta, options, doubled)
        if reason is None and not arguments:
            return run(query, key, value, g, beta, doubled, **options)
        if reason is not None and reason not in logged:
            logged.add(reason)
            logger.info("%s: not by gdn: %s", original.__name__, reason)
        return original(query, key, value, g, beta, *arguments, **options)

    rule.gdn_original, rule.gdn_doubled = original, doubled
    return rule


def _refusal(query, key, value, g, beta, options, doubled: bool) -> str | None:
    """Why the original has to run, or None."""
    tensors = (query, key, value, g, beta, options.get("initial_state"))
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
        return "an input requires a gradient"
    if not query.dtype == key.dtype == value.dtype:
        return f"q, k and v have the types {query.dtype}, {key.dtype} and {value.dtype}"
    if query.shape[1] == 0:
        return "there are no tokens"
    device = query.device.type, query.device.index or 0
    kind = kind_of(
        query.shape[-1],
        value.shape[-1],
        unit=unit_of("prefill", device),
        doubled_beta=doubled,
        l2norm=bool(options.get("use_qk_l2norm_in_kernel")),
        io=str(value.dtype).removeprefix("torch."),
    )
    return find_refusal(kind, device)


def _chunk(
    query,
    key,
    value,
    g,
    beta,
    doubled: bool,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    cu_seqlens=None,
    **_,
):
    # The states that are given out are views of [B, HV, V, K], and the cache keeps their strides:
    # prebuilt images have kernels of that order, and decode has more variants with it.
    out, states = chunk_gated_delta_rule(
        query,
        key,
        value,
        g,
        beta,
        initial_state=None if initial_state is None else initial_state.mT,
        output_final_state=output_final_state,
        use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel,
        allow_neg_eigval=doubled,
        state_v_first=True,
        cu_seqlens=cu_seqlens,
    )
    return out, None if states is None else states.mT


def _recurrent(query, key, value, g, beta, doubled: bool, **options):
    state = options.get("initial_state")
    in_place = (
        state is not None
        and options.get("output_final_state")
        and options.get("cu_seqlens") is None
        and query.shape[1] == 1
        and state.dtype == torch.float32
        and (state.is_contiguous() or state.mT.is_contiguous())
        and query.shape[-1] % UNIT == 0
        and value.shape[-1] % UNIT == 0
    )
    if not in_place:
        return _chunk(query, key, value, g, beta, doubled, **options)
    out = torch.empty_like(value[:, 0], memory_format=torch.contiguous_format)
    l2norm = bool(options.get("use_qk_l2norm_in_kernel"))
    token = (x[:, 0] for x in (query, key, value, g, beta))
    delta_step(*token, state.mT, out, l2norm, doubled)
    # The cache copies it onto itself, which does nothing.
    return out[:, None], state
