# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How soon states of a kind are used again, learnt from what was seen.

Entries are states that are kept, and states that were given up: an entry ends when it is used,
when its kind changes, or when it is too old. Of each kind and age, the uses and the seconds that
entries spent there are counted. `rates` are the uses a second that keeping an entry of some age
gives, if one gives it up at the best later age: a Gittins index of the hazard.
"""

from __future__ import annotations

import numpy as np

#: Borders of ages: 4 in each octave from 1 s to about 2 h.
BORDERS = np.concatenate([[0.0], 2.0 ** (np.arange(52) / 4)])
BINS = len(BORDERS)
_ENDS = np.append(BORDERS[1:], np.inf)

#: What is believed of a kind before anything was seen: so many uses in so many seconds.
PRIOR_USES, PRIOR_SECONDS = 1.0, 600.0


class Reuse:
    def __init__(self, kinds: int):
        self.uses = np.zeros((kinds, BINS))
        self.seconds = np.zeros((kinds, BINS))
        self.kind = np.zeros(1024, np.int16)  # by entry; -1 if it has ended
        self.since = np.zeros(1024)
        self.kind[:] = -1
        self._free = list(range(1023, -1, -1))

    def begin(self, kind: int, now: float) -> int:
        """A new entry."""
        if not self._free:
            size = len(self.kind)
            self.kind = np.concatenate([self.kind, np.full(size, -1, np.int16)])
            self.since = np.concatenate([self.since, np.zeros(size)])
            self._free = list(range(2 * size - 1, size - 1, -1))
        entry = self._free.pop()
        self.kind[entry], self.since[entry] = kind, now
        return entry

    def change(self, entry: int, kind: int, now: float, was_used: bool) -> None:
        """The entry was used, or is of another kind from now on; its age begins anew."""
        self._count(entry, now, was_used)
        self.kind[entry], self.since[entry] = kind, now

    def end(self, entry: int, now: float) -> None:
        self._count(entry, now, False)
        self.kind[entry] = -1
        self._free.append(entry)

    def rates(self, now: float) -> np.ndarray:
        """[kinds, BINS] uses a second, by age."""
        uses, seconds = self.uses.copy(), self.seconds.copy()
        live = np.flatnonzero(self.kind >= 0)
        ages = now - self.since[live]
        for kind in np.unique(self.kind[live]):
            seconds[kind] += spent(np.sort(ages[self.kind[live] == kind]))
        # The prior lies in all ages, in proportion to their lengths.
        made = np.empty_like(uses)
        uses_behind = np.cumsum(uses, 1)
        seconds_behind = np.cumsum(seconds, 1)
        for first in range(BINS):
            before = uses_behind[:, first - 1] if first else 0.0
            long = seconds_behind[:, first - 1] if first else 0.0
            got = uses_behind[:, first:] - np.reshape(before, (-1, 1)) + PRIOR_USES
            spend = seconds_behind[:, first:] - np.reshape(long, (-1, 1)) + PRIOR_SECONDS
            made[:, first] = (got / spend).max(1)
        return made

    def _count(self, entry: int, now: float, was_used: bool) -> None:
        kind, age = self.kind[entry], now - self.since[entry]
        last = int(np.searchsorted(BORDERS, age, "right")) - 1
        row = self.seconds[kind]
        row[:last] += _ENDS[:last] - BORDERS[:last]
        row[last] += age - BORDERS[last]
        if was_used:
            self.uses[kind, last] += 1


def bins(ages: np.ndarray) -> np.ndarray:
    """The index of each age's bin."""
    return np.searchsorted(BORDERS, ages, "right") - 1


def spent(ages: np.ndarray) -> np.ndarray:
    """Seconds in each bin of entries of these ages, which are in order."""
    sums = np.append(0.0, np.cumsum(ages))
    past = np.searchsorted(ages, _ENDS, "left")
    inside = np.searchsorted(ages, BORDERS, "left")
    whole = (len(ages) - past) * np.where(np.isinf(_ENDS), 0.0, _ENDS - BORDERS)
    return whole + sums[past] - sums[inside] - (past - inside) * BORDERS
