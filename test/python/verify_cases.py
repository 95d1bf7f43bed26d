# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of tests of tokens that may be rejected."""

import numpy as np

STARTS = np.array([0, 4, 4, 5, 7], np.int32)  # tokens of four sequences, and one more
TOKENS, SLOTS, STEPS = 8, 17, 4


def places_in_buffer(buffer):
    """All tokens, none, and fewer than places; the last sequence is skipped, and a state in the
    first one is not kept."""
    table = np.arange(4 * STEPS).reshape(4, STEPS)
    table[0, 1] = -1
    return {
        "slots": np.array([4, 2, 6, -1]),
        "cu_seqlens": STARTS,
        "token_states": buffer,
        "token_slots": table,
    }
