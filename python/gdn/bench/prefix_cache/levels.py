# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States in two levels: slots of the GPU, and host slots behind them. What loses its slot goes to
the host, a request that begins behind it brings it back.

`LevelTree` is the model: which states are where, and which have a copy on the host beside their
slot. `ProductLevels` does the same with `gdn.StateCache` and a host tier, and compares. `TwoLevels`
makes a policy of one level one of two. Copies of states are on one stream, in order, beside the
steps; keys and values go by last use, as in policies of one level.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gdn import HostTier, StateCache

from .product import MOST_NODES, ProductTree
from .rules import Memory, Running
from .traces import Trace
from .tree import Node, Tree

#: A state goes to the host if so many tokens would be computed again without it.
LEAST_TOKENS = 64


@dataclass(frozen=True)
class LevelMemory(Memory):
    """`slots` and `kv_tokens` are of both levels together."""

    gpu_slots: int
    host_slots: int
    #: Seconds of a copy of a state to the host, and back.
    store_seconds: float
    load_seconds: float


class LevelTree(Tree):
    """States in slots are in the order of their last use as a start, or of their insertion."""

    def __init__(self, trace: Trace, on_gone: Callable[[Node], None], memory: LevelMemory):
        Tree.__init__(self, trace, on_gone)
        self.memory = memory
        self.in_slots: OrderedDict[Node, None] = OrderedDict()
        self.on_host: set[Node] = set()
        self.copies: OrderedDict[Node, None] = OrderedDict()  # of what is in slots
        self.stored = self.fetched = 0

    def insert(self, path: list[int], end: int) -> tuple[Node, bool]:
        node, is_new = super().insert(path, end)
        if node in self.on_host:  # the new state is in a slot, and its copy stays
            self.on_host.remove(node)
            self.copies[node] = None
        self.use(node)
        return node, is_new

    def unlock(self, node: Node) -> None:
        super().unlock(node)
        if node in self.in_slots:
            self.use(node)

    def use(self, node: Node) -> None:
        """The node has a slot, and was used now."""
        self.in_slots[node] = None
        self.in_slots.move_to_end(node)
        if node in self.copies:
            self.copies.move_to_end(node)

    def drop(self, node: Node) -> None:
        super().drop(node)
        self._forget(node)

    def _forget(self, node: Node) -> None:
        self.in_slots.pop(node, None)
        self.copies.pop(node, None)
        self.on_host.discard(node)

    def next_to_move(self) -> Node | None:
        """The least recently used state in a slot that no request holds."""
        return next((node for node in self.in_slots if node.pins == 0), None)

    def pays(self, node: Node) -> bool:
        return node.end - self.above(node).end >= LEAST_TOKENS

    def move(self, node: Node) -> bool:
        """The node loses its slot, and goes to the host if it pays. Returns whether it was copied.
        There has to be room for it, if copies of what is in slots go."""
        if node not in self.copies and not self.pays(node):
            Tree.drop(self, node)
            self._forget(node)
            return False
        is_copied = node in self.copies
        self._forget(node)
        if not is_copied:
            while len(self.on_host) + len(self.copies) >= self.memory.host_slots:
                self.copies.popitem(last=False)
            self.stored += 1
        self.on_host.add(node)
        return not is_copied

    def fetch(self, node: Node) -> None:
        """A state of the host gets a slot, and keeps its copy."""
        self.on_host.remove(node)
        self.copies[node] = None
        self.use(node)
        self.fetched += 1


class ProductLevels(LevelTree, ProductTree):
    """Calls go to `gdn.StateCache` as well: it moves what the model moves."""

    def __init__(self, trace: Trace, on_gone: Callable[[Node], None], memory: LevelMemory):
        LevelTree.__init__(self, trace, on_gone, memory)
        self.make_pool(memory.gpu_slots + 1)
        self.tier = HostTier(self.pool, memory.host_slots)
        self.moved = moved = []  # nodes
        self.cache = StateCache(
            self.pool,
            max_nodes=MOST_NODES,
            max_tokens=memory.kv_tokens,
            has_pages=False,
            evicted=lambda node, tokens, slot: self.evicted.append((node, tokens)),
            host_tier=self.tier,
            host_min_tokens=LEAST_TOKENS,
            moved=lambda node, tokens, slot, host: moved.append((node, tokens)),
        )

    def slot_is_taken(self, node: Node, is_new: bool) -> bool:
        return is_new or node in self.on_host

    def move(self, node: Node) -> bool:
        found = (self.ids[node], node.end)
        self._same("evicted", self.cache.evict_checkpoints(1), 1)
        pays = node in self.copies or self.pays(node)
        self._same("moved", (self.moved, self.evicted), ([found], []) if pays else ([], [found]))
        self.moved.clear()
        self.evicted.clear()
        if not pays:
            del self.ids[node]
        return super().move(node)

    def fetch(self, node: Node) -> None:
        lock = self.held[node][-1]
        self._same("on the host", lock.on_host, True)
        self._same("fetched", self.cache.fetch(lock), True)
        self._same("evicted", (self.moved, self.evicted), ([], []))
        super().fetch(node)

    def close(self) -> None:
        there = self.cache.describe()
        self._same("in slots", there.num_checkpoints, len(self.in_slots))
        self._same("on the host", there.num_on_host, len(self.on_host))
        super().close()
        del self.tier


class TwoLevels:
    """Ahead of a policy among the bases of a class: its states are in both levels. What is given up
    is the policy's choice, what is moved is what was not used for longest."""

    memory: LevelMemory
    states_on_clock = False

    def __init__(self, trace: Trace, memory: LevelMemory):
        self.link = 0.0  # when the copies so far have ended
        super().__init__(trace, memory)

    def make_tree(self) -> Tree:
        return LevelTree(self.trace, self.gone, self.memory)

    def bytes_moved(self, node: Node) -> int:
        memory = self.memory
        return self.tree.bytes_on_host(node, memory.gpu_bytes, 0, memory.token_bytes)

    def matched(self, running: Running, match) -> None:
        node = running.node
        if node in self.tree.on_host:
            self.tree.fetch(node)
            self._copy(self.memory.load_seconds)
            running.state_at = self.link
        super().matched(running, match)

    def begin(self, number: int, now: float) -> Running | None:
        self.now = now
        # Room for the request, and for the state that it may bring back.
        if not self._make_slots(self.slots_per_request + 1):
            return None
        return super().begin(number, now)

    def free_slots(self, count: int) -> bool:
        return super().free_slots(count) and self._make_slots(count)

    def _copy(self, seconds: float) -> None:
        self.link = max(self.link, self.now) + seconds

    def _make_slots(self, count: int) -> bool:
        tree, memory = self.tree, self.memory
        limit = memory.gpu_slots - self.running * self.slots_per_request - count
        while len(tree.in_slots) > limit:
            node = tree.next_to_move()
            if node is None:
                return False
            if len(tree.on_host) >= memory.host_slots and tree.pays(node):
                node = self.state_to_drop()
                if node is None:
                    return False
                self.drop(node)
                continue
            above = node.parent
            if tree.move(node):
                self._copy(memory.store_seconds)
            if not node.state:
                self.left(above)
        return True
