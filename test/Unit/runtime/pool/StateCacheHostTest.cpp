// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints of a state cache on the host: which go there, which go first,
// what holds them, and how they come back.

#include "cache_test.h"
#include "counting_allocator.h"

#include <cmath>
#include <functional>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

struct Moved {
  uint64_t node;
  int64_t tokens;
  int32_t slot, hostSlot;
};

class StateCacheHostTest : public CacheTest {
protected:
  ~StateCacheHostTest() override {
    cache.reset();
    tier.reset();
  }
  /// A pool, a tier and a cache on both.
  void makeBoth(int64_t slots, int64_t hostSlots, int64_t minTokens = 1,
                std::optional<StateFormat> format = {}, bool hasPages = true) {
    cache.reset();
    StatePoolShape shape = tinyShape(slots);
    shape.keyDim = 8;
    pool = makePool(shape);
    HostTierOptions tierOptions;
    tierOptions.numSlots = hostSlots;
    tierOptions.format = format;
    auto made = HostTier::make(pool, tierOptions);
    ASSERT_TRUE(made.isOk()) << made.status().toString();
    tier = std::move(*made);
    options.tier = tier.get();
    options.hostMinTokens = minTokens;
    options.maxNodes = 64;
    options.maxTokens = 4096;
    options.hasPages = hasPages;
    options.context = this;
    options.evicted = [](void *test, uint64_t node, int64_t tokens,
                         int32_t slot) {
      static_cast<StateCacheHostTest *>(test)->evicted.push_back(
          {node, tokens, slot});
    };
    options.moved = [](void *test, uint64_t node, int64_t tokens, int32_t slot,
                       int32_t hostSlot) {
      static_cast<StateCacheHostTest *>(test)->moved.push_back(
          {node, tokens, slot, hostSlot});
    };
    remake();
  }
  void remake() {
    cache.reset();
    auto cacheMade = StateCache::make(*pool, options);
    ASSERT_TRUE(cacheMade.isOk()) << cacheMade.status().toString();
    cache = std::move(*cacheMade);
  }
  /// Inserts tokens with a slot whose memory is painted.
  uint64_t keep(const Tokens &tokens, uint8_t value = 1) {
    const int32_t mine = slot();
    paint(*pool, mine, value);
    return insertPages(tokens, newPages(tokens.size()), mine).node;
  }
  bool fetch(CacheLock &lock) {
    auto done = cache->fetch(lock);
    EXPECT_TRUE(done.isOk()) << done.status().toString();
    audit();
    return done.isOk() && *done;
  }
  int64_t copyAhead(int64_t count) {
    auto done = cache->copyAhead(count);
    EXPECT_TRUE(done.isOk()) << done.status().toString();
    audit();
    return done.isOk() ? *done : -1;
  }
  int64_t evictHost(int64_t count) {
    auto done = cache->evictHost(count);
    EXPECT_TRUE(done.isOk()) << done.status().toString();
    audit();
    return done.isOk() ? *done : -1;
  }

  std::shared_ptr<HostTier> tier;
  std::vector<Moved> moved;
};

TEST_F(StateCacheHostTest, AnEvictedCheckpointComesBack) {
  makeBoth(2, 2);
  const uint64_t node = keep({1, 2, 3}, 7);
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_TRUE(evicted.empty());
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].node, node);
  EXPECT_EQ(moved[0].tokens, 3);
  EXPECT_EQ(moved[0].slot, 1);
  EXPECT_EQ(moved[0].hostSlot, cache->node(node)->hostSlot);
  EXPECT_EQ(pool->numFree(SlotKind::request), 2);
  EXPECT_EQ(tier->numFree(), 1);
  // Others write the slot meanwhile.
  for (int32_t each : take(*pool, 2))
    paint(*pool, each, 9);
  ASSERT_EQ(freeAll(*pool, {1, 2}), "OK");

  const CacheMatch found = match({1, 2, 3, 4});
  EXPECT_EQ(found.tokens, 3);
  EXPECT_EQ(found.node, node);
  EXPECT_EQ(found.slot, 0);
  EXPECT_TRUE(found.isOnHost);
  CacheLock held = lock(found.node);
  EXPECT_TRUE(held.isOnHost);
  EXPECT_EQ(held.slot, 0);
  ASSERT_TRUE(fetch(held));
  EXPECT_FALSE(held.isOnHost);
  EXPECT_NE(held.slot, 0);
  EXPECT_EQ(colour(*pool, held.slot), 7);
  EXPECT_EQ(match({1, 2, 3}).slot, held.slot);
  EXPECT_FALSE(match({1, 2, 3}).isOnHost);
  // It is a checkpoint as any other, and its copy stays.
  const StateCacheInfo info = cache->describe();
  EXPECT_EQ(info.numCheckpoints, 1);
  EXPECT_EQ(info.lockedCheckpoints, 1);
  EXPECT_EQ(info.numHostCopies, 1);
  EXPECT_EQ(info.numOnHost, 0);
  EXPECT_EQ(info.numStored, 1u);
  EXPECT_EQ(info.numFetched, 1u);
  EXPECT_EQ(info.hostBytes, tier->slotBytes());
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(cache->describe().numStored, 1u);
  cache.reset();
  EXPECT_EQ(tier->numFree(), 2);
  EXPECT_EQ(pool->numFree(SlotKind::request), 2);
}

TEST_F(StateCacheHostTest, OnlyWhatPaysGoesThere) {
  makeBoth(4, 4, /*minTokens=*/10);
  keep(count(0, 9));
  keep(count(0, 19));
  keep(count(0, 28));
  EXPECT_EQ(evictCheckpoints(3), 3);
  // 9 tokens; 19 behind nothing then; 9 behind 19.
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].tokens, 19);
  EXPECT_EQ(evicted.size(), 2u);
  EXPECT_EQ(match(count(0, 40)).tokens, 19);
}

TEST_F(StateCacheHostTest, TheLeastRecentlyUsedLeavesTheHost) {
  makeBoth(4, 2);
  const uint64_t a = keep({1}), b = keep({2}), c = keep({3});
  EXPECT_EQ(evictCheckpoints(2), 2);
  EXPECT_EQ(evictCheckpoints(1), 1);
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].node, a);
  EXPECT_EQ(evicted[0].slot, 0);
  EXPECT_EQ(match({1}).tokens, 0);
  // A tombstone: its page stays.
  EXPECT_EQ(match({1}).knownTokens, 1);
  EXPECT_EQ(match({2}).node, b);
  EXPECT_EQ(match({3}).node, c);
}

TEST_F(StateCacheHostTest, WhatIsWorthLessIsNotMoved) {
  makeBoth(4, 1);
  const uint64_t a = keep({1}), b = keep({2});
  ASSERT_TRUE(cache->setPriority(a, 2).isOk());
  ASSERT_TRUE(cache->setPriority(b, 3).isOk());
  EXPECT_EQ(evictCheckpoints(1), 1);
  const uint64_t c = keep({3});
  EXPECT_EQ(evictCheckpoints(1), 1);
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].node, c);
  EXPECT_NE(evicted[0].slot, 0);
  // The priority counts on the host, too.
  ASSERT_TRUE(cache->setPriority(a, 4).isOk());
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(evicted[1].node, b);
  EXPECT_TRUE(match({1}).isOnHost);
}

TEST_F(StateCacheHostTest, CopiesOfWhatIsInASlotGoFirst) {
  makeBoth(4, 2);
  const uint64_t a = keep({1}, 3), b = keep({2}, 4);
  EXPECT_EQ(evictCheckpoints(2), 2);
  CacheLock held = lock(b);
  ASSERT_TRUE(fetch(held));
  EXPECT_EQ(unlock(held), "OK");
  const uint64_t c = keep({3}, 5);
  touch({2});
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_TRUE(evicted.empty());
  EXPECT_EQ(cache->node(b)->hostSlot, kNoHostSlot);
  EXPECT_NE(cache->node(b)->slot, 0);
  EXPECT_TRUE(match({1}).isOnHost);
  EXPECT_EQ(match({1}).node, a);
  EXPECT_EQ(match({3}).node, c);
  EXPECT_TRUE(match({3}).isOnHost);
}

TEST_F(StateCacheHostTest, ALockHoldsWhatIsOnTheHost) {
  makeBoth(4, 1);
  const uint64_t a = keep({1}, 3);
  EXPECT_EQ(evictCheckpoints(1), 1);
  CacheLock first = lock(a), second = lock(a);
  EXPECT_EQ(evictHost(5), 0);
  EXPECT_NE(cache->drop(a).toString(), "OK");
  const uint64_t b = keep({2});
  EXPECT_EQ(evictCheckpoints(1), 1);
  // There is no room for it.
  EXPECT_EQ(evicted[0].node, b);
  // One fetches it, the other finds it there.
  ASSERT_TRUE(fetch(first));
  ASSERT_TRUE(fetch(second));
  EXPECT_EQ(first.slot, second.slot);
  EXPECT_EQ(cache->describe().numFetched, 1u);
  EXPECT_TRUE(cache->unlockSlot(first).isOk());
  EXPECT_EQ(evictCheckpoints(1), 0);
  // Its copy is held by nobody.
  EXPECT_EQ(evictHost(5), 1);
  EXPECT_EQ(unlock(second), "OK");
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(unlock(first), "OK");
}

TEST_F(StateCacheHostTest, ALockOfTheHostCanBeGivenUpWithoutFetching) {
  makeBoth(2, 1);
  const uint64_t a = keep({1});
  EXPECT_EQ(evictCheckpoints(1), 1);
  CacheLock held = lock(a), copy = held;
  EXPECT_TRUE(cache->unlockSlot(held).isOk());
  EXPECT_FALSE(held.isOnHost);
  EXPECT_TRUE(fetch(held)); // nothing any more
  EXPECT_EQ(held.slot, 0);
  EXPECT_NE(cache->unlockSlot(copy).toString(), "OK");
  EXPECT_FALSE(cache->fetch(copy).isOk());
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(evictHost(1), 1);
  EXPECT_EQ(evicted.size(), 1u);
}

TEST_F(StateCacheHostTest, WithoutASlotNothingIsFetched) {
  makeBoth(1, 1);
  const uint64_t a = keep({1}, 3);
  EXPECT_EQ(evictCheckpoints(1), 1);
  const int32_t other = slot();
  CacheLock held = lock(a);
  EXPECT_FALSE(fetch(held));
  EXPECT_TRUE(held.isOnHost);
  EXPECT_EQ(tier->numFree(), 0);
  ASSERT_EQ(freeAll(*pool, {other}), "OK");
  EXPECT_TRUE(fetch(held));
  EXPECT_EQ(colour(*pool, held.slot), 3);
  EXPECT_EQ(unlock(held), "OK");
}

TEST_F(StateCacheHostTest, FetchingEvictsAnother) {
  makeBoth(1, 2);
  const uint64_t a = keep({1}, 3);
  EXPECT_EQ(evictCheckpoints(1), 1);
  const uint64_t b = keep({2}, 4);
  CacheLock held = lock(a);
  EXPECT_TRUE(fetch(held));
  EXPECT_EQ(colour(*pool, held.slot), 3);
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_TRUE(match({2}).isOnHost);
  held = lock(b);
  EXPECT_TRUE(fetch(held));
  EXPECT_EQ(colour(*pool, held.slot), 4);
  EXPECT_EQ(unlock(held), "OK");
}

TEST_F(StateCacheHostTest, CopiesAheadMakeEvictionFree) {
  makeBoth(4, 3);
  const uint64_t a = keep({1}), b = keep({2}), c = keep({3}), d = keep({4});
  EXPECT_EQ(copyAhead(2), 2);
  EXPECT_EQ(copyAhead(2), 0);
  EXPECT_EQ(cache->describe().numOnHost, 0);
  EXPECT_TRUE(moved.empty());
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(moved[0].node, a);
  EXPECT_EQ(cache->describe().numStored, 2u);
  // What is used is no longer next.
  touch({2});
  EXPECT_EQ(copyAhead(1), 1);
  EXPECT_NE(cache->node(c)->hostSlot, kNoHostSlot);
  EXPECT_EQ(cache->describe().numHostCopies, 3);
  // Room for the fourth is that of the second, which was used since.
  EXPECT_EQ(copyAhead(2), 1);
  EXPECT_NE(cache->node(d)->hostSlot, kNoHostSlot);
  EXPECT_EQ(cache->node(b)->hostSlot, kNoHostSlot);
  // A copy for what goes later does not drive out one for what goes first, but
  // one of what is on the host alone.
  EXPECT_EQ(copyAhead(3), 1);
  EXPECT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].node, a);
  keep({5});
  EXPECT_EQ(copyAhead(4), 0);
}

TEST_F(StateCacheHostTest, WhatGoesWithItsPagesOrByNameLeavesTheHost) {
  makeBoth(4, 4);
  keep({1, 2, 3});
  const uint64_t b = keep({5});
  keep({7, 8});
  EXPECT_EQ(evictCheckpoints(2), 2);
  EXPECT_EQ(copyAhead(1), 1);
  EXPECT_TRUE(cache->drop(b).isOk());
  audit();
  EXPECT_EQ(evicted.back().slot, 0);
  EXPECT_EQ(evictPages(9).size(), 6u);
  EXPECT_EQ(tier->numFree(), 4);
  EXPECT_EQ(pool->numFree(SlotKind::request), 4);
  EXPECT_EQ(cache->describe().numNodes, 0);
}

TEST_F(StateCacheHostTest, PagesBehindAHostCheckpointGoFirst) {
  makeBoth(4, 4);
  keep({1, 2});
  insert({1, 2, 3}, false);
  insert({9}, false);
  touch({1, 2});
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(evictPages(2).size(), 2u);
  EXPECT_EQ(match({1, 2, 3}).tokens, 2);
  EXPECT_EQ(match({1, 2, 3}).knownTokens, 2);
}

TEST_F(StateCacheHostTest, WithoutPagesANodeLivesOnTheHost) {
  makeBoth(4, 2, 1, {}, /*hasPages=*/false);
  keep({1, 2});
  keep({1, 2, 3, 4});
  EXPECT_EQ(evictCheckpoints(2), 2);
  EXPECT_EQ(match({1, 2, 3, 4, 5}).tokens, 4);
  EXPECT_EQ(cache->describe().numNodes, 3);
  EXPECT_EQ(evictHost(1), 1);
  EXPECT_EQ(match({1, 2, 3, 4, 5}).tokens, 4);
  EXPECT_EQ(evictHost(1), 1);
  EXPECT_EQ(cache->describe().numNodes, 0);
}

TEST_F(StateCacheHostTest, AnotherStateReplacesTheCopyIfItDiffers) {
  makeBoth(4, 2);
  accepted = 1;
  const uint64_t a = keep({1}, 3);
  EXPECT_EQ(evictCheckpoints(1), 1);
  CacheLock held = lock(a);
  // The same accepted count: one is as good as the other.
  keep({1}, 4);
  EXPECT_NE(cache->node(a)->hostSlot, kNoHostSlot);
  EXPECT_EQ(cache->describe().numOnHost, 0);
  EXPECT_TRUE(fetch(held));
  EXPECT_EQ(colour(*pool, held.slot), 4);
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(evictCheckpoints(1), 1);
  held = lock(a);
  accepted = 2;
  keep({1}, 5);
  EXPECT_EQ(cache->node(a)->hostSlot, kNoHostSlot);
  EXPECT_TRUE(fetch(held));
  EXPECT_EQ(held.accepted, 2);
  EXPECT_EQ(colour(*pool, held.slot), 5);
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(tier->numFree(), 2);
}

TEST_F(StateCacheHostTest, NarrowCopiesAreRoundedOnceAndReplaced) {
  for (auto [format, error] : {std::pair(StateFormat::bf16, 4e-3),
                               {StateFormat::f16, 5e-4},
                               {StateFormat::i8x2, 2e-5},
                               {StateFormat::i8, 4e-3}}) {
    makeBoth(2, 2, 1, format);
    const int32_t mine = slot();
    const Argument view = *pool->view(PoolBuffer::state, 0);
    auto at = [&](int32_t of, int64_t i) -> float & {
      return (static_cast<float *>(view.data) + of * view.strides[0])[i];
    };
    for (int64_t i = 0; i < 8; ++i)
      at(mine, i) = std::sin(static_cast<float>(3 * i + 1));
    const uint64_t node = insertPages({1, 2}, newPages(2), mine).node;
    for (int turn = 0; turn < 3; ++turn) {
      ASSERT_EQ(evictCheckpoints(1), 1);
      paint(*pool, 1, 0xff);
      paint(*pool, 2, 0xff);
      CacheLock held = lock(node);
      ASSERT_TRUE(fetch(held));
      double largest = 0;
      for (int64_t i = 0; i < 8; ++i)
        largest = std::max(
            largest, std::abs(double(at(held.slot, i)) -
                              double(std::sin(static_cast<float>(3 * i + 1)))));
      // Not more with each turn.
      EXPECT_LT(largest, error) << toString(format) << " " << turn;
      EXPECT_GT(largest, 0) << toString(format);
      EXPECT_EQ(unlock(held), "OK");
    }
    ASSERT_EQ(evictCheckpoints(1), 1);
    // A state with all bits is better.
    keep({1, 2}, 3);
    EXPECT_EQ(cache->node(node)->hostSlot, kNoHostSlot);
    EXPECT_EQ(colour(*pool, cache->node(node)->slot), 3);
  }
}

TEST_F(StateCacheHostTest, AnEngineThatSwapsSharesTheTier) {
  makeBoth(3, 2);
  const Ids mine = take(*pool, 2);
  Ids host(2);
  ASSERT_TRUE(*tier->swapOut(mine.data(), 2, nullptr, host.data()));
  keep({1});
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(evicted.size(), 1u); // no room
  ASSERT_TRUE(tier->free(host.data(), 1).isOk());
  keep({2});
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(tier->numFree(), 0);
  EXPECT_EQ(evictHost(1), 1);
  EXPECT_EQ(tier->numFree(), 1);
  ASSERT_TRUE(tier->free(host.data() + 1, 1).isOk());
}

TEST_F(StateCacheHostTest, ABudgetOfBytes) {
  makeBoth(4, 4);
  options.hostBytes = 2 * tier->slotBytes() + 1;
  remake();
  for (int32_t i = 1; i <= 4; ++i)
    keep({i});
  EXPECT_EQ(evictCheckpoints(4), 4);
  EXPECT_EQ(cache->describe().numHostCopies, 2);
  EXPECT_EQ(cache->describe().hostBytes, 2 * tier->slotBytes());
  EXPECT_EQ(tier->numFree(), 2);
}

struct Evicting final : ByteWriter {
  std::function<void()> evict;
  Status write(const void *, uint64_t) override {
    evict();
    return {};
  }
};

TEST_F(StateCacheHostTest, AHostSlotThatIsWrittenToAFileIsFreedLater) {
  makeBoth(2, 2);
  const uint64_t a = keep({1});
  EXPECT_EQ(evictCheckpoints(1), 1);
  const int32_t host = cache->node(a)->hostSlot;
  Evicting writer;
  writer.evict = [&] {
    (void)evictHost(1);
    EXPECT_EQ(tier->numFree(), 1);
  };
  ASSERT_TRUE(tier->write(host, {}, writer).isOk());
  EXPECT_EQ(cache->describe().numHostCopies, 0);
  keep({2});
  keep({3});
  // Both go, as the first host slot is free again.
  EXPECT_EQ(evictCheckpoints(2), 2);
  EXPECT_EQ(cache->describe().numHostCopies, 2);
}

TEST_F(StateCacheHostTest, CheckpointsOnTheHostAreNotTakenAgain) {
  makeBoth(4, 4);
  const Tokens prompt = count(0, 200);
  keep(count(0, 192));
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(take64(prompt, 0, 200), std::vector<int64_t>{});
  EXPECT_EQ(evictHost(1), 1);
  EXPECT_EQ(take64(prompt, 0, 200), std::vector<int64_t>{192});
}

TEST_F(StateCacheHostTest, WrongOptionsAndCountsAreRefused) {
  makeBoth(2, 2);
  EXPECT_EQ(cache->copyAhead(-1).status().toString(),
            "INVALID_ARGUMENT: state_cache: count: expected 0 or more, got -1");
  EXPECT_EQ(cache->evictHost(-2).status().toString(),
            "INVALID_ARGUMENT: state_cache: count: expected 0 or more, got -2");
  auto message = [&] {
    auto made = StateCache::make(*pool, options);
    return made.isOk() ? "OK" : made.status().toString();
  };
  options.hostMinTokens = -1;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: state_cache: host_min_tokens: "
                       "expected 0 or more, got -1");
  options.hostMinTokens = 0;
  options.hostBytes = 1;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: state_cache: host_bytes: expected 0 "
                       "or the " +
                           std::to_string(tier->slotBytes()) +
                           " bytes of a host slot or more, got 1");
  options.hostBytes = 0;
  auto other = makePool(tinyShape(2));
  EXPECT_EQ(StateCache::make(*other, options).status().toString(),
            "INVALID_ARGUMENT: state_cache: host_tier: expected one of the "
            "cache's pool, got one of another pool");
  options.tier = nullptr;
  remake();
  EXPECT_EQ(cache->copyAhead(1).status().toString(),
            "INVALID_ARGUMENT: state_cache: copy_ahead: expected a cache with "
            "a host tier, got one without");
  EXPECT_EQ(evictHost(1), 0);
}

TEST_F(StateCacheHostTest, NothingIsAllocatedInAStep) {
  if (!countsAllocations())
    GTEST_SKIP() << "the sanitizer has its own operator new";
  makeBoth(4, 3);
  options.evicted = nullptr;
  options.moved = nullptr;
  remake();
  Pages pages(100), freed(400);
  std::iota(pages.begin(), pages.end(), 0);
  Tokens tokens = count(0, 100);
  const uint64_t before = numAllocations();
  bool isOk = true;
  for (int32_t i = 0; i < 200; ++i) {
    tokens[size_t(i * 37 % 100)] = i % 7;
    int32_t mine = 0;
    isOk &= *cache->takeSlots(1, &mine, false);
    const CacheMatch found = cache->match(space, span(tokens));
    CacheLock held = *cache->lock(found.node);
    isOk &= *cache->fetch(held);
    auto done = cache->insert(space, span(tokens), {pages.data(), 100, mine, 0},
                              freed.data(), freed.size());
    isOk &= done.isOk();
    if (!done->slotTaken)
      isOk &= pool->free(&mine, 1, nullptr).isOk();
    isOk &= cache->unlock(held).isOk();
    isOk &= cache->copyAhead(2).isOk();
    if (i % 10 == 0)
      isOk &= cache->evictHost(1).isOk();
  }
  EXPECT_EQ(numAllocations(), before);
  EXPECT_TRUE(isOk);
  audit();
}

} // namespace
