# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launches of a step, from vLLM's metadata: sequences that decode, prompts, and sequences with
drafts. Arrays are views of the metadata's, but for slots in a column of a block table, which are
copied side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Run(NamedTuple):
    """One launch."""

    entry: str
    """decode, prefill or verify"""
    tokens: object
    """Those of the step that it takes: a slice, or an array of their indices."""
    rows: dict[str, object]
    """What sequences have, by the names of the entry's parameters."""


def runs_of(metadata, contiguous: Callable) -> list[Run]:
    """The launches of a step. `metadata` has the fields of vLLM 0.33's GDNAttentionMetadata, whose
    sequences are sorted: those that decode, then prompts; or those with drafts, and prompts.
    `contiguous(array)` gives the array itself where its elements are side by side, else a copy."""
    with_drafts = metadata.spec_sequence_masks is not None
    runs = (_with_drafts if with_drafts else _without_drafts)(metadata, contiguous)
    return [run for run in runs if not isinstance(run.tokens, slice) or _size(run.tokens)]


def _without_drafts(metadata, contiguous: Callable) -> list[Run]:
    slots = contiguous(metadata.non_spec_state_indices_tensor)
    decodes, tokens = metadata.num_decodes, metadata.num_actual_tokens
    if metadata.num_prefills == 0:
        # Rows behind the tokens, and tokens behind the rows, are padding.
        count = min(tokens, slots.shape[0])
        return [_decode(slots, count)] if decodes else []
    if decodes != metadata.num_decode_tokens:
        starts, initial = metadata.non_spec_query_start_loc, metadata.has_initial_state
        return [_prefill(slice(0, tokens), starts, slots, initial)]
    prompts = _prefill(
        slice(decodes, tokens),
        metadata.prefill_query_start_loc,
        slots[decodes:],
        metadata.prefill_has_initial_state,
    )
    return [_decode(slots, decodes), prompts] if decodes else [prompts]


def _with_drafts(metadata, contiguous: Callable) -> list[Run]:
    drafted, prompted = metadata.num_spec_decode_tokens, metadata.num_prefill_tokens
    table = contiguous(metadata.spec_state_indices_tensor)
    if metadata.num_prefills == 0:
        return [_verify(metadata, slice(0, metadata.num_actual_tokens), table)]
    drafts_at, prompts_at = metadata.spec_token_indx, metadata.non_spec_token_indx
    masks = metadata.spec_sequence_masks_cpu.tolist()
    if masks == sorted(masks, reverse=True):
        drafts_at, prompts_at = slice(0, drafted), slice(drafted, drafted + prompted)
    elif masks == sorted(masks):
        drafts_at, prompts_at = slice(prompted, prompted + drafted), slice(0, prompted)
    prompts = _prefill(
        prompts_at,
        metadata.prefill_query_start_loc,
        contiguous(metadata.prefill_state_indices),
        metadata.prefill_has_initial_state,
    )
    return [_verify(metadata, drafts_at, table), prompts]


def _size(tokens: slice) -> int:
    return tokens.stop - tokens.start


def _decode(slots, count: int) -> Run:
    return Run("decode", slice(0, count), _slots(slots[:count]))


def _prefill(tokens, starts, slots, has_initial) -> Run:
    return Run(
        "prefill", tokens, {"cu_seqlens": starts, "has_initial": has_initial} | _slots(slots)
    )


def _verify(metadata, tokens, table) -> Run:
    rows = {
        "cu_seqlens": metadata.spec_query_start_loc,
        "token_slots": table,
        "num_accepted": metadata.num_accepted_tokens,
    }
    return Run("verify", tokens, rows)


def _slots(slots) -> dict[str, object]:
    return {"slots": slots, "write_slots": slots}
