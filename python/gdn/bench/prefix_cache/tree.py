# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A radix tree over the segments of a trace: which tokens have keys and values in the cache, and at
which positions a state is kept.

It does what a radix tree over token ids does, since requests of a trace share whole segments; an
edge also ends where a segment does. A node may have a state. A leaf always has one: keys and
values behind the last state are of no use. A match is the deepest node with a state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .traces import Trace


class Node:
    """The tokens (first, end] of a path, all of one segment."""

    __slots__ = (
        "children",
        "end",
        "first",
        "locks",
        "parent",
        "pins",
        "segment",
        "stamp",
        "state",
        "used",
    )

    def __init__(self, segment: int, first: int, end: int, parent: Node | None):
        self.segment, self.first, self.end, self.parent = segment, first, end, parent
        self.children = 0
        self.state = False
        self.locks = 0  # of requests whose keys and values these are
        self.pins = 0  # of requests that hold the state
        self.used = 0  # when last, by the tree's count of uses
        self.stamp = 0.0  # when last, by the bytes that came to the GPU


@dataclass
class Match:
    node: Node  # the deepest with a state, or the root
    seen: int  # tokens whose keys and values are there


class Tree:
    """`on_gone` is called with each node whose state is no longer kept."""

    def __init__(self, trace: Trace, on_gone: Callable[[Node], None] = lambda node: None):
        self.trace = trace
        self.on_gone = on_gone
        self.root = Node(0, 0, 0, None)
        self.root.state, self.root.locks, self.root.pins = True, 1, 1
        self.nodes: dict[int, list[Node]] = {}  # by segment, in the order of their ends
        self.tokens = 0
        self.states = 0  # without the root's, which is zero
        self.uses = 0
        self.clock = 0.0  # bytes that came to the GPU

    def match(self, path: list[int], limit: int) -> Match:
        """The longest prefix of at most `limit` tokens of a path."""
        best, seen = self.root, 0
        for segment in path:
            for node in self.nodes.get(segment, ()):
                if node.end > limit:
                    return Match(best, max(seen, limit if node.first < limit else seen))
                seen = node.end
                if node.state:
                    best = node
            if seen < self.trace.depth[segment]:
                break
        return Match(best, seen)

    def insert(self, path: list[int], end: int) -> tuple[Node, bool]:
        """Keeps a state behind `end` tokens of a path. Returns its node, and whether it is new;
        a node that had a state keeps the one it had."""
        node = self.root
        depth = self.trace.depth
        for segment in path:
            stop = min(end, depth[segment])
            if stop <= node.end:
                break
            there = self.nodes.setdefault(segment, [])
            for at, each in enumerate(there):
                if each.first >= stop:
                    break
                if each.end > stop:
                    node = self._split(there, at, stop)
                    break
                node = each
            if node.end < stop:
                node = self._add(there, segment, node, stop)
        if node.end != end:
            raise ValueError(f"insert: expected at most {node.end} tokens, got {end}")
        if node.state:
            return node, False
        node.state = True
        self.states += 1
        return node, True

    def touch(self, node: Node) -> None:
        """Marks the tokens up to a node as used now."""
        clock = self.clock
        while node.parent is not None:
            self.uses += 1
            node.used, node.stamp = self.uses, clock
            node = node.parent

    def bytes_on_host(self, node: Node, on_gpu: float, state: int, token: int) -> int:
        """What of a node's state and of its tokens' keys and values is on the host, if the GPU has
        the last `on_gpu` bytes that came to it; `state` and `token` are the bytes of each."""
        oldest = self.clock - on_gpu
        count = state if node.parent and node.stamp < oldest else 0
        while node.parent is not None:
            if node.stamp < oldest:
                count += token * (node.end - node.first)
            node = node.parent
        return count

    def drop(self, node: Node) -> None:
        """Gives the state of a node up, and the tokens that are of no use without it."""
        if not node.state or node.pins or node.parent is None:
            raise ValueError("drop: expected a state that no request holds")
        if node.children == 0 and node.locks:
            raise ValueError("drop: expected a leaf whose tokens no request uses")
        node.state = False
        self.states -= 1
        self.on_gone(node)
        self.trim(node)

    def trim(self, node: Node) -> None:
        """Removes tokens behind the last state of this path, as far as no request uses them."""
        while not node.state and node.children == 0 and node.locks == 0 and node.parent:
            there = self.nodes[node.segment]
            there.remove(node)
            if not there:
                del self.nodes[node.segment]
            self.tokens -= node.end - node.first
            node.parent.children -= 1
            node = node.parent

    def tail(self, node: Node) -> int:
        """The tokens that dropping a leaf would free."""
        count = node.end - node.first
        above = node.parent
        while above.parent and not above.state and above.children == 1 and above.locks == 0:
            count += above.end - above.first
            above = above.parent
        return count

    def lock(self, node: Node) -> None:
        """Holds the state of a node, and the tokens up to it."""
        node.pins += 1
        while node.parent is not None:
            node.locks += 1
            node = node.parent

    def unlock(self, node: Node) -> None:
        node.pins -= 1
        while node.parent is not None:
            node.locks -= 1
            node = node.parent

    def above(self, node: Node) -> Node:
        """The nearest node above one that has a state."""
        node = node.parent
        while not node.state:
            node = node.parent
        return node

    def close(self) -> None:
        """Ends the tree. Nothing may be called afterwards."""

    def _add(self, there: list[Node], segment: int, parent: Node, end: int) -> Node:
        node = Node(segment, parent.end, end, parent)
        parent.children += 1
        there.append(node)
        self.tokens += end - parent.end
        self.uses += 1
        node.used, node.stamp = self.uses, self.clock
        return node

    def _split(self, there: list[Node], at: int, end: int) -> Node:
        below = there[at]
        node = Node(below.segment, below.first, end, below.parent)
        node.children, node.locks = 1, below.locks
        node.used, node.stamp = below.used, below.stamp
        below.first, below.parent = end, node
        there.insert(at, node)
        return node
