# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.StateCache: what its calls take and give, and what they refuse. What a cache promises is
tested in test/Unit/runtime/pool, and with kernels in the guide."""

import gc

import numpy as np
import pytest

from gdn import (
    GdnError,
    HostTier,
    Runtime,
    StateCache,
    StateCachePolicy,
    StatePool,
    StatePoolShape,
    _state_cache_abi,
)
from gdn.state_cache import Match

pytestmark = pytest.mark.once(compiler="cpu")


@pytest.fixture(scope="module")
def device():
    return Runtime().device()


def make(device, slots=8, track=0, foreign=False, **options) -> StateCache:
    shape = StatePoolShape(
        num_layers=1,
        num_requests=slots,
        num_track=track,
        num_key_heads=1,
        num_value_heads=1,
        key_dim=4,
        value_dim=4,
    )
    pool = StatePool(device, shape, debug_checks=True, foreign_requests=foreign)
    return StateCache(pool, **({"max_nodes": 100, "max_tokens": 10_000} | options))


def slot(cache: StateCache) -> int:
    return cache.take_slots(1)[0]


def test_a_request_and_the_next_one(device):
    cache = make(device)
    tokens = np.arange(10, dtype=np.int32)
    done = cache.insert(tokens, range(100, 110), slot=slot(cache), num_accepted=3)
    assert (done.known_tokens, done.slot_taken, done.is_full) == (0, True, False)
    assert done.free_pages.dtype == np.int64 and done.free_pages.size == 0
    match = cache.match([*range(10), 77])
    assert (match.tokens, match.slot, match.num_accepted, match.node) == (10, 1, 3, done.node)
    assert cache.match(tokens[:4]) == Match(0, 0, 0, 0, 4, done.node, False)
    assert cache.pages(match.node, 10).tolist() == list(range(100, 110))
    lock = cache.lock(match.node)
    assert repr(lock) == f"Lock(node={done.node}, slot=1, num_accepted=3)"
    with pytest.raises(GdnError, match="write_slots: expected slots of sequences, got 1 at 1"):
        cache.check_writes([2, 1])
    assert cache.evict_checkpoints(1) == 0 and cache.evict_pages(5).size == 0
    cache.unlock_slot(lock)
    assert lock.slot == 0 and lock.node == done.node
    cache.unlock(lock)
    assert lock.node == 0
    again = cache.insert(tokens.astype(np.int64), range(200, 210), slot=slot(cache))
    assert not again.slot_taken and again.free_pages.tolist() == list(range(200, 210))
    cache.audit()


@pytest.mark.parametrize(
    "tokens",
    [
        [1, 2, 3],
        (1, 2, 3),
        np.array([1, 2, 3], np.int32),
        np.array([1, 2, 3]),
        np.array([1, 2, 3], np.uint16),
        np.array([1, 9, 2, 9, 3, 9], np.int32)[::2],
        np.array([1, 9, 2, 9, 3, 9])[::2],
    ],
    ids=["list", "tuple", "int32", "int64", "uint16", "strided int32", "strided int64"],
)
def test_tokens_of_all_kinds(device, tokens):
    cache = make(device)
    cache.insert(tokens, [5, 6, 7], slot=slot(cache))
    assert cache.match([1, 2, 3, 4]).tokens == 3
    assert cache.match(tokens).tokens == 3


def test_tokens_that_are_refused(device):
    cache = make(device)
    with pytest.raises(TypeError, match="tokens: expected integers, got float64"):
        cache.match([1.5])
    with pytest.raises(ValueError, match="tokens: expected one dimension, got 2"):
        cache.match([[1]])
    with pytest.raises(GdnError, match="tokens: expected ids of 32 bits, got 4294967296 at 0"):
        cache.insert([2**32], [1])
    assert cache.match([2**32]).known_tokens == 0
    assert cache.match([]).known_tokens == 0
    with pytest.raises(ValueError, match=f"tokens: expected int64, got {2**64 - 1}"):
        cache.match([2**64 - 1])  # would be -1
    with pytest.raises(TypeError, match="pages: expected integers, got float64"):
        cache.insert([1], [1.5])
    assert cache.describe().num_tokens == 0


def test_namespaces(device):
    cache = make(device, slots=20)
    names = [None, 7, b"a", "b", (7, b"a"), (8, "a"), "a" * 240]
    for name in names:
        assert cache.match([1, 2], name).known_tokens == 0
        cache.insert([1, 2], [3, 4], slot=slot(cache), namespace=name)
    slots = [cache.match([1, 2], name).slot for name in names]
    assert len(set(slots)) == len(names)
    assert cache.match([1, 2], "a").slot == cache.match([1, 2], b"a").slot
    with pytest.raises(GdnError, match="salt_bytes: expected 0 to 240, got 241"):
        cache.match([1], "a" * 241)
    with pytest.raises(ValueError, match="namespace: expected an adapter of 64 bits, got -1"):
        cache.match([1], -1)
    assert cache.match([1, 2], np.int64(7)).slot == cache.match([1, 2], (7, "")).slot == slots[1]


@pytest.mark.parametrize("name", [("a", 7), (7, 8), (7,), (7, "a", "b"), 7.0, [7], ("a", "b")])
def test_no_namespace(device, name):
    """A part that is dropped would make two tenants share what they keep."""
    cache = make(device, slots=3)
    cache.insert([1, 2], [3, 4], slot=slot(cache), namespace=7)
    with pytest.raises(TypeError, match="namespace: expected None, an adapter, a salt, or a tuple"):
        cache.match([1, 2], name)


def test_more_than_there_is(device):
    """Room for pages is that of those in the cache, whatever is asked for."""
    cache = make(device, slots=3)
    cache.insert([1, 2], [3, 4], evict_at_most=2**50)
    assert cache.evict_pages(2**50).tolist() == [3, 4]
    for call in (cache.evict_pages, lambda n: cache.insert([1], [2], evict_at_most=n)):
        with pytest.raises(
            TypeError, match=r"(count|evict_at_most): expected an integer, got 1\.5"
        ):
            call(1.5)


def test_eviction_says_what_it_evicts(device):
    gone = []
    cache = make(device, slots=3, evicted=lambda *about: gone.append(about))
    nodes = [cache.insert([i, i], [2 * i, 2 * i + 1], slot=slot(cache)).node for i in range(3)]
    cache.set_priority(nodes[0], 1)
    assert cache.node(nodes[0]).priority == 1
    assert cache.take_slots(1) == [2]
    assert gone == [(nodes[1], 2, 2)]
    # The pages behind which there is no checkpoint any more go first, then the lower priority.
    assert cache.evict_pages(2).tolist() == [2, 3]
    assert cache.evict_pages(1).tolist() == [5]
    assert gone[1:] == [(nodes[2], 2, 3)]
    cache.drop(nodes[0])
    assert gone[2:] == [(nodes[0], 2, 1)]
    with pytest.raises(GdnError, match=r"got node .* without one"):
        cache.drop(nodes[0])
    cache.audit()
    assert cache.describe().num_checkpoints == 0


def test_cycles_are_collected(device):
    """The collector ends pool and cache in any order."""

    class Engine:
        def __init__(self):
            self.gone = []
            self.cache = make(device, slots=4, evicted=self.evicted)
            self.pool = self.cache.pool
            self.pool.engine = self.cache.engine = self

        def evicted(self, *about):
            self.gone.append(about)

    for _ in range(20):
        engine = Engine()
        for i in range(6):
            engine.cache.insert([i], [i], slot=slot(engine.cache))
        assert len(engine.gone) == 2
        del engine
        assert gc.collect() > 0


def test_room(device):
    cache = make(device, max_tokens=10)
    cache.insert(range(8), range(8), slot=slot(cache))
    done = cache.insert(range(20, 26), range(20, 26))
    assert done.num_evicted_pages == 8 and done.num_evicted_checkpoints == 1
    assert sorted(done.free_pages) == list(range(8))
    assert cache.take_slots(9) is None
    cut = cache.insert(range(30, 38), range(30, 38), evict_at_most=1)
    assert not cut.is_full
    with pytest.raises(GdnError, match="num_pages: expected 2 for 2 tokens, got 0"):
        cache.insert([1, 2])


def test_without_pages(device):
    cache = make(device, has_pages=False, slots=2)
    cache.insert([1, 2, 3], slot=slot(cache))
    cache.insert([1, 2, 3, 4], slot=slot(cache))
    assert cache.match([1, 2, 3, 4, 5]).tokens == 4
    assert cache.evict_pages(1).size == 0
    assert cache.match([1, 2, 3, 4, 5]).tokens == 3
    assert cache.take_slots(2) is not None
    assert cache.describe().num_nodes == 0
    with pytest.raises(GdnError, match="expected a cache with pages, got one without"):
        cache.pages(1, 1)


def test_track_slots(device):
    cache = make(device, slots=2, track=2, foreign=True, slot_kind="track", page_tokens=4)
    assert cache.take_slots(2) == [3, 4]
    cache.insert(range(8), [0, 1], slot=3)
    with pytest.raises(GdnError, match="slot: expected a track slot, got 1"):
        cache.insert(range(8), [0, 1], slot=1)
    with pytest.raises(ValueError, match="slot_kind: expected one of request, track, got both"):
        make(device, slot_kind="both")
    with pytest.raises(GdnError, match="slot_kind: expected track slots"):
        make(device, foreign=True)


def test_the_policy(device):
    cache = make(device)
    prompt = np.arange(1000)
    assert cache.checkpoints_to_take(prompt, 0, 1000) == [960]
    assert cache.checkpoints_to_take(prompt, 0, 500) == []
    policy = StateCachePolicy(block_tokens=256, max_checkpoints=8)
    assert cache.checkpoints_to_take(prompt, 0, 1000, policy=policy) == [256, 512, 768, 960]
    taken = cache.checkpoints_to_take(prompt, 0, 1000, policy=policy, taken=7)
    assert taken == [960]
    # The recommended values are those of the library.
    known = _state_cache_abi.StateCachePolicy()
    Runtime().call("gdnrt_state_cache_policy_recommended", known)
    ours = vars(StateCachePolicy())
    assert {name: getattr(known, name) for name in ours} == ours


def test_checkpoints_on_the_host(device):
    moved, evicted = [], []
    shape = StatePoolShape(
        num_layers=1, num_requests=2, num_key_heads=1, num_value_heads=1, key_dim=4, value_dim=4
    )
    pool = StatePool(device, shape, debug_checks=True)
    tier = HostTier(pool, 2)
    states, _ = pool.get_layer_state(0)
    cache = StateCache(
        pool,
        max_nodes=100,
        max_tokens=1000,
        has_pages=False,
        host_tier=tier,
        host_bytes=2 * tier.slot_bytes,
        host_min_tokens=4,
        moved=lambda *about: moved.append(about),
        evicted=lambda *about: evicted.append(about),
    )
    nodes = []
    for value in range(3):
        mine = slot(cache)
        states[mine] = value
        nodes.append(cache.insert(np.full(5, value), slot=mine, num_accepted=value).node)
    assert moved == [(nodes[0], 5, 1, 0)] and cache.match(np.full(9, 0)).on_host
    for value in (0, 1, 2, 0):
        lock = cache.lock(cache.match(np.full(9, value)).node)
        assert cache.fetch(lock) and not lock.on_host
        assert lock.num_accepted == value and np.all(states[lock.slot] == value)
        cache.unlock(lock)
        cache.audit()
    # One copy is of what is in a slot, so nothing was lost.
    assert evicted == []
    there = cache.describe()
    assert (there.num_checkpoints, there.num_host_copies, there.num_on_host) == (2, 2, 1)
    assert there.host_bytes == 2 * tier.slot_bytes and there.num_fetched >= 3
    # Without a slot nothing comes back.
    node = next(node for node in nodes if cache.node(node).slot == 0)
    lock, others = cache.lock(node), [cache.lock(node_) for node_ in nodes if node_ != node]
    assert lock.on_host and not cache.fetch(lock) and lock.on_host
    for each in (lock, *others):
        cache.unlock(each)
    assert cache.copy_ahead(2) <= 1 and cache.evict_host(9) == 2
    assert evicted == [(node, 5, 0)] and tier.num_free == 2
    with pytest.raises(GdnError, match="count: expected 0 or more, got -1"):
        cache.evict_host(-1)
    for size in (0, -1, 2**64):
        with pytest.raises(ValueError, match=f"host_bytes: expected .*, got {size}"):
            make(device, host_tier=tier, host_bytes=size)
    with pytest.raises(GdnError, match="copy_ahead: expected a cache with a host tier"):
        make(device).copy_ahead(1)
    with pytest.raises(GdnError, match="host_tier: expected one of the cache's pool"):
        make(device, host_tier=tier)
    # Without a tier there is nothing to limit.
    make(device, host_bytes=0)
