// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state cache with a host tier on a GPU, over the stand-in of the driver:
// what waits for which copy, and what is left as it was after a failure.

#include "cuda_tier_test.h"
#include "gdnrt/state_cache.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

class CudaStateCache : public CudaTier {
protected:
  void SetUp() override {
    CudaTier::SetUp();
    shape.numRequests = 2;
  }
  void TearDown() override {
    cache.reset();
    CudaTier::TearDown();
  }
  void makeCache(bool debugChecks = false) {
    poolOptions.debugChecks = debugChecks;
    make();
    StateCacheOptions options;
    options.maxNodes = 16;
    options.maxTokens = 100;
    options.hasPages = false;
    options.stream = stream();
    options.tier = tier.get();
    options.hostMinTokens = 1;
    auto made = StateCache::make(*pool, options);
    ASSERT_TRUE(made.isOk()) << made.status().toString();
    cache = std::move(*made);
  }
  static TokenSpan span(const int32_t &token) { return {&token, 1, false}; }
  /// Inserts a token with a slot that a kernel fills.
  uint64_t keep(int32_t token, float value) {
    int32_t slot = 0;
    EXPECT_TRUE(*cache->takeSlots(1, &slot, false));
    launchFill(slot, value);
    auto done =
        cache->insert({}, span(token), {nullptr, 0, slot, 0}, nullptr, 0);
    EXPECT_TRUE(done.isOk() && done->slotTaken);
    return done->node;
  }
  /// Fetches a node, and has a kernel read it.
  void launchReadOf(uint64_t node, std::vector<float> &found) {
    CacheLock held = *cache->lock(node);
    ASSERT_TRUE(*cache->fetch(held));
    ASSERT_TRUE(tier->wait(&held.slot, 1, stream()).isOk());
    launchRead(held.slot, found);
    ASSERT_TRUE(cache->unlock(held).isOk());
    ASSERT_TRUE(auditCache(*cache).isOk());
  }

  std::unique_ptr<StateCache> cache;
};

} // namespace

// Two slots of the pool and two of the host for four states, and nobody waits
// for the device between the calls.
TEST_F(CudaStateCache, StatesGoAndComeInTheOrderOfStreams) {
  makeCache();
  const uint64_t a = keep(1, 10), b = keep(2, 20), c = keep(3, 30);
  std::vector<float> found;
  launchReadOf(a, found);
  launchReadOf(b, found);
  launchReadOf(c, found);
  launchReadOf(a, found);
  finishFakeStream(stream());
  EXPECT_EQ(found, (std::vector<float>{10, 11, 20, 21, 30, 31, 10, 11}));
}

TEST_F(CudaStateCache, ACopyAheadReadsWhatTheStepWrote) {
  makeCache();
  const uint64_t a = keep(1, 10);
  EXPECT_EQ(*cache->copyAhead(1), 1);
  // The slot goes at once, and its next owner waits for the copy.
  fakeCuda().calls.clear();
  EXPECT_EQ(*cache->evictCheckpoints(1), 1);
  EXPECT_EQ(fakeCuda().count("cuMemcpy2DAsync"), 0);
  (void)keep(2, 20);
  (void)keep(3, 30);
  std::vector<float> found;
  launchReadOf(a, found);
  finishFakeStream(stream());
  EXPECT_EQ(found, (std::vector<float>{10, 11}));
}

TEST_F(CudaStateCache, TheStepThatDoesNotReadItDoesNotWait) {
  makeCache();
  const uint64_t a = keep(1, 10);
  EXPECT_EQ(*cache->evictCheckpoints(1), 1);
  CacheLock held = *cache->lock(a);
  ASSERT_TRUE(*cache->fetch(held));
  finishFakeStream(stream());
  uint8_t over = 1;
  const int32_t host = cache->node(a)->hostSlot;
  ASSERT_TRUE(tier->isOver(&host, 1, &over).isOk());
  EXPECT_EQ(over, 0);
  ASSERT_TRUE(tier->wait(&held.slot, 1, stream()).isOk());
  finishFakeStream(stream());
  EXPECT_EQ(state(1, held.slot)[15], 11);
  ASSERT_TRUE(cache->unlock(held).isOk());
}

TEST_F(CudaStateCache, AFailureLeavesAllAsItWas) {
  makeCache();
  const uint64_t a = keep(1, 10);
  for (const char *call : {"cuMemcpy2DAsync", "cuStreamWaitEvent"}) {
    fakeCuda().failures = {{call, 1}};
    EXPECT_EQ(cache->evictCheckpoints(1).status().code(),
              StatusCode::deviceError);
    EXPECT_EQ(cache->copyAhead(1).status().code(), StatusCode::deviceError);
    fakeCuda().failures.clear();
    ASSERT_TRUE(auditCache(*cache).isOk());
    EXPECT_EQ(tier->numFree(), 2);
    EXPECT_NE(cache->node(a)->slot, 0);
  }
  EXPECT_EQ(*cache->evictCheckpoints(1), 1);
  for (const char *call : {"cuMemcpy2DAsync", "cuEventRecord"}) {
    CacheLock held = *cache->lock(a);
    fakeCuda().failures = {{call, 1}};
    EXPECT_EQ(cache->fetch(held).status().code(), StatusCode::deviceError);
    fakeCuda().failures.clear();
    EXPECT_TRUE(held.isOnHost);
    EXPECT_EQ(pool->numFree(SlotKind::request), 2);
    ASSERT_TRUE(cache->unlock(held).isOk());
    ASSERT_TRUE(auditCache(*cache).isOk());
  }
  fakeCuda().isCapturing = true;
  CacheLock held = *cache->lock(a);
  EXPECT_EQ(cache->fetch(held).status().code(), StatusCode::unsupported);
  fakeCuda().isCapturing = false;
  ASSERT_TRUE(cache->unlock(held).isOk());
  std::vector<float> found;
  launchReadOf(a, found);
  finishFakeStream(stream());
  EXPECT_EQ(found, (std::vector<float>{10, 11}));
}

// Debug checks fill slots that are freed. Where the device refuses that nobody
// would know of the slots any more.
TEST_F(CudaStateCache, NoSlotIsLostWhereDebugChecksFail) {
  makeCache(/*debugChecks=*/true);
  auto fails = [](const char *call) { fakeCuda().failures[call] = 1; };
  const uint64_t a = keep(1, 10), b = keep(2, 20);
  EXPECT_EQ(pool->numFree(SlotKind::request), 0);
  fails("cuMemsetD2D8Async");
  fails("cuMemsetD8Async");
  EXPECT_EQ(*cache->evictCheckpoints(1), 1);
  EXPECT_EQ(pool->numFree(SlotKind::request), 1);
  // One that was taken for a load that fails.
  CacheLock held = *cache->lock(a);
  fails("cuMemcpy2DAsync");
  EXPECT_FALSE(cache->fetch(held).isOk());
  EXPECT_EQ(pool->numFree(SlotKind::request), 1);
  ASSERT_TRUE(cache->unlock(held).isOk());
  int32_t host = cache->node(a)->hostSlot, slot = 0;
  EXPECT_FALSE(tier->swapIn(&host, 1, stream(), &slot).isOk());
  EXPECT_EQ(pool->numFree(SlotKind::request), 1);
  EXPECT_NE(cache->node(b)->slot, 0);
  cache.reset();
  EXPECT_EQ(pool->numFree(SlotKind::request), 2);
  fakeCuda().failures.clear();
}
