// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host slots of a state cache: what they hold, who shares them, how many there
// may be, and what is refused.

#include "counting_allocator.h"
#include "host_cache_test.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

using StateCacheHostSlotsTest = StateCacheHostTest;

TEST_F(StateCacheHostSlotsTest, AnotherStateReplacesTheCopyIfItDiffers) {
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

TEST_F(StateCacheHostSlotsTest, NarrowCopiesAreRoundedOnceAndReplaced) {
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

TEST_F(StateCacheHostSlotsTest, AnEngineThatSwapsSharesTheTier) {
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

// One thread has the cache; others swap on the same pool and tier.
TEST_F(StateCacheHostSlotsTest, SwapsOfOtherThreadsRunBesideIt) {
  makeBoth(6, 5);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([&, thread] {
      int32_t mine = 0, host = 0;
      for (int turn = 0; turn < 200; ++turn) {
        if (!*pool->allocate(SlotKind::request, 1, &mine, false, nullptr))
          continue;
        const int value = 1 + (thread * 50 + turn) % 100;
        paint(*pool, mine, static_cast<uint8_t>(value));
        if (*tier->swapOut(&mine, 1, nullptr, &host))
          while (!*tier->swapIn(&host, 1, nullptr, &mine))
            std::this_thread::yield();
        wrong += colour(*pool, mine) != value;
        wrong += !pool->free(&mine, 1, nullptr).isOk();
      }
    });
  for (int32_t turn = 0; turn < 300; ++turn) {
    const Tokens tokens = {turn % 12, 1};
    const auto value = static_cast<uint8_t>(101 + turn % 12);
    int32_t mine = 0;
    if (*cache->takeSlots(1, &mine, false)) {
      paint(*pool, mine, value);
      insertPages(tokens, newPages(2), mine);
    }
    CacheLock held = lock(match({(turn + 5) % 12, 1}).node);
    if (*cache->fetch(held) && held.slot != 0)
      EXPECT_EQ(colour(*pool, held.slot), 101 + (turn + 5) % 12);
    EXPECT_EQ(unlock(held), "OK");
    if (turn % 3 == 0)
      (void)copyAhead(2);
    if (turn % 7 == 0)
      (void)evictHost(1);
  }
  // Somebody may wait for a slot.
  evictCheckpoints(100);
  for (std::thread &each : threads)
    each.join();
  EXPECT_EQ(wrong, 0);
  cache.reset();
  EXPECT_EQ(tier->numFree(), 5);
  EXPECT_EQ(pool->numFree(SlotKind::request), 6);
}

TEST_F(StateCacheHostSlotsTest, ABudgetOfBytes) {
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

TEST_F(StateCacheHostSlotsTest, AHostSlotThatIsWrittenToAFileIsFreedLater) {
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

// Evicted before, or by the cache's end.
TEST_F(StateCacheHostSlotsTest, ACacheThatEndsWhileAFileIsWrittenLosesNoSlot) {
  for (bool isEvicted : {true, false}) {
    makeBoth(2, 2);
    const uint64_t a = keep({1});
    EXPECT_EQ(evictCheckpoints(1), 1);
    const int32_t host = cache->node(a)->hostSlot;
    Evicting writer;
    writer.evict = [&] {
      if (!cache)
        return;
      if (isEvicted)
        (void)evictHost(1);
      cache.reset();
      // Nobody gets it before the file has ended.
      EXPECT_EQ(tier->numFree(), 1);
    };
    ASSERT_TRUE(tier->write(host, {}, writer).isOk());
    EXPECT_EQ(tier->numFree(), 2);
    Ids both(2);
    EXPECT_TRUE(*tier->allocate(2, both.data()));
    EXPECT_TRUE(tier->free(both.data(), 2).isOk());
  }
}

TEST_F(StateCacheHostSlotsTest, CheckpointsOnTheHostAreNotTakenAgain) {
  makeBoth(4, 4);
  const Tokens prompt = count(0, 200);
  keep(count(0, 192));
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(take64(prompt, 0, 200), std::vector<int64_t>{});
  EXPECT_EQ(evictHost(1), 1);
  EXPECT_EQ(take64(prompt, 0, 200), std::vector<int64_t>{192});
}

TEST_F(StateCacheHostSlotsTest, CheckpointsOnTheHostCountAsTheOnesAhead) {
  makeBoth(4, 4);
  const Tokens prompt = count(0, 200);
  keep(count(0, 128));
  EXPECT_EQ(evictCheckpoints(1), 1);
  policy.minGap = 100;
  EXPECT_EQ(take64(prompt, 128, 72), std::vector<int64_t>{});
  // Prompts parted there, and one may take a single state: of another position.
  insert(prompt, false);
  Tokens other = count(0, 130);
  other[128] = -1;
  insert(other, false);
  policy.atEnd = false;
  policy.minGap = 64;
  policy.blockTokens = 64;
  policy.maxCheckpoints = 1;
  EXPECT_EQ(take64(prompt, 0, 200), std::vector<int64_t>{192});
  policy.atEnd = true;
  policy.minGap = 100;
  policy.blockTokens = 0;
  EXPECT_EQ(evictHost(1), 1);
  EXPECT_EQ(take64(prompt, 128, 72), std::vector<int64_t>{192});
}

TEST_F(StateCacheHostSlotsTest, WrongOptionsAndCountsAreRefused) {
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

TEST_F(StateCacheHostSlotsTest, NothingIsAllocatedInAStep) {
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
