// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small cache with a host tier. Every change is followed by an audit.

#ifndef GDNRT_TEST_HOST_CACHE_TEST_H
#define GDNRT_TEST_HOST_CACHE_TEST_H

#include "cache_test.h"

#include <optional>

namespace gdnrt::test {

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

} // namespace gdnrt::test

#endif // GDNRT_TEST_HOST_CACHE_TEST_H
