# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A prefix cache for models with states: which prompts begin alike, with which pages, and where a
state was kept.

    cache = StateCache(pool, max_nodes=10_000, max_tokens=1_000_000)
    match = cache.match(prompt[:-1])
    lock = cache.lock(match.node)              # lock.slot is read, and never written
    cache.insert(tokens, pages, slot=slot)     # the cache owns the slot if .slot_taken
    cache.unlock(lock)

include/gdn-c/state_cache.h says what each function promises, and docs/guides/prefix-cache.md how an
engine uses them.
"""

import ctypes as c
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from . import _state_cache_abi as abi
from .call_options import integer, refuse_meta
from .host_tier import HostTier
from .runtime import _Handle, _stream
from .state_pool import StatePool, _ids, room_for

_KINDS = ("request", "track")
_MAX_CHECKPOINTS = 64

#: An adapter, a salt, or both; None is neither.
Namespace = int | bytes | str | tuple[int, bytes | str] | None


@dataclass(frozen=True)
class Match:
    """The longest prefix that ends at a checkpoint: tokens, node, slot and num_accepted, all 0 if
    there is none; and the longest prefix that the cache has at all."""

    tokens: int
    node: int
    slot: int
    num_accepted: int
    known_tokens: int
    known_node: int
    #: The checkpoint has no slot: StateCache.fetch brings it back from the host.
    on_host: bool = False


@dataclass(frozen=True)
class Inserted:
    """What an insertion did. `free_pages` are pages that the caller may use for something else:
    first `num_evicted_pages` that made room, then duplicates of the caller's. The caller still owns
    the slot unless `slot_taken`. If `is_full`, nothing was inserted."""

    node: int
    known_tokens: int
    slot_taken: bool
    is_full: bool
    free_pages: np.ndarray
    num_evicted_pages: int
    num_evicted_checkpoints: int


@dataclass(frozen=True)
class StateCachePolicy:
    """Where prefill writes checkpoints; see gdnrt_state_cache_policy. The values here are the
    recommended ones."""

    max_checkpoints: int = 4
    reserve_slots: int = 0
    min_gap: int = 64
    block_tokens: int = 0
    at_end: bool = True
    at_branches: bool = True


class Lock:
    """What a sequence holds: give it back with StateCache.unlock."""

    def __init__(self):
        self._lock = abi.CacheLock()

    def __repr__(self) -> str:
        return f"Lock(node={self.node}, slot={self.slot}, num_accepted={self.num_accepted})"

    @property
    def node(self) -> int:
        """0: nothing."""
        return self._lock.node

    @property
    def slot(self) -> int:
        """The checkpoint, to be read; 0: none."""
        return self._lock.slot

    @property
    def num_accepted(self) -> int:
        """What the checkpoint was inserted with."""
        return self._lock.num_accepted

    @property
    def on_host(self) -> bool:
        """It holds a checkpoint on the host, and `slot` is 0."""
        return bool(self._lock.on_host)


class StateCache(_Handle):
    """A cache of slots of `pool`. `evicted(node, tokens, slot)` is called for each checkpoint that
    is evicted, and must not call the cache. Used by one thread at a time.

    With `host_tier`, a HostTier of the pool, checkpoints that lose their slots go to the host if
    `host_min_tokens` or more tokens would be computed again without them, `host_bytes` bytes of
    them at most (None: all of the tier). `moved(node, tokens, slot, host_slot)` is called for each,
    and `evicted` has slot 0 for one that was on the host."""

    def __init__(
        self,
        pool: StatePool,
        *,
        max_nodes: int,
        max_tokens: int,
        page_tokens: int = 1,
        has_pages: bool = True,
        slot_kind: str = "request",
        stream: object = None,
        evicted: Callable[[int, int, int], None] | None = None,
        host_tier: HostTier | None = None,
        host_bytes: int | None = None,
        host_min_tokens: int = 64,
        moved: Callable[[int, int, int, int], None] | None = None,
    ):
        if slot_kind not in _KINDS:
            raise ValueError(f"slot_kind: expected one of {', '.join(_KINDS)}, got {slot_kind}")
        if host_tier is not None and host_bytes is not None and host_bytes < 1:
            raise ValueError(f"host_bytes: expected 1 or more, or None, got {host_bytes}")
        self.pool, self.page_tokens, self.has_pages = pool, page_tokens, has_pages
        on_host: dict[str, object] = {}
        if host_tier is not None:
            on_host = {"host_tier": host_tier._handle, "host_bytes": host_bytes or 0}
            on_host["host_min_tokens"] = host_min_tokens
        options = abi.StateCacheOptions(
            page_tokens=page_tokens,
            max_nodes=max_nodes,
            max_tokens=max_tokens,
            has_pages=int(has_pages),
            slot_kind=_KINDS.index(slot_kind),
            stream=_stream(stream),
            **on_host,
        )
        if evicted is not None:
            options.evicted = abi.EvictedFunction(lambda _, *about: evicted(*about))
        if moved is not None:
            options.moved = abi.MovedFunction(lambda _, *about: moved(*about))
        self.host_tier, self._stream = host_tier, stream
        self._keep = options
        runtime = pool._runtime
        handle = runtime.create("gdnrt_state_cache_create", pool._handle, c.byref(options))
        super().__init__(runtime, handle, "gdnrt_state_cache_destroy")

    # Looking up.

    def match(self, tokens: object, namespace: Namespace = None) -> Match:
        """The longest prefixes of `tokens`, an array of int32 or int64 or a sequence of ints. A
        request that has to compute a token for its logits passes all but its last token."""
        given, found = _tokens(tokens, namespace), abi.CacheMatch()
        self._call("gdnrt_state_cache_match", c.byref(given), c.byref(found))
        return Match(
            found.tokens,
            found.node,
            found.slot,
            found.num_accepted,
            found.known_tokens,
            found.known_node,
            bool(found.on_host),
        )

    def pages(self, node: int, num_tokens: int) -> np.ndarray:
        """The pages of the first `num_tokens` tokens that end in `node`, int64."""
        pages = np.empty(max(num_tokens, 0) // self.page_tokens, np.int64)
        self._call("gdnrt_state_cache_pages", node, num_tokens, pages.ctypes.data, pages.size)
        return pages

    def checkpoints_to_take(
        self,
        tokens: object,
        done: int,
        count: int,
        *,
        policy: StateCachePolicy | None = None,
        taken: int = 0,
        namespace: Namespace = None,
    ) -> list[int]:
        """After how many tokens of the prompt `tokens` a prefill of `count` tokens behind the first
        `done` should write checkpoints. Earlier calls of this request took `taken`."""
        policy = policy or StateCachePolicy()
        given = _tokens(tokens, namespace)
        values = {name: integer(name, value) for name, value in vars(policy).items()}
        positions, found = np.empty(_MAX_CHECKPOINTS, np.int64), c.c_size_t()
        self._call(
            "gdnrt_state_cache_checkpoints_to_take",
            c.byref(given),
            c.byref(abi.StateCachePolicy(**values)),
            c.byref(abi.CachePiece(done=done, count=count, taken=taken)),
            positions.ctypes.data,
            positions.size,
            c.byref(found),
        )
        return positions[: found.value].tolist()

    # Locks.

    def lock(self, node: int) -> Lock:
        """Locks the pages up to a node, and its checkpoint. Node 0 gives a lock of nothing."""
        lock = Lock()
        self._call("gdnrt_state_cache_lock", node, c.byref(lock._lock))
        return lock

    def fetch(self, lock: Lock, *, wait: bool = True) -> bool:
        """Brings the checkpoint of a lock back from the host into `lock.slot`. False, and nothing
        was done, if no slot is free and none can be. The cache's stream waits for the copy; without
        `wait` the caller makes the stream that reads the slot wait, by `host_tier.wait`."""
        fetched = c.c_int32()
        self._call("gdnrt_state_cache_fetch", c.byref(lock._lock), c.byref(fetched))
        if fetched.value and wait and lock.slot and self.host_tier is not None:
            self.host_tier.wait([lock.slot], self._stream)
        return bool(fetched.value)

    def unlock_slot(self, lock: Lock) -> None:
        """Gives up the checkpoint of a lock, and keeps its pages."""
        self._call("gdnrt_state_cache_unlock_slot", c.byref(lock._lock))

    def unlock(self, lock: Lock) -> None:
        """Gives up all of a lock."""
        self._call("gdnrt_state_cache_unlock", c.byref(lock._lock))

    # Insertion and eviction.

    def insert(
        self,
        tokens: object,
        pages: object = None,
        *,
        slot: int = 0,
        num_accepted: int = 0,
        namespace: Namespace = None,
        evict_at_most: int | None = None,
    ) -> Inserted:
        """Inserts tokens with the pages of all whole pages, and the slot with the state after all
        tokens, if there is one. To make room, `evict_at_most` pages are evicted; without it as many
        as there are."""
        given = _tokens(tokens, namespace)
        ids = np.ascontiguousarray(_integers("pages", [] if pages is None else pages))
        there = self.describe().num_tokens // self.page_tokens
        evict_at_most = there if evict_at_most is None else integer("evict_at_most", evict_at_most)
        if evict_at_most < 0:
            raise ValueError(f"evict_at_most: expected 0 or more pages, got {evict_at_most}")
        evict_at_most = min(evict_at_most, there)
        free = np.empty(ids.size + evict_at_most * self.has_pages, np.int64)
        entry = abi.CacheEntry(
            pages=ids.ctypes.data if ids.size else None,
            num_pages=ids.size,
            slot=slot,
            num_accepted=num_accepted,
        )
        done = abi.CacheInserted()
        self._call(
            "gdnrt_state_cache_insert",
            c.byref(given),
            c.byref(entry),
            free.ctypes.data,
            free.size,
            c.byref(done),
        )
        return Inserted(
            done.node,
            done.known_tokens,
            bool(done.slot_taken),
            bool(done.is_full),
            free[: done.num_free_pages].copy(),
            done.num_evicted_pages,
            done.num_evicted_checkpoints,
        )

    def evict_pages(self, count: int) -> np.ndarray:
        """Evicts `count` pages, or as many as are not locked; returns their ids. Without pages it
        counts what would be pages, evicts whole prefixes, and returns none."""
        there = -(-self.describe().num_tokens // self.page_tokens)
        count = min(integer("count", count), there)
        pages, found = np.empty(max(count, 0), np.int64), c.c_size_t()
        self._call(
            "gdnrt_state_cache_evict_pages",
            count,
            pages.ctypes.data,
            pages.size,
            c.byref(found),
        )
        return pages[: found.value] if self.has_pages else pages[:0]

    def evict_checkpoints(self, count: int) -> int:
        """Evicts `count` checkpoints from their slots, or as many as are not locked; returns how
        many. Those that pay go to the host tier, if there is one."""
        return self._count("gdnrt_state_cache_evict_checkpoints", count)

    def copy_ahead(self, count: int) -> int:
        """Copies those of the next `count` checkpoints in the order of eviction to the host that
        pay and have no copy; returns how many."""
        return self._count("gdnrt_state_cache_copy_ahead", count)

    def evict_host(self, count: int) -> int:
        """Evicts `count` copies on the host, or as many as are not locked; returns how many."""
        return self._count("gdnrt_state_cache_evict_host", count)

    def _count(self, name: str, count: int) -> int:
        found = c.c_int64()
        self._call(name, count, c.byref(found))
        return found.value

    def drop(self, node: int) -> None:
        """Evicts the checkpoint of a node, also from the host."""
        self._call("gdnrt_state_cache_drop", node)

    def set_priority(self, node: int, priority: float) -> None:
        """Checkpoints of the lowest priority are evicted first; it is 0 at first."""
        self._call("gdnrt_state_cache_set_priority", node, priority)

    def take_slots(self, count: int, zero: bool = False) -> list[int] | None:
        """Takes slots of the pool for the caller, and evicts checkpoints if too few are free. None
        if that is not enough."""
        slots, taken = room_for(count), c.c_int32()
        if slots is None:
            return None
        self._call("gdnrt_state_cache_take_slots", count, int(zero), slots, c.byref(taken))
        return list(slots) if taken.value else None

    # What there is.

    def node(self, node: int) -> abi.CacheNodeInfo:
        """Tokens, tokens_above (of the closest checkpoint ahead), slot, num_accepted, priority,
        num_children, num_locks, num_slot_locks and host_slot (-1: none) of a node."""
        info = abi.CacheNodeInfo()
        self._call("gdnrt_state_cache_node", node, c.byref(info))
        return info

    def describe(self) -> abi.StateCacheInfo:
        """num_nodes, num_tokens, locked_tokens, num_checkpoints, locked_checkpoints, max_nodes,
        max_tokens, bytes, num_host_copies, num_on_host, host_bytes, num_stored and num_fetched."""
        info = abi.StateCacheInfo()
        self._call("gdnrt_state_cache_describe", c.byref(info))
        return info

    def check_writes(self, write_slots: Sequence[int]) -> None:
        """For debugging: GdnError if one of the slots is the cache's."""
        ids = _ids(write_slots)
        self._call("gdnrt_state_cache_check_writes", ids, len(ids))

    def audit(self) -> None:
        """For debugging: GdnError if the cache contradicts itself."""
        self._call("gdnrt_state_cache_audit")

    def _call(self, name: str, *arguments) -> None:
        self._runtime.call(name, self._handle, *arguments)


def _integers(name: str, values: object) -> np.ndarray:
    """An array of int64. What does not fit is an error: it would name another token or page."""
    refuse_meta(name, values)
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected integers, got {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name}: expected int64, got {array.max()}")
    return array.astype(np.int64, copy=False)


def _tokens(tokens: object, namespace: Namespace) -> abi.CacheTokens:
    """Tokens as the C ABI takes them; arrays of int32 and int64 are not copied."""
    if not isinstance(tokens, np.ndarray) or tokens.dtype not in (np.int32, np.int64):
        tokens = _integers("tokens", tokens)
    if tokens.ndim != 1:
        raise ValueError(f"tokens: expected one dimension, got {tokens.ndim}")
    tokens = np.ascontiguousarray(tokens)
    adapter, salt = _namespace(namespace)
    given = abi.CacheTokens(
        tokens=tokens.ctypes.data,
        count=tokens.size,
        token_bytes=tokens.itemsize,
        adapter=adapter,
        salt=salt,
        salt_bytes=len(salt),
    )
    given._keep = tokens
    return given


def _namespace(namespace: Namespace) -> tuple[int, bytes]:
    if namespace is None:
        return 0, b""
    adapter, salt = 0, namespace
    if isinstance(namespace, tuple) and len(namespace) == 2:
        adapter, salt = namespace
    elif not isinstance(namespace, bytes | str):
        adapter, salt = namespace, b""
    salt = salt.encode() if isinstance(salt, str) else b"" if salt is None else salt
    if not hasattr(adapter, "__index__") or not isinstance(salt, bytes):
        # What is left out here would be shared with others.
        raise TypeError(
            "namespace: expected None, an adapter, a salt, or a tuple of an adapter and a salt, got"
            f" {namespace!r}"
        )
    adapter = operator.index(adapter)
    if not 0 <= adapter < 2**64:
        raise ValueError(f"namespace: expected an adapter of 64 bits, got {adapter}")
    return adapter, salt
