# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launches of a step, from vLLM's metadata: sequences that decode, prompts, and sequences with
drafts. Arrays are views of the metadata's; nothing is computed or copied on a device."""

from __future__ import annotations

from typing import NamedTuple


class Run(NamedTuple):
    """One launch."""

    entry: str
    """decode, prefill or verify"""
    tokens: object
    """Those of the step that it takes: a slice, or an array of their indices."""
    rows: dict[str, object]
    """What sequences have, by the names of the entry's parameters."""


def runs_of(metadata) -> list[Run]:
    """The launches of a step. `metadata` has the fields of vLLM 0.33's GDNAttentionMetadata, whose
    sequences are sorted: those that decode, then prompts; or those with drafts, and prompts."""
    with_drafts = metadata.spec_sequence_masks is not None
    runs = _with_drafts(metadata) if with_drafts else _without_drafts(metadata)
    return [run for run in runs if not isinstance(run.tokens, slice) or _size(run.tokens)]


def _without_drafts(metadata) -> list[Run]:
    slots = metadata.non_spec_state_indices_tensor
    decodes, tokens = metadata.num_decodes, metadata.num_actual_tokens
    if metadata.num_prefills == 0:
        # Rows behind the tokens, and tokens behind the rows, are padding.
        count = min(tokens, slots.shape[0])
        return [_decode(slots, count)] if decodes else []
    if decodes != metadata.num_decode_tokens:
        starts, initial = metadata.non_spec_query_start_loc, metadata.has_initial_state
        return [_prefill(slice(0, tokens), starts, slots, initial)]
    prompts = _prompts(metadata, slice(decodes, tokens))
    return [_decode(slots, decodes), prompts] if decodes else [prompts]


def _with_drafts(metadata) -> list[Run]:
    drafted, prompted = metadata.num_spec_decode_tokens, metadata.num_prefill_tokens
    if metadata.num_prefills == 0:
        return [_verify(metadata, slice(0, metadata.num_actual_tokens))]
    masks = metadata.spec_sequence_masks_cpu.tolist()
    if masks == sorted(masks, reverse=True):
        behind = slice(drafted, drafted + prompted)
        return [_verify(metadata, slice(0, drafted)), _prompts(metadata, behind)]
    if masks == sorted(masks):
        behind = slice(prompted, prompted + drafted)
        return [_prompts(metadata, slice(0, prompted)), _verify(metadata, behind)]
    return [
        _verify(metadata, metadata.spec_token_indx),
        _prompts(metadata, metadata.non_spec_token_indx),
    ]


def _size(tokens: slice) -> int:
    return tokens.stop - tokens.start


def _decode(slots, count: int) -> Run:
    return Run("decode", slice(0, count), _slots(slots[:count]))


def _prompts(metadata, tokens) -> Run:
    return _prefill(
        tokens,
        metadata.prefill_query_start_loc,
        metadata.prefill_state_indices,
        metadata.prefill_has_initial_state,
    )


def _prefill(tokens, starts, slots, has_initial) -> Run:
    return Run(
        "prefill", tokens, {"cu_seqlens": starts, "has_initial": has_initial} | _slots(slots)
    )


def _verify(metadata, tokens) -> Run:
    rows = {
        "cu_seqlens": metadata.spec_query_start_loc,
        "token_slots": metadata.spec_state_indices_tensor,
        "num_accepted": metadata.num_accepted_tokens,
    }
    return Run("verify", tokens, rows)


def _slots(slots) -> dict[str, object]:
    return {"slots": slots, "write_slots": slots}
