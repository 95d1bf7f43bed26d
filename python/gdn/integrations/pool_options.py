# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What users of an engine say about the memory of states: their format, and how many tokens stay
pending in a slot. No array library is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..image_facts import LEAST_DEFERRED, MOST_DEFERRED
from ..kernel_calls import SHORT_TYPES

#: The types of elements, and states in planes of bytes.
PLANES = {"i8x2": 2, "i8x2_upper": 2, "i8": 1}
FORMATS = (*SHORT_TYPES, *PLANES)
#: Those that decode cannot write at each token.
_ONLY_DEFERRED = ("i8x2_upper", "i8")


class PoolOptions(NamedTuple):
    """What an engine's own options leave open."""

    state: str | None = None
    """One of FORMATS; None: the engine's type"""
    deferred_writes: int = 0
    """The tokens that stay pending in a slot; 0: states are written at each token"""

    @classmethod
    def read(cls, given: Mapping[str, object], where: str) -> PoolOptions:
        """From the keys gdn_state and gdn_deferred_writes of `given`, which is the engine's option
        `where`. Raises ValueError for values that no pool has."""
        state = given.get("gdn_state")
        if state is not None and state not in FORMATS:
            known = ", ".join(FORMATS)
            raise ValueError(f"{where}: gdn_state: expected one of {known}, found {state!r}")
        writes = given.get("gdn_deferred_writes", 0)
        tokens = f"{LEAST_DEFERRED} to {MOST_DEFERRED} tokens"
        fits = type(writes) is int and (writes == 0 or LEAST_DEFERRED <= writes <= MOST_DEFERRED)
        if not fits:
            raise ValueError(
                f"{where}: gdn_deferred_writes: expected 0 or {tokens}, found {writes!r}"
            )
        if state in _ONLY_DEFERRED and not writes:
            raise ValueError(
                f"{where}: gdn_deferred_writes: expected {tokens} with gdn_state {state}, found 0"
            )
        return cls(state, writes)
