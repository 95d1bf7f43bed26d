// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache on a small pool, whose pages are numbered from 1000 on in the order
// in which tokens come. Every change is followed by an audit.

#ifndef GDNRT_TEST_CACHE_TEST_H
#define GDNRT_TEST_CACHE_TEST_H

#include "gdnrt/state_cache.h"
#include "pool_test.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gdnrt::test {

using Tokens = std::vector<int32_t>;
using Pages = std::vector<int64_t>;

/// 1 layer with heads of 1 x 1.
inline StatePoolShape tinyShape(int64_t requests, int64_t track = 0) {
  StatePoolShape shape;
  shape.numLayers = shape.keyHeads = shape.valueHeads = 1;
  shape.keyDim = shape.valueDim = 1;
  shape.numRequests = requests;
  shape.numTrack = track;
  return shape;
}

/// first, first + 1, ...
inline Tokens count(int32_t first, int64_t size) {
  Tokens tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

struct Evicted {
  uint64_t node;
  int64_t tokens;
  int32_t slot;
};

class CacheTest : public ::testing::Test {
protected:
  /// Makes the pool and the cache.
  void make(int64_t slots, int64_t nodes = 64, int64_t tokens = 1024,
            int64_t pageTokens = 1, bool hasPages = true) {
    cache.reset();
    pool = makePool(tinyShape(slots));
    options.pageTokens = pageTokens;
    options.maxNodes = nodes;
    options.maxTokens = tokens;
    options.hasPages = hasPages;
    options.context = this;
    options.evicted = [](void *test, uint64_t node, int64_t tokens,
                         int32_t slot) {
      static_cast<CacheTest *>(test)->evicted.push_back({node, tokens, slot});
    };
    auto made = StateCache::make(*pool, options);
    ASSERT_TRUE(made.isOk()) << made.status().toString();
    cache = std::move(*made);
  }

  static TokenSpan span(const Tokens &tokens) {
    return {tokens.data(), static_cast<int64_t>(tokens.size()), false};
  }
  Pages newPages(size_t tokens) {
    Pages pages(options.hasPages
                    ? tokens / static_cast<size_t>(options.pageTokens)
                    : 0);
    for (int64_t &page : pages)
      page = nextPage++;
    return pages;
  }
  int32_t slot() { return take(*pool, 1)[0]; }

  /// Inserts, and frees a slot that was not taken. `free` has the free pages.
  CacheInserted insertPages(const Tokens &tokens, const Pages &pages,
                            int32_t slot, size_t more = 1000) {
    free.assign(pages.size() + more, -1);
    CacheEntry entry{pages.data(), pages.size(), slot, accepted};
    auto done =
        cache->insert(space, span(tokens), entry, free.data(), free.size());
    EXPECT_TRUE(done.isOk()) << done.status().toString();
    if (!done.isOk())
      return {};
    free.resize(done->numFreePages);
    if (slot != 0 && !done->slotTaken)
      EXPECT_EQ(freeAll(*pool, {slot}), "OK");
    audit();
    return *done;
  }
  CacheInserted insert(const Tokens &tokens, bool withSlot = true) {
    return insertPages(tokens, newPages(tokens.size()), withSlot ? slot() : 0);
  }
  std::string insertError(const Tokens &tokens, const Pages &pages,
                          int32_t slot, size_t capacity = 1000) {
    free.assign(capacity, -1);
    CacheEntry entry{pages.data(), pages.size(), slot, 0};
    auto done =
        cache->insert(space, span(tokens), entry, free.data(), capacity);
    audit();
    return done.status().toString();
  }
  CacheMatch match(const Tokens &tokens) const {
    return cache->match(space, span(tokens));
  }
  Pages pagesOf(uint64_t node, int64_t tokens) const {
    Pages pages(static_cast<size_t>(tokens / options.pageTokens));
    Status status = cache->pages(node, tokens, pages.data(), pages.size());
    EXPECT_TRUE(status.isOk()) << status.toString();
    return pages;
  }
  CacheLock lock(uint64_t node) {
    auto locked = cache->lock(node);
    EXPECT_TRUE(locked.isOk()) << locked.status().toString();
    audit();
    return locked.isOk() ? *locked : CacheLock();
  }
  std::string unlock(CacheLock &lock) {
    Status status = cache->unlock(lock);
    audit();
    return status.toString();
  }
  /// Makes a prefix the last used one.
  void touch(const Tokens &tokens) {
    CacheLock held = lock(match(tokens).node);
    EXPECT_EQ(unlock(held), "OK");
  }
  Pages evictPages(int64_t count, size_t capacity = 1000) {
    Pages pages(capacity);
    auto done = cache->evictPages(count, pages.data(), capacity);
    EXPECT_TRUE(done.isOk()) << done.status().toString();
    pages.resize(done.isOk() ? *done : 0);
    audit();
    return pages;
  }
  int64_t evictCheckpoints(int64_t count) {
    auto done = cache->evictCheckpoints(count);
    EXPECT_TRUE(done.isOk()) << done.status().toString();
    audit();
    return done.isOk() ? *done : -1;
  }
  std::vector<int64_t> take64(const Tokens &prompt, int64_t done, int64_t count,
                              int64_t taken = 0) {
    std::vector<int64_t> positions(kMaxCheckpoints);
    auto found = cache->checkpointsToTake(space, span(prompt), policy,
                                          {done, count, taken},
                                          positions.data(), positions.size());
    EXPECT_TRUE(found.isOk()) << found.status().toString();
    positions.resize(found.isOk() ? *found : 0);
    return positions;
  }
  void audit() const {
    Status status = auditCache(*cache);
    EXPECT_TRUE(status.isOk()) << status.toString();
  }

  std::shared_ptr<StatePool> pool;
  StateCacheOptions options;
  std::unique_ptr<StateCache> cache;
  CacheNamespace space;
  StateCachePolicy policy;
  int64_t nextPage = 1000;
  int32_t accepted = 0;
  /// Of the last insertion.
  Pages free;
  std::vector<Evicted> evicted;
};

} // namespace gdnrt::test

#endif // GDNRT_TEST_CACHE_TEST_H
