// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a state cache promises of matches, insertions, namespaces and pages, and
// the situations of sglang's published tests of its radix caches.

#include "cache_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

using StateCacheTest = CacheTest;

TEST_F(StateCacheTest, AnEmptyCacheKnowsNothing) {
  make(2);
  const CacheMatch found = match({1, 2, 3});
  EXPECT_EQ(found.tokens, 0);
  EXPECT_EQ(found.node, 0u);
  EXPECT_EQ(found.knownTokens, 0);
  EXPECT_EQ(found.knownNode, 0u);
  EXPECT_EQ(match({}).knownTokens, 0);
}

TEST_F(StateCacheTest, WhatIsInsertedIsFound) {
  make(2);
  accepted = 3;
  const CacheInserted done = insert({1, 2, 3});
  EXPECT_EQ(done.knownTokens, 0);
  EXPECT_TRUE(done.slotTaken);
  EXPECT_TRUE(free.empty());
  CacheMatch found = match({1, 2, 3, 9});
  EXPECT_EQ(found.tokens, 3);
  EXPECT_EQ(found.node, done.node);
  EXPECT_EQ(found.slot, 1);
  EXPECT_EQ(found.accepted, 3);
  EXPECT_EQ(found.knownTokens, 3);
  EXPECT_EQ(pagesOf(found.knownNode, 3), (Pages{1000, 1001, 1002}));
  // Within a node there are pages and no state.
  found = match({1, 2});
  EXPECT_EQ(found.tokens, 0);
  EXPECT_EQ(found.slot, 0);
  EXPECT_EQ(found.knownTokens, 2);
  EXPECT_EQ(pagesOf(found.knownNode, 2), (Pages{1000, 1001}));
}

TEST_F(StateCacheTest, ASplitKeepsCheckpointAndIds) {
  make(4);
  const uint64_t end = insert({1, 2, 3, 4, 5}).node;
  const CacheInserted middle = insert({1, 2, 3});
  EXPECT_EQ(middle.knownTokens, 3);
  EXPECT_TRUE(middle.slotTaken);
  EXPECT_NE(middle.node, end);
  CacheMatch found = match({1, 2, 3, 4, 5});
  EXPECT_EQ(found.tokens, 5);
  EXPECT_EQ(found.node, end);
  EXPECT_EQ(pagesOf(end, 5), (Pages{1000, 1001, 1002, 1003, 1004}));
  EXPECT_EQ(match({1, 2, 3, 4}).node, middle.node);
  const auto info = cache->node(end);
  EXPECT_EQ(info->tokens, 5);
  EXPECT_EQ(info->tokensAbove, 3);
  EXPECT_EQ(cache->node(middle.node)->numChildren, 1);
}

TEST_F(StateCacheTest, InsertingWithoutASlotWithinANodeChangesNothing) {
  make(1);
  const uint64_t node = insert({1, 2, 3, 4}, false).node;
  const CacheInserted done = insert({1, 2}, false);
  EXPECT_EQ(done.node, node);
  EXPECT_EQ(done.knownTokens, 2);
  EXPECT_EQ(cache->describe().numNodes, 2); // with the root
}

TEST_F(StateCacheTest, ASecondCheckpointOfTheSameTokensStaysTheCallers) {
  make(3);
  EXPECT_TRUE(insert({1, 2}).slotTaken);
  const CacheInserted again = insert({1, 2});
  EXPECT_FALSE(again.slotTaken);
  EXPECT_FALSE(again.isFull);
  EXPECT_EQ(match({1, 2}).slot, 1);
  EXPECT_EQ(pool->numInUse(SlotKind::request), 1);
}

TEST_F(StateCacheTest, DuplicatesArePagesThatTheCacheHasOthersFor) {
  make(4);
  insert({1, 2, 3}); // 1000 1001 1002
  EXPECT_EQ(insert({1, 2, 3, 4, 5, 6, 7}).knownTokens, 3);
  EXPECT_EQ(free, (Pages{1003, 1004, 1005}));
  // A request that had the first two from the cache.
  Pages pages = newPages(8); // 1010 ..
  pages[0] = 1000;
  pages[1] = 1001;
  EXPECT_EQ(insertPages(count(1, 8), pages, slot()).knownTokens, 7);
  EXPECT_EQ(free, (Pages{1012, 1013, 1014, 1015, 1016}));
  // One that had all of them.
  pages = pagesOf(match(count(1, 8)).node, 8);
  pages.push_back(nextPage++);
  EXPECT_EQ(insertPages(count(1, 9), pages, 0).knownTokens, 8);
  EXPECT_TRUE(free.empty());
}

TEST_F(StateCacheTest, PagesAreWhole) {
  make(4, 64, 1024, /*pageTokens=*/4);
  EXPECT_EQ(insert(count(0, 10), false).knownTokens, 0);
  EXPECT_EQ(match(count(0, 10)).knownTokens, 8);
  EXPECT_EQ(match(count(0, 7)).knownTokens, 4);
  EXPECT_EQ(match(count(0, 3)).knownTokens, 0);
  // Two prompts that part within a page part at its beginning.
  Tokens other = count(0, 12);
  other[6] = 99;
  EXPECT_EQ(insert(other).knownTokens, 4);
  EXPECT_EQ(match(other).tokens, 12);
  EXPECT_EQ(match(count(0, 12)).knownTokens, 8);
  // Too short for a page: nothing to insert.
  const CacheInserted nothing = insert({7, 7}, false);
  EXPECT_EQ(nothing.node, 0u);
  EXPECT_FALSE(nothing.isFull);
  EXPECT_EQ(insertError(count(0, 10), newPages(10), slot()),
            "INVALID_ARGUMENT: state_cache: count: expected a positive "
            "multiple of 4 tokens with a slot, got 10");
}

TEST_F(StateCacheTest, PagesOfEverySize) {
  for (int64_t size : {1, 2, 3, 7, 16, 48, 64, 65, 100, 256}) {
    SCOPED_TRACE(size);
    nextPage = 0;
    make(8, 64, 100 * size, size);
    const Tokens all = count(0, 30 * size);
    insert(all);
    for (int64_t pages : {1, 5, 11, 29}) {
      Tokens other(all.begin(), all.begin() + pages * size);
      for (int64_t i = 0; i < 3 * size; ++i)
        other.push_back(-1 - static_cast<int32_t>(i));
      EXPECT_EQ(insert(other).knownTokens, pages * size);
      const CacheMatch found = match(other);
      EXPECT_EQ(found.tokens, (pages + 3) * size);
      const Pages kept = pagesOf(found.node, found.tokens);
      for (int64_t i = 0; i < pages; ++i)
        EXPECT_EQ(kept[size_t(i)], i);
    }
    Pages expected(30);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(pagesOf(match(all).node, 30 * size), expected);
    EXPECT_EQ(evictPages(1000).size(), 30u + 4 * 3);
    EXPECT_EQ(cache->describe().numNodes, 0);
  }
}

TEST_F(StateCacheTest, WideTokensAreTheSameTokens) {
  make(4);
  insert(count(-50, 200));
  std::vector<int64_t> wide(200);
  std::iota(wide.begin(), wide.end(), -50);
  EXPECT_EQ(cache->match(space, {wide.data(), 200, true}).tokens, 200);
  wide[150] += int64_t{1} << 32;
  EXPECT_EQ(cache->match(space, {wide.data(), 200, true}).knownTokens, 150);
  const Pages pages = newPages(200);
  free.assign(2000, 0);
  CacheEntry entry{pages.data(), pages.size(), 0, 0};
  auto refused = cache->insert(space, {wide.data(), 200, true}, entry,
                               free.data(), free.size());
  EXPECT_EQ(refused.status().message(),
            "state_cache: tokens: expected ids of 32 bits, got 4294967396 at "
            "150");
  wide[150] = -7;
  auto done = cache->insert(space, {wide.data(), 200, true}, entry, free.data(),
                            free.size());
  EXPECT_EQ(done->knownTokens, 150);
  audit();
  Tokens narrow(wide.begin(), wide.end());
  EXPECT_EQ(match(narrow).knownTokens, 200);
}

TEST_F(StateCacheTest, NamespacesHaveNothingInCommon) {
  make(8);
  const std::string salts[] = {"", "a", "b", std::string("a\0", 2),
                               std::string(kMaxSaltBytes, 'x')};
  int32_t expected = 1;
  for (uint64_t adapter : {0, 7})
    for (const std::string &salt : salts) {
      if (expected > 8)
        break;
      space = {adapter, salt.data(), salt.size()};
      EXPECT_EQ(match({1, 2, 3}).knownTokens, 0);
      EXPECT_EQ(insert({1, 2, 3}).knownTokens, 0);
      EXPECT_EQ(match({1, 2, 3}).slot, expected++);
    }
  // They go with the last of their nodes.
  space = {};
  EXPECT_EQ(cache->describe().numNodes, 16);
  evictPages(24);
  EXPECT_EQ(cache->describe().numNodes, 0);
}

TEST_F(StateCacheTest, DestroyingFreesTheSlots) {
  make(3);
  insert({1});
  insert({1, 2});
  CacheLock held = lock(match({1}).node);
  EXPECT_EQ(held.slot, 1);
  cache.reset();
  EXPECT_EQ(pool->numFree(SlotKind::request), 3);
}

// The steps of sglang's test of its cache for Mamba. There a split makes what
// is behind it the last used, so here the first branch is used once more.
TEST_F(StateCacheTest, PublishedCaseOfTombstones) {
  make(20, 64, 128);
  insert({1, 2, 3});
  EXPECT_EQ(insert({1, 2, 3, 4, 5, 6, 7}).knownTokens, 3);
  insert({10, 11, 12});
  EXPECT_EQ(insert({1, 2, 3, 4, 5, 60, 70}).knownTokens, 5);
  touch({1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(evictPages(1, 3), (Pages{1010, 1011, 1012}));
  EXPECT_EQ(match({10, 11, 12}).knownTokens, 0);
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(match({1, 2, 3, 4, 5}).tokens, 0);
  touch({1, 2, 3, 4, 5, 60, 70});
  touch({1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(match({1, 2, 3, 4, 5, 60, 70}).tokens, 7);
  EXPECT_EQ(match({1, 2, 3, 4, 5, 6, 7}).tokens, 7);
  EXPECT_EQ(evictCheckpoints(1), 1);
  EXPECT_EQ(match({1, 2, 3, 4, 5, 60, 70}).tokens, 0);
  EXPECT_EQ(match({1, 2, 3, 4, 5, 60, 70}).knownTokens, 7);
  // A copy on write: the sequence has a slot of its own with the same state.
  const CacheLock held = lock(match({1, 2, 3, 4, 5, 6, 7}).node);
  paint(*pool, held.slot, 42);
  const int32_t own = slot();
  ASSERT_TRUE(pool->copy(&held.slot, &own, 1, nullptr).isOk());
  EXPECT_EQ(colour(*pool, own), 42);
  EXPECT_TRUE(cache->checkWrites(&own, 1).isOk());
  EXPECT_EQ(cache->checkWrites(&held.slot, 1).message(),
            "state_cache: write_slots: expected slots of sequences, got " +
                std::to_string(held.slot) +
                " at 0, the checkpoint of 7 tokens");
}

// Situations of sglang's tests of its cache for attention.
TEST_F(StateCacheTest, PublishedCasesOfAttention) {
  make(1);
  insert({1, 2, 3}, false);
  EXPECT_EQ(cache->describe().numTokens, 3);
  insert({4, 5}, false);
  EXPECT_EQ(cache->describe().numTokens, 5);
  // Locked and not locked add up.
  CacheLock held = lock(match({1, 2, 3}).knownNode);
  EXPECT_EQ(cache->describe().lockedTokens, 3);
  EXPECT_EQ(evictPages(5).size(), 2u);
  EXPECT_EQ(unlock(held), "OK");
  EXPECT_EQ(cache->describe().lockedTokens, 0);
  EXPECT_EQ(evictPages(5), (Pages{1000, 1001, 1002}));
  EXPECT_EQ(cache->describe().numTokens, 0);
  // Prompts with one beginning.
  insert({1, 2, 3, 4, 5}, false);
  insert({1, 2, 3, 6, 7}, false);
  insert({1, 2, 8, 9}, false);
  EXPECT_EQ(cache->describe().numTokens, 9);
  EXPECT_EQ(match({1, 2, 3, 4, 5, 6}).knownTokens, 5);
  EXPECT_EQ(match({1, 2, 3, 6}).knownTokens, 4);
  EXPECT_EQ(match({1, 2, 9}).knownTokens, 2);
}

} // namespace
