// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random traces against the naive model, and queries of several threads beside
// each other. GDN has more traces in gdnrt_cache_traces.

#include "cache_model.h"
#include "cache_test.h"

#include <thread>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

TEST(StateCacheTracesTest, AgreeWithTheModel) {
  CacheCoverage coverage;
  for (uint64_t seed = 1; seed <= 50; ++seed)
    ASSERT_EQ(playCacheTrace(seed, coverage), "");
  for (uint64_t count :
       {coverage.inserted, coverage.duplicates, coverage.full, coverage.hits,
        coverage.locks, coverage.evictedPages, coverage.evictedCheckpoints,
        coverage.madeRoom, coverage.moved, coverage.fetched, coverage.leftHost})
    EXPECT_GT(count, 20u);
}

using StateCacheThreadsTest = CacheTest;

TEST_F(StateCacheThreadsTest, QueriesRunBesideEachOther) {
  make(8, 64, 4096);
  for (int32_t i = 0; i < 8; ++i) {
    Tokens tokens = count(0, 200);
    tokens[size_t(20 * i)] = -1;
    insert(tokens);
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int32_t round = 0; round < 200; ++round) {
        Tokens tokens = count(0, 200);
        tokens[size_t(20 * (round % 8))] = -1;
        const CacheMatch found = match(tokens);
        Pages pages(200);
        std::vector<int64_t> positions(64);
        wrong[size_t(thread)] +=
            found.tokens != 200 ||
            !cache->pages(found.node, 200, pages.data(), 200).isOk() ||
            !cache
                 ->checkpointsToTake(space, span(tokens), policy, {0, 200, 0},
                                     positions.data(), 64)
                 .isOk() ||
            cache->node(found.node)->tokens != 200 ||
            cache->describe().numCheckpoints != 8 ||
            !cache->checkWrites(&found.slot, 0).isOk() ||
            !auditCache(*cache).isOk();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

} // namespace
