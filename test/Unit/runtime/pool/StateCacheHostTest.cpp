// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints of a state cache on the host: which go there, which go first,
// what holds them, and how they come back.

#include "host_cache_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

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

} // namespace
