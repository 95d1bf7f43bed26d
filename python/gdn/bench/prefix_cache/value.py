# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our policy: keep the states that save most for their memory.

What a state is worth is the tokens that would have to be computed again from the nearest state
above it, times the uses a second that states of its kind and age have had (`reuse`). States are
kept where they pay: at the end of an answer (the slot of the request itself, no copy), at the end
of a prompt, where an earlier request went on in another way, and each `GRID` tokens of a long new
prompt, as requests may part inside of it. What is not used is worth little, and goes first.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field

import numpy as np

from .reuse import Reuse, bins
from .rules import CHUNK, Memory, Policy, Running
from .traces import Trace
from .tree import Match, Node

GRID = 512
ANSWER, PROMPT, BRANCH, INSIDE = range(4)
_MOST_USES = 2
# Borders of kinds by the tokens of the prefix.
_DEPTHS = (1024, 2048, 3072, 4096, 6144, 8192, 16384)
KINDS = 4 * (_MOST_USES + 1) * 2 * (len(_DEPTHS) + 1)
#: A prompt is cut at a branch point for as many tokens behind the state that it begins with.
LEAST_CUT = 16
#: An entry that was not used for so many seconds is forgotten.
FORGET = 3600.0
#: Requests wait for a prompt that is computed again, the more the longer it is: a use that saves
#: `n` tokens is worth `n (1 + n CROWD)`. At 3.3 requests a second and 27 us a token, half of the
#: requests that arrive meanwhile, `3.3 * 27e-6 / 2`, wait as long, and others behind them.
CROWD = 8e-5
#: Values are computed anew after so many seconds, or after as many drops as a part of the states.
RENEW_SECONDS, RENEW_PART = 30.0, 1 / 32


@dataclass
class _Order:
    """States, the least valuable last, and when they were put in order."""

    nodes: list[Node] = field(default_factory=list)
    made: float = -math.inf


class Valued(Policy):
    """Kernels write the states that are kept, and read those that a request begins with: nothing is
    copied."""

    name = "ours"
    passes = 1

    def __init__(self, trace: Trace, memory: Memory):
        super().__init__(trace, memory)
        self.reuse = Reuse(KINDS)
        self.entries: dict[tuple[int, int], int] = {}  # by segment and end, kept or given up
        self.ends: dict[int, list[int]] = {}  # ends of entries by segment, in order
        self.place = ANSWER  # kind of the state that is being kept
        self.where: dict[Node, int] = {}  # entries of kept states
        self.what: list[tuple[int, int, int, bool]] = []  # place, depth, uses, passed: by entry
        self.order_of_states, self.order_of_leaves = _Order(), _Order()
        self.rates = None
        self.rates_time = self.forgot = -math.inf

    # Where states are kept.

    def matched(self, running: Running, match: Match) -> None:
        self.tree.touch(running.node)
        if match.seen > running.hit:
            running.branches.append(match.seen)
            gain = match.seen - running.hit
            if LEAST_CUT <= gain < CHUNK and self._uses(running.node) == _MOST_USES:
                running.cut = match.seen
        self._used(running)

    def waits(self, number: int, beside: list[Running]) -> bool:
        """A request begins a step later if one in this step computes what it needs. That one keeps
        a state where they part."""
        if not beside:
            return False
        path = self.trace.path(self.trace.prompt[number])
        limit = self.trace.depth[path[-1]] - 1
        kept = self.tree.match(path, limit).node.end
        later = False
        for other in beside:
            shared = 0
            for mine, its in zip(path, other.path[:-1], strict=False):
                if mine != its:
                    break
                shared = self.trace.depth[mine]
            shared = min(shared, limit, other.tokens)
            if shared >= kept + GRID:
                other.branches.append(shared)
                later = True
        return later

    def piece(self, running: Running, first: int, most: int) -> int:
        """Ends at a branch point that many go by: the state there is that of all its tokens."""
        end = first + super().piece(running, first, most)
        return (running.cut if first < running.cut < end else end) - first

    def computed(self, running: Running, first: int, count: int, now: float) -> None:
        self.now = now
        last = first + count // CHUNK * CHUNK
        ends = {}
        if running.tokens - running.hit >= 2 * GRID:
            begin = -(-(first + 1) // GRID) * GRID
            for end in range(begin, first + count, GRID):
                ends[first + (end - first) // CHUNK * CHUNK] = INSIDE
        if last > first:
            ends[last] = PROMPT if first + count == running.tokens else INSIDE
        for branch in running.branches:
            if first < branch <= first + count:
                whole = branch == first + count  # the state of the request itself
                ends[branch if whole else first + (branch - first) // CHUNK * CHUNK] = BRANCH
        ends.pop(first, None)
        for end in sorted(ends):
            self.place = ends[end]
            if self.keep(running, end):
                self.copied += 1

    def finish(self, running: Running, now: float) -> None:
        self.place = ANSWER
        super().finish(running, now)

    # What is worth how much.

    def kept(self, node: Node, is_new: bool) -> None:
        self.where[node] = self._entry(node.segment, node.end)

    def _entry(self, segment: int, end: int) -> int:
        """The entry of a position; a new one if it has none."""
        entry = self.entries.get((segment, end))
        if entry is None:
            what = (self.place, bisect.bisect(_DEPTHS, end), 0, False)
            entry = self.reuse.begin(self._kind(what), self.now)
            while len(self.what) <= entry:
                self.what.append(what)
            self.what[entry] = what
            self.entries[segment, end] = entry
            ends = self.ends.setdefault(segment, [])
            ends.append(end)
            ends.sort()
            self._pass(segment, end)
        return entry

    def gone(self, node: Node) -> None:
        del self.where[node]
        self.evicted += 1

    @staticmethod
    def _kind(what: tuple[int, int, int, bool]) -> int:
        place, depth, uses, passed = what
        return ((place * (len(_DEPTHS) + 1) + depth) * (_MOST_USES + 1) + uses) * 2 + passed

    def _pass(self, segment: int, below: int) -> None:
        """The entry above one that is new has another below it from now on."""
        while segment:
            for end in reversed(self.ends.get(segment, ())):
                if end < below:
                    entry = self.entries[segment, end]
                    what = self.what[entry]
                    if not what[3]:
                        what = self.what[entry] = (*what[:3], True)
                        self.reuse.change(entry, self._kind(what), self.now, False)
                    return
            segment = self.trace.parent[segment]

    def _used(self, running: Running) -> None:
        """The deepest entry of the path counts as used, also if its state was given up."""
        for segment in reversed(running.path[:-1]):
            for end in reversed(self.ends.get(segment, ())):
                if end < running.tokens:
                    entry = self.entries[segment, end]
                    place, depth, uses, passed = self.what[entry]
                    what = (place, depth, min(uses + 1, _MOST_USES), passed)
                    self.what[entry] = what
                    self.reuse.change(entry, self._kind(what), self.now, True)
                    return

    def _uses(self, node: Node) -> int:
        return self.what[self.where[node]][2] if node in self.where else 0

    def _rates(self, nodes: list[Node]) -> np.ndarray:
        """Uses a second of each of these states."""
        if self.now - self.rates_time > RENEW_SECONDS:
            self._forget()
            self.rates, self.rates_time = self.reuse.rates(self.now), self.now
        entries = np.fromiter((self.where[node] for node in nodes), np.int64, len(nodes))
        ages = self.now - self.reuse.since[entries]
        return self.rates[self.reuse.kind[entries], bins(ages)]

    def _values(self, nodes: list[Node]) -> np.ndarray:
        """What each of these states is worth for the memory of a state."""
        above = self.tree.above
        saved = np.fromiter((n.end - above(n).end for n in nodes), float, len(nodes))
        return self._rates(nodes) * saved * (1 + saved * CROWD)

    def _leaf_values(self, nodes: list[Node]) -> np.ndarray:
        """What each of these leaves is worth for the memory of a token. All tokens of its own are
        counted: once it is gone the states above it have no use either, and go soon."""
        own = np.fromiter((self._own(node) for node in nodes), float, len(nodes))
        return self._rates(nodes) * (1 + own * CROWD)

    @staticmethod
    def _own(node: Node) -> int:
        """The tokens of a leaf behind the last position where its path has another branch."""
        above = node.parent
        while above.parent and above.children == 1:
            above = above.parent
        return node.end - above.end

    def _forget(self) -> None:
        """Ends entries without a state that are too old."""
        if self.now - self.forgot < FORGET / 32:
            return
        self.forgot = self.now
        kept = set(self.where.values())
        for key, entry in list(self.entries.items()):
            if self.now - self.reuse.since[entry] > FORGET and entry not in kept:
                self.reuse.end(entry, self.now)
                del self.entries[key]
                self.ends[key[0]].remove(key[1])

    def state_to_drop(self) -> Node | None:
        return self._least(self.order_of_states, self._values, False)

    def leaf_to_drop(self) -> Node | None:
        return self._least(self.order_of_leaves, self._leaf_values, True)

    def _least(self, order: _Order, values, leaves: bool) -> Node | None:
        """The least valuable that may go, by an order that is made anew now and then."""
        if self.now - order.made > RENEW_SECONDS:
            order.nodes = []
        while True:
            while order.nodes:
                node = order.nodes.pop()
                if node in self.where and self._may_go(node, leaves):
                    return node
            nodes = [node for node in self.where if self._may_go(node, leaves)]
            if not nodes:
                return None
            count = max(1, min(len(nodes), int(len(self.where) * RENEW_PART)))
            least = np.argsort(values(nodes), kind="stable")[:count]
            order.nodes = [nodes[at] for at in reversed(least)]
            order.made = self.now

    @staticmethod
    def _may_go(node: Node, leaves: bool) -> bool:
        if node.pins or (leaves and node.children):
            return False
        return bool(node.children) or node.locks == 0
