# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host tiers from Python: states of the host and in files, errors of both sides, and the
stand-in of the driver."""

import io
import weakref
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from gdn import GdnError, HostTier, Runtime, StatePool, StatePoolShape, StateTags

SIZES = {"num_layers": 2, "num_requests": 3, "key_dim": 32, "value_dim": 4}


def shape(key_heads: int = 2, value_heads: int = 4, **others) -> StatePoolShape:
    return StatePoolShape(num_key_heads=key_heads, num_value_heads=value_heads, **SIZES | others)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture
def pool(runtime):
    return StatePool(runtime.device(), shape())


def fill(pool: StatePool, slot: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for layer in range(pool.shape.num_layers):
        for array in pool.get_layer_state(layer):
            array[slot] = rng.standard_normal(array.shape[1:])


def states(pool: StatePool, slot: int) -> list[np.ndarray]:
    return [
        array[slot].astype(np.float32)
        for layer in range(pool.shape.num_layers)
        for array in pool.get_layer_state(layer)
    ]


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_preemption(pool):
    tier = HostTier(pool, 2)
    slots = pool.allocate(3)
    for slot in slots:
        fill(pool, slot, slot)
    before = {slot: states(pool, slot) for slot in slots}
    assert tier.swap_out(slots) is None
    kept = tier.swap_out(slots[:2])
    assert (tier.num_free, pool.num_free) == (0, 2)
    (other,) = pool.allocate(1)
    assert tier.swap_in(kept) is None
    assert tier.is_over(kept) == [True, True]
    pool.free([other])
    again = tier.swap_in(kept)
    assert [
        same(states(pool, slot), before[old]) for slot, old in zip(again, slots[:2], strict=True)
    ] == [True] * 2
    assert (tier.num_free, tier.num_slots) == (2, 2)


def test_store_and_load(pool):
    tier = HostTier(pool, 1)
    (slot, other) = pool.allocate(2)
    fill(pool, slot, 1)
    before = states(pool, slot)
    host = tier.allocate(1)
    assert tier.allocate(1) is None
    tier.store(slot, host)
    tier.load(host, other, wait=False)
    tier.wait(other)
    tier.synchronize(host)
    assert same(states(pool, other), before)
    tier.free(host)
    with pytest.raises(GdnError, match="host slot 0 is free"):
        tier.load(host, other)
    with pytest.raises(ValueError, match="slots: expected 2 targets, got 1"):
        tier.store([slot, other], host)


@pytest.mark.parametrize(
    "format, bytes_of_f32, most",
    [
        (None, 1, 0),
        ("bf16", 0.5, 4e-3),
        ("f16", 0.5, 5e-4),
        ("i8x2", 0.54, 3e-5),
        ("i8", 0.3, 8e-3),
    ],
)
def test_formats(pool, format, bytes_of_f32, most):
    tier = HostTier(pool, 1, format=format)
    plain = HostTier(pool, 1)
    (slot,) = pool.allocate(1)
    fill(pool, slot, 5)
    before = states(pool, slot)
    (slot,) = tier.swap_in(tier.swap_out([slot]))
    after = states(pool, slot)
    # Windows have their bits.
    assert same(before[1::2], after[1::2])
    error = np.linalg.norm(after[0] - before[0]) / np.linalg.norm(before[0])
    assert most / 4 <= error <= most
    window = 2 * 2 * 3 * (2 * 2 * 32 + 4 * 4)
    assert tier.slot_bytes - window <= bytes_of_f32 * (plain.slot_bytes - window)
    assert tier.mem_bytes >= tier.slot_bytes


def test_formats_that_there_are_not(pool, runtime):
    with pytest.raises(ValueError, match="format: expected one of None, bf16, f16, i8x2, i8, got"):
        HostTier(pool, 1, format="float16")
    narrow = StatePool(runtime.device(), shape(state_dtype="bfloat16"))
    with pytest.raises(GdnError, match="format: expected bf16, that of the pool"):
        HostTier(narrow, 1, format="i8")
    assert HostTier(narrow, 1).slot_bytes < HostTier(pool, 1).slot_bytes


def test_files(pool, tmp_path):
    tier = HostTier(pool, 2)
    (slot,) = pool.allocate(1)
    fill(pool, slot, 3)
    before = states(pool, slot)
    first, second = tier.allocate(2)
    tier.store(slot, first)
    tags = StateTags(num_tokens=640, name_space=2**64 - 1, token_hash=17)
    path = tmp_path / "state"
    tier.write(first, path, tags)
    memory = io.BytesIO()
    tier.write(first, memory, tags)
    assert memory.getvalue() == path.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["state"]
    fill(pool, slot, 4)
    for part in (path, str(path), io.BytesIO(memory.getvalue()), [path]):
        assert tier.read(second, part) == tags
        tier.load(second, slot)
        assert same(states(pool, slot), before)
    with pytest.raises(GdnError, match="token_hash: expected 18, got 17"):
        tier.read(second, path, expected=StateTags(640, 2**64 - 1, 18))
    with pytest.raises(GdnError, match="host slot 1 is empty"):
        tier.load(second, slot)
    with pytest.raises(TypeError, match="parts: expected paths alone or objects"):
        tier.read(second, [path, memory])
    path.write_bytes(memory.getvalue()[:-1])
    with pytest.raises(GdnError, match="truncated: expected 8 bytes of a hash, got 7") as caught:
        tier.read(second, path)
    assert caught.value.status == "CORRUPT"


def test_what_objects_raise_comes_through(pool):
    class Full:
        def write(self, data):
            raise OSError("disk full")

        def read(self, size):
            raise KeyError("no such part")

    tier = HostTier(pool, 1)
    kept = tier.swap_out(pool.allocate(1))
    with pytest.raises(OSError, match="disk full"):
        tier.write(kept[0], Full())
    with pytest.raises(KeyError, match="no such part"):
        tier.read(kept[0], Full())


def test_objects_that_take_and_give_parts(pool, tmp_path):
    """Files without a buffer say how many bytes they took; a list says nothing."""

    class Slow(io.RawIOBase):
        def __init__(self, most):
            self.most, self.taken = most, bytearray()

        def write(self, data):
            self.taken += data[: self.most]
            return min(self.most, len(data))

        def read(self, size):
            return bytes(size + 1)

    tier = HostTier(pool, 1)
    (kept,) = tier.swap_out(pool.allocate(1))
    whole, silent, slow = io.BytesIO(), bytearray(), Slow(100)
    for target in (whole, slow, SimpleNamespace(write=silent.extend)):
        tier.write(kept, target)
    assert whole.getvalue() == bytes(slow.taken) == bytes(silent)
    with pytest.raises(OSError, match="target: expected write to take some of 176 bytes, got 0"):
        tier.write(kept, Slow(0))
    with pytest.raises(ValueError, match=r"parts: expected read\(176\) to give at most as many"):
        tier.read(kept, Slow(1))


@pytest.mark.parametrize("ranks, others", [(1, 4), (4, 1), (2, 8), (8, 2)])
def test_between_tensor_parallel_sizes(runtime, ranks, others):
    """The states of eight key heads and sixteen value heads, whoever wrote them. With eight ranks
    each has one key head."""
    heads, values = 8, 16
    rng = np.random.default_rng(0)
    state = rng.standard_normal((2, values, 4, 32)).astype(np.float32)
    channels = 2 * heads * 32 + values * 4
    window = rng.standard_normal((2, channels, 3)).astype(ml_dtypes.bfloat16)

    def of_rank(rank: int, size: int):
        keys = slice(rank * heads // size * 32, (rank + 1) * heads // size * 32)
        own = slice(rank * values // size, (rank + 1) * values // size)
        q, k, v = np.split(window, [heads * 32, 2 * heads * 32], axis=1)
        parts = (q[:, keys], k[:, keys], v[:, own.start * 4 : own.stop * 4])
        return state[:, own], np.concatenate(parts, axis=1)

    def make(rank: int, size: int) -> HostTier:
        sizes = shape(heads // size, values // size)
        return HostTier(StatePool(runtime.device(), sizes), 1, tp_size=size, tp_rank=rank)

    files = []
    for rank in range(ranks):
        tier = make(rank, ranks)
        (slot,) = tier.pool.allocate(1)
        for layer in range(2):
            own, conv = of_rank(rank, ranks)
            tier.pool.state(layer)[slot], tier.pool.conv(layer)[slot] = own[layer], conv[layer]
        (host,) = tier.swap_out([slot])
        files.append(io.BytesIO())
        tier.write(host, files[-1], StateTags(num_tokens=5))
    for rank in range(others):
        tier = make(rank, others)
        host = tier.allocate(1)
        parts = [io.BytesIO(file.getvalue()) for file in files]
        assert tier.read(host[0], parts).num_tokens == 5
        (slot,) = tier.swap_in(host)
        own, conv = of_rank(rank, others)
        for layer in range(2):
            assert np.array_equal(tier.pool.state(layer)[slot], own[layer])
            assert np.array_equal(tier.pool.conv(layer)[slot], conv[layer])


def test_a_tier_keeps_its_pool(runtime):
    pool = StatePool(runtime.device(), shape())
    alive = weakref.ref(pool)
    tier = HostTier(pool, 1)
    del pool
    assert alive() is tier.pool
    tier.swap_in(tier.swap_out(tier.pool.allocate(1)))


def test_on_a_gpu_that_there_is_not(runtime, build_dir):
    device = runtime.cuda(driver=build_dir / "lib/libgdnrt_fake_cuda.so")
    pool = StatePool(device, shape())
    tier = HostTier(pool, 1, format="bf16")
    (slot,) = tier.swap_in(tier.swap_out(pool.allocate(1)))
    assert slot and pool.num_free == 2 and tier.num_free == 1
