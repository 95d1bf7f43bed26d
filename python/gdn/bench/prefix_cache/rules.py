# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all policies of a prefix cache share in the simulation, plain LRU, and the rules of sglang
in both forms. docs/design/20261128-prefix-cache-simulation.md describes them.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass, field

from .traces import Trace
from .tree import Match, Node, Tree

#: The kernels keep states at multiples of so many tokens of a piece.
CHUNK = 64


@dataclass(frozen=True)
class Memory:
    """For the cache and for running requests: states, and tokens with keys and values. What was
    used last is on the GPU, as far as it goes, and the rest in pinned memory of the host."""

    slots: int
    kv_tokens: int
    state_bytes: int
    token_bytes: int
    gpu_bytes: float


@dataclass
class Running:
    """A request that has begun."""

    number: int
    path: list[int]  # of its answer, so that of its prompt and one segment more
    tokens: int  # of its prompt
    end: int  # tokens whose state exists at its end: its last token is never read
    hit: int
    host_bytes: int  # of its prefix, that were not on the GPU
    node: Node  # locked: the deepest state of its path that it uses
    # Tokens behind which another request went on in another way.
    branches: list[int] = field(default_factory=list)
    cut: int = 0  # tokens behind which a piece of the prompt ends, for the state there
    reserved: int = 0  # tokens of keys and values of its own, outside of the tree
    state_at: float = 0.0  # when its state is on the GPU


class Policy:
    """Plain LRU: a state at the end of each prompt and of each answer, of which the least recently
    used goes first, and of keys and values the least recently used leaf.

    All policies move what they keep between the GPU and the host in the same way, by last use.
    """

    name = "lru"
    slots_per_request = 1
    copies_at_hit = 0  # states copied when a request begins behind a kept state
    passes = 2  # over memory for a state that is kept: a copy reads and writes
    states_on_clock = True  # which of what is kept is on the GPU goes by states, too

    def __init__(self, trace: Trace, memory: Memory):
        self.trace, self.memory = trace, memory
        self.tree = self.make_tree()
        self.order: OrderedDict[Node, None] = OrderedDict()  # of states, the oldest first
        self.leaves: list[tuple[int, int, Node]] = []
        self.running = 0
        self.reserved = 0
        self.copied = 0  # states
        self.evicted = 0
        self.now = 0.0

    def make_tree(self) -> Tree:
        return Tree(self.trace, self.gone)

    # What the simulation calls.

    def begin(self, number: int, now: float) -> Running | None:
        """The request with the prefix that it need not compute; None if there is no memory."""
        self.now = now
        trace = self.trace
        path = trace.path(trace.answer[number])
        tokens = trace.depth[trace.prompt[number]]
        match = self.tree.match(path, tokens - 1)
        node = match.node
        end = trace.depth[trace.answer[number]] - 1
        need = end + 1 - node.end
        self.tree.lock(node)
        if not (self.free_tokens(need) and self.free_slots(self.slots_per_request)):
            self.tree.unlock(node)
            return None
        self.running += 1
        self.reserved += need
        memory = self.memory
        moved = self.bytes_moved(node)
        self.tree.clock += moved + need * memory.token_bytes
        self.tree.clock += memory.state_bytes * self.states_on_clock
        running = Running(number, path, tokens, end, node.end, moved, node, reserved=need)
        self.copied += self.copies_at_hit if node.parent else 0
        self.matched(running, match)
        return running

    def bytes_moved(self, node: Node) -> int:
        """What of a prefix has to come from the host."""
        memory = self.memory
        return self.tree.bytes_on_host(
            node, memory.gpu_bytes, memory.state_bytes, memory.token_bytes
        )

    def waits(self, number: int, beside: list[Running]) -> bool:
        """Whether a request should not begin in a step with these."""
        return False

    def piece(self, running: Running, first: int, most: int) -> int:
        """How many tokens of the prompt the next step computes, at most `most`."""
        return min(most, running.tokens - first)

    def computed(self, running: Running, first: int, count: int, now: float) -> None:
        """A piece of the prompt was computed."""
        self.now = now
        if first + count == running.tokens:
            self.keep(running, running.tokens)
            self.copied += 1

    def finish(self, running: Running, now: float) -> None:
        """The answer is complete. The slot of the request goes to the cache."""
        self.now = now
        self.running -= 1
        self.keep(running, running.end)
        self.leave(running)

    # What policies change.

    def matched(self, running: Running, match: Match) -> None:
        self.tree.touch(running.node)
        if running.node.parent:
            self.order.move_to_end(running.node)

    def kept(self, node: Node, is_new: bool) -> None:
        self.order[node] = None
        self.order.move_to_end(node)

    def gone(self, node: Node) -> None:
        del self.order[node]
        self.evicted += 1

    def state_to_drop(self) -> Node | None:
        for node in self.order:
            if node.pins == 0 and (node.children or node.locks == 0):
                return node
        return None

    def leaf_to_drop(self) -> Node | None:
        """The least recently used leaf that no request uses. The heap has entries of nodes that
        are gone, have children again, or were used since."""
        held, found = [], None
        while self.leaves:
            used, _, node = heapq.heappop(self.leaves)
            if not node.state or node.children:
                continue
            if node.locks:
                held.append(node)
            elif node.used != used:
                self.is_leaf(node)
            else:
                found = node
                break
        for node in held:
            self.is_leaf(node)
        return found

    # Memory.

    def keep(self, running: Running, end: int) -> Node | None:
        """Keeps a state behind `end` tokens, and has the request use the tokens of the tree up to
        there. None if no slot is free."""
        if not self.free_slots(1):
            return None
        node, is_new = self.tree.insert(running.path, end)
        if node is not running.node and node.end > running.node.end:
            # Its own copies of these tokens are in the tree now, or were there before.
            now_shared = min(running.reserved, node.end - running.node.end)
            running.reserved -= now_shared
            self.reserved -= now_shared
            self.tree.lock(node)
            self.tree.unlock(running.node)
            running.node = node
        if is_new and self.states_on_clock:
            self.tree.clock += self.memory.state_bytes
        self.tree.touch(node)
        self.kept(node, is_new)
        self.is_leaf(node)
        return node

    def leave(self, running: Running) -> None:
        self.tree.unlock(running.node)
        self.tree.trim(running.node)
        self.is_leaf(running.node)
        self.reserved -= running.reserved

    def is_leaf(self, node: Node) -> None:
        if node.children == 0 and node.parent:
            heapq.heappush(self.leaves, (node.used, id(node), node))

    def free_slots(self, count: int) -> bool:
        limit = self.memory.slots - self.running * self.slots_per_request - count
        while self.tree.states > limit:
            node = self.state_to_drop()
            if node is None:
                return False
            self.drop(node)
        return True

    def free_tokens(self, count: int) -> bool:
        while self.tree.tokens + self.reserved + count > self.memory.kv_tokens:
            node = self.leaf_to_drop()
            if node is None:
                return False
            self.drop(node)
        return True

    def drop(self, node: Node) -> None:
        above = node.parent
        self.tree.drop(node)
        self.left(above)

    def left(self, above: Node) -> None:
        """What was below this node went."""
        while above.parent and not above.state:
            above = above.parent
        self.is_leaf(above)


class SglangPlain(Policy):
    """sglang's rules with one slot for a request: a state at the end of each piece of a prompt,
    which is copied, and the slot of the request at its end. A use renews all states of the path,
    those nearer to the root first."""

    name = "sglang, no buffer"
    copies_at_hit = 1

    def computed(self, running: Running, first: int, count: int, now: float) -> None:
        self.now = now
        if self.keep(running, first + count):
            self.copied += 1

    def matched(self, running: Running, match: Match) -> None:
        self.tree.touch(running.node)
        self._renew(running.node)

    def kept(self, node: Node, is_new: bool) -> None:
        if is_new:
            self.order[node] = None
        self._renew(node)

    def _renew(self, node: Node) -> None:
        path = []
        while node.parent:
            if node.state:
                path.append(node)
            node = node.parent
        for each in reversed(path):
            self.order.move_to_end(each)


class Sglang(Policy):
    """sglang's rules with a buffer for tracked states, its default: of each piece of a prompt one
    state, at the last multiple of 64 tokens, or, if an earlier request went on in another way
    inside the piece, there instead; of an answer the last state at a multiple of 256 tokens. Only
    the state that is used is renewed."""

    name = "sglang, extra buffer"
    slots_per_request = 3
    copies_at_hit = 1
    interval = 256

    def matched(self, running: Running, match: Match) -> None:
        super().matched(running, match)
        branch = match.seen // CHUNK * CHUNK
        running.branches = [branch] if branch > running.hit else []

    def computed(self, running: Running, first: int, count: int, now: float) -> None:
        self.now = now
        if count < CHUNK:
            return
        end = first + count // CHUNK * CHUNK
        for branch in running.branches:
            if first < branch < first + count and (branch - first) % CHUNK == 0:
                end = branch
        if self.keep(running, end):
            self.copied += 1

    def finish(self, running: Running, now: float) -> None:
        self.now = now
        self.running -= 1
        end = running.end // self.interval * self.interval
        if end > running.tokens:
            self.copied += end // self.interval - running.tokens // self.interval
            self.keep(running, end)
        self.leave(running)

    def kept(self, node: Node, is_new: bool) -> None:
        self.order[node] = None
        self.order.move_to_end(node)


class Everything(Policy):
    """A bound: a state behind each token that was ever computed, in memory without end, for
    nothing. Only requests of one step cannot use each other's."""

    name = "everything kept"
    passes = 0

    def __init__(self, trace: Trace, memory: Memory):
        super().__init__(trace, memory)
        self.seen: dict[int, int] = {}  # by segment, the tokens up to which it was computed

    def begin(self, number: int, now: float) -> Running | None:
        trace = self.trace
        path, hit = trace.path(trace.answer[number]), 0
        for segment in path:
            hit = self.seen.get(segment, hit)
            if hit < trace.depth[segment]:
                break
        tokens = trace.depth[trace.prompt[number]]
        end = trace.depth[trace.answer[number]] - 1
        return Running(number, path, tokens, end, min(hit, tokens - 1), 0, self.tree.root)

    def computed(self, running: Running, first: int, count: int, now: float) -> None:
        self._see(running, first + count)

    def finish(self, running: Running, now: float) -> None:
        self._see(running, running.end)

    def _see(self, running: Running, end: int) -> None:
        for segment in running.path:
            there = min(end, self.trace.depth[segment])
            self.seen[segment] = max(self.seen.get(segment, 0), there)
            if there == end:
                break
