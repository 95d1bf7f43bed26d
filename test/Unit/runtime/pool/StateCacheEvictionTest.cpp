// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a state cache promises of locks, eviction, room and slots, and of what
// it refuses.

#include "cache_test.h"
#include "counting_allocator.h"

#include <limits>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

using StateCacheEvictionTest = CacheTest;

TEST_F(StateCacheEvictionTest, WhatIsLockedStays) {
  make(3);
  insert({1, 2, 3});
  insert({1, 2, 3, 4, 5});
  insert({1, 2, 3, 9});
  CacheLock held = lock(match({1, 2, 3, 4, 5}).node);
  EXPECT_EQ(held.slot, 2);
  EXPECT_EQ(cache->describe().lockedTokens, 5);
  EXPECT_EQ(cache->describe().lockedCheckpoints, 1);
  // The checkpoint ahead of it is not held, its pages are.
  EXPECT_EQ(evictCheckpoints(9), 2);
  EXPECT_EQ(evictPages(9).size(), 1u);
  const CacheMatch found = match({1, 2, 3, 4, 5});
  EXPECT_EQ(found.tokens, 5);
  EXPECT_EQ(found.slot, 2);
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(held.node, 0u);
  EXPECT_EQ(evictPages(9).size(), 5u);
  EXPECT_EQ(pool->numFree(SlotKind::request), 3);
}

TEST_F(StateCacheEvictionTest, LocksAreCounted) {
  make(2);
  const uint64_t node = insert({1, 2}).node;
  CacheLock first = lock(node), second = lock(node);
  EXPECT_EQ(cache->node(node)->numLocks, 2);
  EXPECT_EQ(cache->node(node)->numSlotLocks, 2);
  EXPECT_EQ(unlock(first), "OK");
  EXPECT_EQ(evictCheckpoints(1), 0);
  EXPECT_EQ(unlock(second), "OK");
  EXPECT_EQ(evictCheckpoints(1), 1);
  // Of nothing.
  CacheLock none = lock(0);
  EXPECT_EQ(unlock(none), "OK");
}

TEST_F(StateCacheEvictionTest, ASlotCanBeGivenUpBeforeThePages) {
  make(2);
  CacheLock held = lock(insert({1, 2}).node);
  EXPECT_TRUE(cache->unlockSlot(held).isOk());
  EXPECT_EQ(held.slot, 0);
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(evictPages(2).size(), 0u);
  EXPECT_TRUE(cache->unlockSlot(held).isOk()); // nothing any more
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(evictPages(2).size(), 2u);
}

TEST_F(StateCacheEvictionTest, ALockHoldsAfterASplit) {
  make(4);
  const uint64_t node = insert({1, 2, 3, 4}).node;
  CacheLock held = lock(node);
  insert({1, 2, 9});
  EXPECT_EQ(evictPages(9).size(), 1u);
  EXPECT_EQ(match({1, 2, 3, 4}).node, node);
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(evictPages(9).size(), 4u);
}

TEST_F(StateCacheEvictionTest, ALockOfANodeWithoutCheckpointStaysOne) {
  make(1);
  const uint64_t node = insert({1, 2}, false).node;
  CacheLock held = lock(node);
  EXPECT_EQ(held.slot, 0);
  EXPECT_TRUE(insert({1, 2}).slotTaken);
  // The new checkpoint is not held by the old lock.
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(unlock(held), "OK");
}

TEST_F(StateCacheEvictionTest, CheckpointsGoByPriorityAndLastUse) {
  make(4);
  const uint64_t a = insert({1}).node, b = insert({2}).node,
                 c = insert({3}).node, d = insert({4}).node;
  touch({1});
  ASSERT_TRUE(cache->setPriority(c, 1.5).isOk());
  ASSERT_TRUE(cache->setPriority(d, -1).isOk());
  audit();
  EXPECT_EQ(cache->node(c)->priority, 1.5);
  EXPECT_EQ(evictCheckpoints(4), 4);
  std::vector<uint64_t> order;
  for (const Evicted &each : evicted)
    order.push_back(each.node);
  EXPECT_EQ(order, (std::vector<uint64_t>{d, b, a, c}));
  EXPECT_EQ(evicted[0].tokens, 1);
  EXPECT_EQ(evicted[0].slot, 4);
}

TEST_F(StateCacheEvictionTest, PassingACheckpointIsNoUseOfIt) {
  make(3);
  insert({1});
  insert({7});
  insert({1, 2});
  touch({1, 2});
  evictCheckpoints(1);
  EXPECT_EQ(evicted[0].tokens, 1);
  EXPECT_EQ(match({1, 2}).tokens, 2);
}

TEST_F(StateCacheEvictionTest, PagesThatServeNobodyGoFirst) {
  make(3);
  insert({1, 2, 3});           // 1000 ..
  insert({1, 2, 3, 4}, false); // 1006: behind the last checkpoint
  insert({5, 6});              // 1007 ..
  insert({8, 9});              // 1009 ..
  touch({5, 6});
  EXPECT_EQ(evictPages(1, 1), (Pages{1006}));
  EXPECT_EQ(evictPages(1), (Pages{1000, 1001, 1002}));
  EXPECT_EQ(evictPages(1), (Pages{1009, 1010}));
  EXPECT_EQ(evicted.size(), 2u);
  EXPECT_EQ(match({5, 6}).tokens, 2);
}

TEST_F(StateCacheEvictionTest, APrefixIsCutWhereItsPagesDoNotFit) {
  make(1);
  insert(count(1, 300)); // 1000 ..
  Pages expected(100);
  std::iota(expected.begin(), expected.end(), 1200);
  EXPECT_EQ(evictPages(100, 100), expected);
  EXPECT_EQ(evicted.size(), 1u);
  EXPECT_EQ(match(count(1, 300)).knownTokens, 200);
  EXPECT_EQ(match(count(1, 300)).tokens, 0);
  // What is left is as good as any other prefix.
  EXPECT_EQ(insert(count(1, 250)).knownTokens, 200);
  EXPECT_EQ(match(count(1, 300)).tokens, 250);
  EXPECT_EQ(evictPages(500).size(), 250u);
  EXPECT_EQ(cache->describe().numNodes, 0);
}

TEST_F(StateCacheEvictionTest, WhatIsLeftOfACutPrefixGoesOn) {
  make(1, 64, 4096, /*pageTokens=*/16);
  insert(count(0, 160), false);
  EXPECT_EQ(evictPages(4, 4).size(), 4u);
  Tokens other = count(0, 96), more = count(1000, 64);
  other.insert(other.end(), more.begin(), more.end());
  EXPECT_EQ(insert(other).knownTokens, 96);
  EXPECT_EQ(match(other).tokens, 160);
}

TEST_F(StateCacheEvictionTest, PrefixesGoByPriorityToo) {
  make(2);
  const uint64_t node = insert({1}).node;
  insert({2});
  ASSERT_TRUE(cache->setPriority(node, 1).isOk());
  EXPECT_EQ(evictPages(1), (Pages{1001}));
}

TEST_F(StateCacheEvictionTest, ATombstoneCanHaveACheckpointAgain) {
  make(2);
  insert({1, 2});
  insert({1, 2, 3});
  touch({1, 2, 3});
  evictCheckpoints(1);
  EXPECT_EQ(match({1, 2}).tokens, 0);
  EXPECT_EQ(match({1, 2}).knownTokens, 2);
  const CacheInserted again = insert({1, 2});
  EXPECT_TRUE(again.slotTaken);
  EXPECT_EQ(again.knownTokens, 2);
  EXPECT_EQ(match({1, 2}).tokens, 2);
}

TEST_F(StateCacheEvictionTest, WithoutPagesWhatCarriesNothingGoes) {
  make(4, 64, 1024, 1, /*hasPages=*/false);
  insert({1, 2, 3, 4});
  insert({1, 2, 5, 6});
  EXPECT_EQ(cache->describe().numNodes, 4); // the root, 1 2, and two leaves
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(match({1, 2, 3, 4}).knownTokens, 2);
  CacheLock held = lock(match({1, 2, 5, 6}).node);
  EXPECT_TRUE(cache->unlockSlot(held).isOk());
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(cache->describe().numNodes, 3);
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(cache->describe().numNodes, 0);
  insert({1, 2});
  EXPECT_EQ(*cache->evictPages(1, nullptr, 0), 2u);
  EXPECT_EQ(cache->describe().numNodes, 0);
  EXPECT_EQ(insertError({1}, {}, 0),
            "INVALID_ARGUMENT: state_cache: slot: expected a slot, since the "
            "cache has no pages, got 0");
}

TEST_F(StateCacheEvictionTest, DroppingOne) {
  make(2);
  const uint64_t node = insert({1, 2}).node;
  CacheLock held = lock(node);
  EXPECT_EQ(cache->drop(node).message(),
            "state_cache: node: expected one with a checkpoint that is not "
            "locked, got node " +
                std::to_string(node) + " with a locked one");
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_TRUE(cache->drop(node).isOk());
  audit();
  EXPECT_EQ(pool->numFree(SlotKind::request), 2);
  EXPECT_EQ(match({1, 2}).knownTokens, 2);
  EXPECT_EQ(cache->drop(node).message(),
            "state_cache: node: expected one with a checkpoint that is not "
            "locked, got node " +
                std::to_string(node) + " without one");
}

TEST_F(StateCacheEvictionTest, RoomIsMadeOfTokens) {
  make(8, 64, /*tokens=*/10);
  insert({1, 2, 3, 4}); // 1000 ..
  insert({5, 6, 7, 8}); // 1004 ..
  touch({1, 2, 3, 4});
  const CacheInserted done = insert({9, 10, 11, 12});
  EXPECT_FALSE(done.isFull);
  EXPECT_EQ(done.numEvictedPages, 4u);
  EXPECT_EQ(done.numEvictedCheckpoints, 1);
  EXPECT_EQ(free, (Pages{1004, 1005, 1006, 1007}));
  // Its own beginning is not evicted for its end.
  EXPECT_EQ(insert({1, 2, 3, 4, 20, 21, 22, 23, 24}).numEvictedPages, 4u);
  EXPECT_EQ(match({1, 2, 3, 4, 20, 21, 22, 23, 24}).tokens, 9);
  EXPECT_EQ(free, (Pages{1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015}));
}

TEST_F(StateCacheEvictionTest, RoomIsMadeOfNodes) {
  make(8, /*nodes=*/4);
  insert({1, 2});
  insert({3, 4});
  insert({5, 6});
  EXPECT_EQ(cache->describe().numNodes, 4);
  const CacheInserted done = insert({7, 8});
  EXPECT_EQ(done.numEvictedPages, 2u);
  EXPECT_EQ(match({1, 2}).knownTokens, 0);
  // A split takes two.
  EXPECT_EQ(insert({7, 9}).numEvictedPages, 4u);
}

TEST_F(StateCacheEvictionTest, AFullCacheIsAnAnswer) {
  make(8, 64, /*tokens=*/6);
  CacheLock first = lock(insert({1, 2, 3}).node);
  insert({4, 5});
  const int32_t mine = slot();
  const Tokens more = {7, 8, 9, 10};
  const CacheInserted done = insertPages(more, newPages(4), mine);
  EXPECT_TRUE(done.isFull);
  EXPECT_EQ(done.node, 0u);
  EXPECT_FALSE(done.slotTaken);
  // It could never fit, so nothing was evicted for it.
  EXPECT_EQ(done.numEvictedPages, 0u);
  EXPECT_EQ(match({4, 5}).tokens, 2);
  EXPECT_EQ(unlock(first), "OK");
  EXPECT_FALSE(insert(more).isFull);
  // No room in the array of the caller: as far as it goes.
  const Tokens others = {20, 21, 22, 23, 24, 25};
  const CacheInserted cut = insertPages(others, newPages(6), 0, /*more=*/0);
  EXPECT_FALSE(cut.isFull);
  EXPECT_EQ(cut.numEvictedPages, 4u);
  // The node in which the prefix parts from what is known stays whole.
  Tokens longer = others;
  longer.back() = 26;
  EXPECT_TRUE(insert(longer).isFull);
  EXPECT_EQ(match(others).knownTokens, 6);
}

TEST_F(StateCacheEvictionTest, NodesAllLocked) {
  make(8, /*nodes=*/3);
  CacheLock first = lock(insert({1, 2, 3}).node);
  CacheLock second = lock(insert({4, 5}).node);
  EXPECT_TRUE(insert({6}).isFull);
  EXPECT_TRUE(insert({1, 2, 9}).isFull);
  EXPECT_FALSE(insert({1, 2, 3}).isFull);
  EXPECT_EQ(unlock(second), "OK");
  EXPECT_FALSE(insert({6}).isFull);
  EXPECT_EQ(match({4, 5}).knownTokens, 0);
  EXPECT_EQ(unlock(first), "OK");
}

TEST_F(StateCacheEvictionTest, ANewNamespaceInAFullCache) {
  make(8, /*nodes=*/2);
  insert({1, 2});
  space.adapter = 1;
  const CacheInserted done = insert({1, 2});
  EXPECT_FALSE(done.isFull);
  EXPECT_EQ(done.numEvictedPages, 2u);
  space.adapter = 0;
  EXPECT_EQ(match({1, 2}).knownTokens, 0);
}

TEST_F(StateCacheEvictionTest, SlotsAreTakenFromCheckpoints) {
  make(4);
  insert({1});
  insert({2});
  CacheLock held = lock(match({1}).node);
  Ids slots(4, -1);
  auto taken = cache->takeSlots(4, slots.data(), true);
  EXPECT_FALSE(*taken);
  EXPECT_EQ(evicted.size(), 0u);
  taken = cache->takeSlots(3, slots.data(), true);
  EXPECT_TRUE(*taken);
  audit();
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].slot, 2);
  EXPECT_EQ(slots, (Ids{3, 4, 2, -1}));
  EXPECT_EQ(unlock(held), "OK");
}

TEST_F(StateCacheEvictionTest, IdsOfNodesThatAreGoneAreRefused) {
  make(2);
  const uint64_t node = insert({1, 2}).node;
  evictPages(2);
  insert({3, 4}); // in the same memory
  const std::string gone = "INVALID_ARGUMENT: state_cache: node: expected a "
                           "node of the cache, got " +
                           std::to_string(node) +
                           ", which was evicted or never was one";
  EXPECT_EQ(cache->lock(node).status().toString(), gone);
  EXPECT_EQ(cache->node(node).status().toString(), gone);
  EXPECT_EQ(cache->drop(node).toString(), gone);
  EXPECT_EQ(cache->setPriority(node, 1).toString(), gone);
  EXPECT_EQ(cache->node(12345).status().code(), StatusCode::invalidArgument);
}

TEST_F(StateCacheEvictionTest, LocksThatWereGivenBackAreRefused) {
  make(2);
  const uint64_t node = insert({1, 2}).node;
  CacheLock held = lock(node), copy = held;
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(unlock(copy), "INVALID_ARGUMENT: state_cache: lock: expected one "
                          "that holds node " +
                              std::to_string(node) +
                              ", got one that was given back");
  EXPECT_EQ(cache->unlockSlot(copy).message(),
            "state_cache: lock: expected one that holds slot 1, got one that "
            "was given back");
}

TEST_F(StateCacheEvictionTest, WhatIsRefused) {
  make(4);
  const Tokens three = {1, 2, 3};
  const int32_t mine = slot();
  EXPECT_EQ(insertError(three, {1, 2}, 0),
            "INVALID_ARGUMENT: state_cache: num_pages: expected 3 for 3 "
            "tokens, got 2");
  EXPECT_EQ(insertError(three, {1, 2, 3}, 0, /*capacity=*/2),
            "INVALID_ARGUMENT: state_cache: free_pages: expected room for 3, "
            "got 2");
  EXPECT_EQ(insertError(three, {1, 2, 3}, 3),
            "INVALID_ARGUMENT: state_cache: slot: expected a slot in use, got "
            "3");
  EXPECT_EQ(insertError(three, {1, 2, 3}, 5),
            "INVALID_ARGUMENT: state_cache: slot: expected a slot for "
            "requests, got 5");
  EXPECT_EQ(insertError({}, {}, mine),
            "INVALID_ARGUMENT: state_cache: count: expected a positive "
            "multiple of 1 tokens with a slot, got 0");
  const uint64_t node = insertPages(three, {1, 2, 3}, mine).node;
  EXPECT_EQ(insertError({4}, {4}, mine),
            "INVALID_ARGUMENT: state_cache: slot: expected one of the "
            "caller's, got 1, the checkpoint of 3 tokens");
  EXPECT_EQ(cache->setPriority(node, std::numeric_limits<double>::infinity())
                .message(),
            "state_cache: priority: expected a finite number, got an infinity "
            "or NaN");
  Pages pages(3);
  EXPECT_EQ(cache->pages(node, 4, pages.data(), 3).message(),
            "state_cache: num_tokens: expected a multiple of 1 from 0 to the "
            "node's 3, got 4");
  EXPECT_EQ(cache->pages(node, 3, pages.data(), 2).message(),
            "state_cache: capacity: expected 3 or more, got 2");
  EXPECT_EQ(cache->evictPages(4, pages.data(), 3).status().message(),
            "state_cache: count: expected 0 to the capacity of pages, 3, got "
            "4");
  EXPECT_EQ(cache->evictCheckpoints(-1).status().message(),
            "state_cache: count: expected 0 or more, got -1");
}

TEST_F(StateCacheEvictionTest, SizesThatAreRefused) {
  make(1);
  auto error = [&](StateCacheOptions tried) {
    return StateCache::make(*pool, tried).status().message();
  };
  StateCacheOptions good = options, tried = good;
  tried.pageTokens = 0;
  EXPECT_EQ(error(tried),
            "state_cache: page_tokens: expected 1 to 4096, got 0");
  tried = good;
  tried.maxNodes = 1;
  EXPECT_EQ(error(tried),
            "state_cache: max_nodes: expected 2 to 1073741824, got 1");
  tried = good;
  tried.maxTokens = 0;
  EXPECT_EQ(error(tried),
            "state_cache: max_tokens: expected 1 to 68719476736, got 0");
  StatePoolOptions foreign;
  foreign.foreignRequests = true;
  auto others = makePool(tinyShape(2, 2), foreign);
  EXPECT_EQ(StateCache::make(*others, good).status().message(),
            "state_cache: slot_kind: expected track slots, since the pool's "
            "requests are the caller's, got slots for requests");
  good.slotKind = SlotKind::track;
  EXPECT_TRUE(StateCache::make(*others, good).isOk());
}

TEST_F(StateCacheEvictionTest, NothingIsAllocatedInAStep) {
  if (!countsAllocations())
    GTEST_SKIP() << "the sanitizer has its own operator new";
  make(8, 16, 256);
  options.evicted = nullptr;
  cache = std::move(*StateCache::make(*pool, options));
  Pages pages(256), freed(512);
  std::iota(pages.begin(), pages.end(), 0);
  Tokens tokens = count(0, 100);
  std::vector<int64_t> positions(64);
  const uint64_t before = numAllocations();
  bool isOk = true;
  for (int32_t i = 0; i < 200; ++i) {
    tokens[size_t(i * 37 % 100)] = i;
    int32_t mine = 0;
    isOk &= *cache->takeSlots(1, &mine, false);
    const CacheMatch found = cache->match(space, span(tokens));
    CacheLock held = *cache->lock(found.node);
    isOk &= cache
                ->checkpointsToTake(space, span(tokens), policy, {0, 100, 0},
                                    positions.data(), 64)
                .isOk();
    auto done = cache->insert(space, span(tokens), {pages.data(), 100, mine, 0},
                              freed.data(), freed.size());
    isOk &= done.isOk();
    if (!done->slotTaken)
      isOk &= pool->free(&mine, 1, nullptr).isOk();
    isOk &= cache->unlock(held).isOk();
    if (i % 10 == 0)
      isOk &= cache->evictPages(20, freed.data(), 20).isOk();
  }
  EXPECT_EQ(numAllocations(), before);
  EXPECT_TRUE(isOk);
  audit();
}

} // namespace
