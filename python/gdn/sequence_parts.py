# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tokens of which sequences a rank has: what ranks say of a call before they compute, and
what follows of it for slots, checkpoints and runs of tokens."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import NamedTuple

from .call_options import refuse_meta
from .exchange import Exchange, ExchangeError

# What counts of checkpoints are multiples of (docs/spec/slots.md).
_UNIT = 64


class Segment(NamedTuple):
    """Tokens of one sequence that this rank computes from one state: rows `start` to `stop` of its
    arrays."""

    sequence: int
    start: int
    stop: int
    is_first: bool  # the sequence begins with it
    is_last: bool  # and ends with it
    #: Slots of checkpoints after its last token.
    slots: tuple[int, ...]


class Places(NamedTuple):
    """Where states of a call are: arrays or None, as gdn.rule_pool.delta_prefill has them."""

    slots: object
    write_slots: object
    has_initial: object
    checkpoints: tuple | None
    null_slot: int


class SequenceParts:
    """One call on one rank. Raises ValueError for arrays that do not go together. `agreed` are
    other values that must be the same on every rank."""

    def __init__(
        self, exchange: Exchange, rows: int, pool: int, cu_seqlens, places: Places, agreed
    ):
        self.rank, self.size = exchange.rank, exchange.size
        starts = _integers("cu_seqlens", cu_seqlens)
        self.count = len(starts) - 1
        if self.count < 0 or starts != sorted(starts) or starts[0] < 0 or starts[-1] > rows:
            raise ValueError(
                f"cu_seqlens: expected 0 <= .. <= {rows}, without decrease, got {starts}"
            )
        #: First row, and the one behind the last, of each sequence here.
        self.local = list(pairwise(starts))
        self.slots = _integers("slots", places.slots, self.count)
        self.targets = self.slots
        if places.write_slots is not None:
            self.targets = _integers("write_slots", places.write_slots, self.count)
        self.has_initial = [True] * self.count
        if places.has_initial is not None:
            self.has_initial = [bool(flag) for flag in places.has_initial.tolist()]
            _check_count("has_initial", self.has_initial, self.count)
        self._checkpoints = self._checked(places.checkpoints)
        self._pool, self._null = pool, int(places.null_slot)
        self._agreed = {
            **agreed,
            "ranks": self.size,
            "slots of pools": pool,
            "slots": self.slots,
            "write_slots": self.targets,
            "has_initial": self.has_initial,
            "checkpoints": self._checkpoints,
            "null_slot": self._null,
        }
        self.lengths = [[stop - start for start, stop in self.local]]

    def _checked(self, checkpoints: tuple | None) -> list[list[int]]:
        if checkpoints is None:
            return [[0] * (self.count + 1), [], []]
        starts, tokens, slots = checkpoints
        tokens = _integers("checkpoint_tokens", tokens)
        starts = _integers("cu_checkpoints", starts, self.count + 1)
        if starts != sorted(starts) or starts[0] < 0 or starts[-1] > len(tokens):
            raise ValueError(
                f"cu_checkpoints: expected 0 <= .. <= {len(tokens)}, without decrease, got {starts}"
            )
        return [starts, tokens, _integers("checkpoint_slots", slots, len(tokens))]

    def to_bytes(self) -> bytes:
        """What the other ranks have to know."""
        head = json.dumps([self.lengths[0], self._agreed]).encode()
        return len(head).to_bytes(8, "little") + head

    def take(self, parts: list[bytes]) -> list[bytes]:
        """Reads what to_bytes made on each rank, and returns what follows it. Raises ExchangeError
        if the ranks were called with different arguments."""
        heads, rest = [], []
        for part in parts:
            end = 8 + int.from_bytes(part[:8], "little")
            heads.append(json.loads(part[8:end]))
            rest.append(part[end:])
        check_agreed([agreed for _, agreed in heads])
        self.lengths = [lengths for lengths, _ in heads]
        return rest

    # What follows is of all ranks, and known after `take`.

    def is_slot(self, slot: int) -> bool:
        return 0 <= slot < self._pool and slot != self._null

    def is_live(self, n: int) -> bool:
        """Whether the sequence has tokens and is not skipped."""
        return self.is_slot(self.slots[n]) and self.ahead(n, self.size) > 0

    def is_written(self, n: int) -> bool:
        return self.is_live(n) and self.is_slot(self.targets[n])

    def ahead(self, n: int, rank: int) -> int:
        """Tokens of a sequence on the ranks before `rank`."""
        return sum(lengths[n] for lengths in self.lengths[:rank])

    def has_map(self, n: int, rank: int) -> bool:
        """Whether a rank sends the map of its tokens: a later rank has some, too."""
        length, behind = self.lengths[rank][n], self.ahead(n, self.size) - self.ahead(n, rank + 1)
        return self.is_live(n) and length > 0 and behind > 0

    def checkpoints(self, n: int) -> list[tuple[int, int]]:
        """Counts of tokens and slots of the checkpoints that are written."""
        starts, tokens, slots = self._checkpoints
        found, most, length = [], 0, self.ahead(n, self.size)
        if not self.is_live(n):
            return []
        own = slice(starts[n], starts[n + 1])
        for count, slot in zip(tokens[own], slots[own], strict=True):
            if most < count <= length and count % _UNIT == 0:
                most = count
                if self.is_slot(slot):
                    found.append((count, slot))
        return found

    def segments(self, rank: int) -> list[Segment]:
        """The tokens of live sequences on a rank, cut at checkpoints. Rows are those of this rank's
        arrays only if it is this rank."""
        found = []
        for n, (start, _) in enumerate(self.local):
            before, length = self.ahead(n, rank), self.lengths[rank][n]
            if not self.is_live(n) or length == 0:
                continue
            inside = {c - before: slot for c, slot in self.checkpoints(n)}
            ends = sorted({c for c in inside if 0 < c <= length} | {length})
            for begin, end in pairwise([0, *ends]):
                found.append(
                    Segment(
                        n,
                        start + begin,
                        start + end,
                        is_first=before + begin == 0,
                        is_last=before + end == self.ahead(n, self.size),
                        slots=(inside[end],) if end in inside else (),
                    )
                )
        return found

    def written(self, rank: int) -> list[tuple[int, int]]:
        """Indices in segments(rank) and slots of the states that a rank finds for all."""
        found = []
        for i, segment in enumerate(self.segments(rank)):
            found += [(i, slot) for slot in segment.slots]
            if segment.is_last and self.is_written(segment.sequence):
                found.append((i, self.targets[segment.sequence]))
        return found


def check_agreed(given: list[dict]) -> None:
    """Raises ExchangeError if ranks have other values of some name than rank 0."""
    first = given[0]
    for rank, agreed in enumerate(given):
        for name in sorted(set(first) | set(agreed)):
            if agreed.get(name) != first.get(name):
                raise ExchangeError(
                    f"{name}: expected {first.get(name)}, which rank 0 has, got"
                    f" {agreed.get(name)} on rank {rank}"
                )


def _check_count(name: str, values: list, count: int) -> None:
    if len(values) != count:
        raise ValueError(f"{name}: expected the shape [{count}], got [{len(values)}]")


def _integers(name: str, array, count: int | None = None) -> list[int]:
    """The values of an array [count] of integers."""
    if len(array.shape) != 1:
        raise ValueError(f"{name}: expected one dimension, got {list(array.shape)}")
    if "int" not in str(array.dtype):
        raise ValueError(f"{name}: expected integers, got {array.dtype}")
    refuse_meta(name, array)
    values = array.tolist()
    if count is not None:
        _check_count(name, values, count)
    return values
