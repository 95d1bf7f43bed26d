# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Metadata of a step as vLLM's builder makes it, of NumPy's arrays: what runs_of reads."""

from types import SimpleNamespace

import numpy as np


def i32(values):
    return np.array(values, np.int32)


def starts_of(lengths):
    return i32(np.concatenate([[0], np.cumsum(lengths)]))


def make_metadata(
    queries, table, *, drafts=None, accepted=None, initial=None, padding=0, columns=3
):
    """As vLLM's builder makes it; `drafts` says which sequences have some, otherwise those in front
    decode that have one token and are not new. `padding` counts tokens behind the sequences."""
    # A view of a table with more columns.
    queries, table = np.array(queries), i32([[*row, -1, -1] for row in table])[:, :columns]
    initial = np.ones(len(queries), bool) if initial is None else np.array(initial)
    fields = dict.fromkeys(
        (
            "has_initial_state",
            "spec_query_start_loc",
            "non_spec_query_start_loc",
            "spec_state_indices_tensor",
            "non_spec_state_indices_tensor",
            "spec_sequence_masks",
            "spec_sequence_masks_cpu",
            "spec_token_indx",
            "non_spec_token_indx",
            "num_accepted_tokens",
            "prefill_query_start_loc",
            "prefill_state_indices",
            "prefill_has_initial_state",
        )
    )
    counts = dict.fromkeys(
        ("num_prefills", "num_prefill_tokens", "num_decodes", "num_decode_tokens"), 0
    )
    counts |= {"num_spec_decodes": 0, "num_spec_decode_tokens": 0}
    m = SimpleNamespace(**fields, **counts, num_actual_tokens=int(queries.sum()) + padding)
    masks = np.zeros(len(queries), bool) if drafts is None else np.array(drafts)
    rows = zip(queries.tolist(), table, masks, initial, accepted or queries, strict=True)
    m.sequences = list(rows)
    if drafts is None:
        prompts = (queries > 1) | ~initial
        m.num_decodes = int(np.argmax(prompts)) if prompts.any() else len(queries)
        m.num_decode_tokens = int(queries[: m.num_decodes].sum())
        m.num_prefills = len(queries) - m.num_decodes
        m.num_prefill_tokens = int(queries.sum()) - m.num_decode_tokens
        m.non_spec_state_indices_tensor = table[:, 0]
        m.non_spec_query_start_loc = starts_of(queries)
        if m.num_prefills:
            m.has_initial_state = initial
            m.prefill_query_start_loc = (
                m.non_spec_query_start_loc[m.num_decodes :] - m.num_decode_tokens
            )
            m.prefill_state_indices = table[m.num_decodes :, 0]
            m.prefill_has_initial_state = initial[m.num_decodes :]
        return m
    mask = np.array(drafts)
    m.spec_sequence_masks = m.spec_sequence_masks_cpu = mask
    m.num_spec_decodes, m.num_prefills = int(mask.sum()), int((~mask).sum())
    m.num_spec_decode_tokens = int(queries[mask].sum())
    m.num_prefill_tokens = int(queries[~mask].sum())
    m.spec_query_start_loc = starts_of(queries[mask])
    m.spec_state_indices_tensor = table[mask]
    m.num_accepted_tokens = i32(accepted)[mask]
    if m.num_prefills:
        tokens = np.repeat(mask, queries)
        m.spec_token_indx, m.non_spec_token_indx = np.flatnonzero(tokens), np.flatnonzero(~tokens)
        m.non_spec_query_start_loc = m.prefill_query_start_loc = starts_of(queries[~mask])
        m.non_spec_state_indices_tensor = m.prefill_state_indices = table[~mask, 0]
        m.has_initial_state = m.prefill_has_initial_state = initial[~mask]
    return m
