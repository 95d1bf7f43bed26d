# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tree of the simulation on `gdn.StateCache`: each call is one of the cache with the tokens
themselves, and of the model in `tree.py` as well. What the two say must be the same.

States have one element here: what a cache decides does not depend on their size. Only leaves that
are dropped give keys and values up, so the cache has no pages, and counts tokens of nodes.
"""

from __future__ import annotations

from collections.abc import Callable

from gdn import Runtime, StateCache, StatePool, StatePoolShape

from .traces import Trace
from .tree import Match, Node, Tree

#: The counts of both are compared after so many changes.
COMPARED = 256
#: The cache must not have to make room by itself.
MOST_NODES = 1 << 19
_MADE = 128


class ProductTree(Tree):
    """`slots` and `kv_tokens` are the memory of the policy."""

    def __init__(self, trace: Trace, on_gone: Callable[[Node], None], slots: int, kv_tokens: int):
        super().__init__(trace, on_gone)
        self.make_pool(slots + 1)
        evicted = self.evicted
        self.cache = StateCache(
            self.pool,
            max_nodes=MOST_NODES,
            max_tokens=kv_tokens,
            has_pages=False,
            evicted=lambda node, tokens, slot: evicted.append((node, tokens)),
        )

    def make_pool(self, slots: int) -> None:
        self.runtime = Runtime()
        device = self.runtime.device(num_workers=1)
        self.pool = StatePool(device, StatePoolShape(1, slots, 1, 1, 1, 1))
        self.evicted = []  # nodes and tokens of states
        self.ids: dict[Node, int] = {}  # of nodes with a state
        self.held: dict[Node, list] = {}  # locks
        self.made: dict[int, object] = {}  # tokens of paths
        self.changes = 0

    def slot_is_taken(self, node: Node, is_new: bool) -> bool:
        """Whether the cache takes the slot of an insertion."""
        return is_new

    def match(self, path: list[int], limit: int) -> Match:
        model = super().match(path, limit)
        found = self.cache.match(self._tokens(path, limit))
        self._same("match", (found.tokens, found.known_tokens), (model.node.end, model.seen))
        self._same("node", found.node, self.ids.get(model.node, 0))
        return model

    def insert(self, path: list[int], end: int) -> tuple[Node, bool]:
        (slot,) = self.pool.allocate(1)
        done = self.cache.insert(self._tokens(path, end), slot=slot, evict_at_most=0)
        if done.is_full:
            raise RuntimeError(f"insert: expected room for {end} tokens")
        if not done.slot_taken:
            self.pool.free([slot])
        node, is_new = super().insert(path, end)
        self._same("insert", done.slot_taken, self.slot_is_taken(node, is_new))
        self._same("evicted", self.evicted, [])
        self.ids[node] = done.node
        self._changed()
        return node, is_new

    def drop(self, node: Node) -> None:
        self.cache.drop(self.ids[node])
        self._same("evicted", self.evicted.pop(), (self.ids.pop(node), node.end))
        super().drop(node)
        self._changed()

    def lock(self, node: Node) -> None:
        super().lock(node)
        self.held.setdefault(node, []).append(self.cache.lock(self.ids.get(node, 0)))

    def unlock(self, node: Node) -> None:
        super().unlock(node)
        locks = self.held[node]
        self.cache.unlock(locks.pop())
        if not locks:
            del self.held[node]
        self._changed()

    def close(self) -> None:
        """Looks whether the cache is sound, and ends it: before its pool."""
        self.cache.audit()
        self.held.clear()
        del self.cache
        del self.pool

    def _tokens(self, path: list[int], end: int):
        last = path[-1]
        if last not in self.made:
            if len(self.made) > _MADE:
                self.made.clear()
            self.made[last] = self.trace.tokens(last)
        return self.made[last][:end]

    def _changed(self) -> None:
        self.changes += 1
        if self.changes % COMPARED == 0:
            there = self.cache.describe()
            self._same("states", there.num_checkpoints + there.num_on_host, self.states)
            self._same("tokens", there.num_tokens, self.tokens)

    @staticmethod
    def _same(what: str, found: object, expected: object) -> None:
        if found != expected:
            raise RuntimeError(f"{what}: expected {expected} as in the model, got {found}")
