// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host tiers on a GPU, over the stand-in of the driver, whose streams do
// nothing before they have to: an order that is missing gives wrong states.

#include "cuda_tier_test.h"

#include <cstdlib>

using namespace gdnrt;
using namespace gdnrt::test;

TEST_F(CudaTier, TakesPinnedMemoryOnce) {
  const int64_t events = fakeCuda().events;
  make();
  EXPECT_EQ(fakeCuda().pinned, 1);
  EXPECT_EQ(fakeCuda().count("cuStreamCreate"), 1);
  // One for each host slot, and one for what was launched before.
  EXPECT_EQ(fakeCuda().events, events + 3);
}

TEST_F(CudaTier, StoresWhatTheStepWroteBeforeItIsOverwritten) {
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  launchFill(slot, 5);
  ASSERT_TRUE(*tier->swapOut(&slot, 1, stream(), &host));
  uint8_t over = 1;
  ASSERT_TRUE(tier->isOver(&host, 1, &over).isOk());
  EXPECT_EQ(over, 0);
  // The next owner has the slot at once, and zeroes it.
  int32_t next = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &next, true, stream()));
  EXPECT_EQ(next, slot);
  launchFill(next, 7);
  // The stream of the steps goes on as far as it can.
  finishFakeStream(stream());
  EXPECT_EQ(state(0, slot)[0], 7);
  ASSERT_TRUE(pool->free(&next, 1, stream()).isOk());
  ASSERT_TRUE(*tier->swapIn(&host, 1, stream(), &slot));
  std::vector<float> found;
  launchRead(slot, found);
  finishFakeStream(stream());
  EXPECT_EQ(found, (std::vector<float>{5, 6}));
}

TEST_F(CudaTier, NextOwnerWithoutZeros) {
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  launchFill(slot, 5);
  ASSERT_TRUE(*tier->swapOut(&slot, 1, stream(), &host));
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, false, stream()));
  launchFill(slot, 7);
  finishFakeStream(stream());
  ASSERT_TRUE(tier->synchronize(&host, 1).isOk());
  ASSERT_TRUE(tier->load(&host, &slot, 1, stream()).isOk());
  ASSERT_TRUE(tier->wait(&slot, 1, stream()).isOk());
  std::vector<float> found;
  launchRead(slot, found);
  finishFakeStream(stream());
  EXPECT_EQ(found, (std::vector<float>{5, 6}));
}

// A load begins after the kernels that used the slot before, and the caller
// says when it has to have ended.
TEST_F(CudaTier, LoadsBesideTheSteps) {
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  ASSERT_TRUE(*tier->allocate(1, &host));
  launchFill(slot, 5);
  ASSERT_TRUE(tier->store(&slot, &host, 1, stream()).isOk());
  ASSERT_TRUE(tier->wait(&slot, 1, stream()).isOk());
  launchFill(slot, 7);
  std::vector<float> before, after;
  launchRead(slot, before);
  ASSERT_TRUE(tier->load(&host, &slot, 1, stream()).isOk());
  // Whatever the copy stream does now, the read is before it.
  ASSERT_TRUE(tier->synchronize(&host, 1).isOk());
  EXPECT_EQ(before, (std::vector<float>{7, 8}));
  ASSERT_TRUE(tier->wait(&slot, 1, stream()).isOk());
  launchRead(slot, after);
  finishFakeStream(stream());
  EXPECT_EQ(after, (std::vector<float>{5, 6}));
}

// Host slots change owners while copies are under way.
TEST_F(CudaTier, HostSlotsAreUsedAgainAtOnce) {
  shape.numRequests = 3;
  options.numSlots = 1;
  make();
  int32_t slots[3], host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 3, slots, true, stream()));
  launchFill(slots[0], 5);
  launchFill(slots[1], 7);
  ASSERT_TRUE(*tier->allocate(1, &host));
  ASSERT_TRUE(tier->store(slots, &host, 1, stream()).isOk());
  ASSERT_TRUE(tier->load(&host, slots + 2, 1, stream()).isOk());
  ASSERT_TRUE(tier->free(&host, 1).isOk());
  ASSERT_TRUE(*tier->allocate(1, &host));
  ASSERT_TRUE(tier->store(slots + 1, &host, 1, stream()).isOk());
  ASSERT_TRUE(tier->wait(slots + 2, 1, stream()).isOk());
  std::vector<float> found;
  launchRead(slots[2], found);
  ASSERT_TRUE(tier->load(&host, slots, 1, stream()).isOk());
  ASSERT_TRUE(tier->wait(slots, 1, stream()).isOk());
  launchRead(slots[0], found);
  finishFakeStream(stream());
  EXPECT_EQ(found, (std::vector<float>{5, 6, 7, 8}));
}

// Copies, resets and forks of the pool wait by themselves.
TEST_F(CudaTier, ThePoolWaits) {
  shape.numRequests = 3;
  make();
  int32_t slots[2], host = 0, fork = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 2, slots, true, stream()));
  ASSERT_TRUE(*tier->allocate(1, &host));
  launchFill(slots[0], 5);
  ASSERT_TRUE(tier->store(slots, &host, 1, stream()).isOk());
  ASSERT_TRUE(pool->reset(slots, 1, stream()).isOk());
  finishFakeStream(stream());
  EXPECT_EQ(state(0, slots[0])[0], 0);
  ASSERT_TRUE(tier->load(&host, slots, 1, stream()).isOk());
  ASSERT_TRUE(pool->copy(slots, slots + 1, 1, stream()).isOk());
  ASSERT_TRUE(*pool->fork(slots[0], &fork, stream()));
  finishFakeStream(stream());
  EXPECT_EQ(state(1, slots[1])[3], 6);
  EXPECT_EQ(state(1, fork)[3], 6);
}

// A graph cannot wait for copies outside of it; later it does not have to.
TEST_F(CudaTier, ThePoolRefusesACaptureBesideACopy) {
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  ASSERT_TRUE(*tier->allocate(1, &host));
  ASSERT_TRUE(tier->store(&slot, &host, 1, stream()).isOk());
  fakeCuda().isCapturing = true;
  EXPECT_EQ(pool->reset(&slot, 1, stream()).toString(),
            "UNSUPPORTED: copies of a host tier: expected a stream that is not "
            "captured");
  ASSERT_TRUE(tier->synchronize(&host, 1).isOk());
  EXPECT_EQ(pool->reset(&slot, 1, stream()).toString(), "OK");
  fakeCuda().isCapturing = false;
}

TEST_F(CudaTier, RoundsInTheOrderOfTheCopyStream) {
  options.format = StateFormat::bf16;
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  launchFill(slot, 1.00390625f); // 1 + 2^-8, between two numbers of bf16
  ASSERT_TRUE(*tier->swapOut(&slot, 1, stream(), &host));
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  finishFakeStream(stream());
  ASSERT_TRUE(tier->load(&host, &slot, 1, stream()).isOk());
  ASSERT_TRUE(tier->wait(&slot, 1, stream()).isOk());
  std::vector<float> found;
  launchRead(slot, found);
  finishFakeStream(stream());
  EXPECT_EQ(found, (std::vector<float>{1, 2}));
}

// All layers of a buffer, and with layers next to each other the same.
TEST_F(CudaTier, OneCopyForABuffer) {
  for (bool isAdjacent : {false, true}) {
    if (isAdjacent) {
      shape.stateLayerStride = 16;
      shape.stateSlotStride = 16 * shape.numLayers;
    }
    TearDown();
    SetUp();
    make();
    int32_t slot = 0, host = 0;
    ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
    fakeCuda().calls.clear();
    ASSERT_TRUE(*tier->swapOut(&slot, 1, stream(), &host));
    ASSERT_TRUE(*tier->swapIn(&host, 1, stream(), &slot));
    EXPECT_EQ(fakeCuda().count("cuMemcpy2DAsync"), isAdjacent ? 2 : 4);
    EXPECT_EQ(fakeCuda().count("cuMemcpyDtoHAsync"), isAdjacent ? 1 : 0);
    EXPECT_EQ(fakeCuda().count("cuMemcpyHtoDAsync"), isAdjacent ? 1 : 0);
  }
}

TEST_F(CudaTier, AStreamOfTheCaller) {
  int copies = 0;
  options.copyStream = &copies;
  make();
  EXPECT_EQ(fakeCuda().count("cuStreamCreate"), 0);
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  launchFill(slot, 5);
  ASSERT_TRUE(*tier->swapOut(&slot, 1, stream(), &host));
  finishFakeStream(reinterpret_cast<cuda::Stream>(&copies));
  uint8_t over = 0;
  ASSERT_TRUE(tier->isOver(&host, 1, &over).isOk());
  EXPECT_EQ(over, 1);
  fakeCuda().isCapturing = true;
  EXPECT_EQ(tier->wait(&slot, 1, stream()).toString(),
            "UNSUPPORTED: host_tier: expected a stream that is not captured");
  fakeCuda().isCapturing = false;
}

TEST_F(CudaTier, FailuresAreTheDriver) {
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  ASSERT_TRUE(*tier->allocate(1, &host));
  for (auto [call, message] :
       {std::pair("cuMemcpy2DAsync", "store: cuMemcpy2DAsync"),
        {"cuEventRecord", "event: cuEventRecord"},
        {"cuStreamWaitEvent", "event: cuStreamWaitEvent"}}) {
    fakeCuda().failures = {{call, 1}};
    EXPECT_EQ(tier->store(&slot, &host, 1, stream()).toString(),
              "DEVICE_ERROR: " + std::string(message) +
                  ": CUDA_ERROR_INVALID_VALUE (1): invalid argument");
    fakeCuda().failures.clear();
    // Nothing was stored.
    EXPECT_EQ(tier->load(&host, &slot, 1, stream()).code(),
              StatusCode::invalidArgument);
  }
  fakeCuda().failures = {{"cuMemHostAlloc", 2}};
  EXPECT_EQ(HostTier::make(pool, options).status().code(),
            StatusCode::outOfMemory);
  fakeCuda().failures = {{"cuEventCreate", 1}};
  EXPECT_EQ(HostTier::make(pool, options).status().code(),
            StatusCode::deviceError);
  fakeCuda().failures.clear();
}

// Copies without an event that says when they are over.
TEST_F(CudaTier, CopiesThatNoEventKnowsAreWaitedFor) {
  for (bool isLoad : {false, true}) {
    make();
    int32_t slot = 0, host = 0;
    ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
    ASSERT_TRUE(*tier->allocate(1, &host));
    launchFill(slot, 5);
    if (isLoad) {
      ASSERT_TRUE(tier->store(&slot, &host, 1, stream()).isOk());
      ASSERT_TRUE(tier->wait(&slot, 1, stream()).isOk());
    }
    // The first is of what was launched before.
    fakeCuda().failures = {{"cuEventRecord", 1}};
    fakeCuda().successes = {{"cuEventRecord", 1}};
    const Status status = isLoad ? tier->load(&host, &slot, 1, stream())
                                 : tier->store(&slot, &host, 1, stream());
    EXPECT_EQ(status.code(), StatusCode::deviceError);
    EXPECT_EQ(fakeWorkLeft(), 0u);
    fakeCuda().failures.clear();
    // The next owner may use the slot at once.
    ASSERT_TRUE(pool->free(&slot, 1, stream()).isOk());
    ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
    tier.reset();
    EXPECT_EQ(fakeCuda().pinned, 0);
    setFakeStreamsLazy(false);
  }
}

TEST_F(CudaTier, TheEndWaitsForCopiesThatNoEventKnows) {
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  ASSERT_TRUE(*tier->allocate(1, &host));
  fakeCuda().failures = {{"cuEventRecord", 1}, {"cuStreamSynchronize", 1}};
  fakeCuda().successes = {{"cuEventRecord", 1}};
  EXPECT_EQ(tier->store(&slot, &host, 1, stream()).code(),
            StatusCode::deviceError);
  EXPECT_GT(fakeWorkLeft(), 0u);
  fakeCuda().failures.clear();
  tier.reset();
  EXPECT_EQ(fakeWorkLeft(), 0u);
  EXPECT_EQ(fakeCuda().pinned, 0);
}

TEST_F(CudaTier, TheEndWaitsForTheStreamWhereEventsFail) {
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  ASSERT_TRUE(*tier->allocate(1, &host));
  ASSERT_TRUE(tier->store(&slot, &host, 1, stream()).isOk());
  fakeCuda().failures = {{"cuEventSynchronize", 1}};
  tier.reset();
  fakeCuda().failures.clear();
  EXPECT_EQ(fakeWorkLeft(), 0u);
  EXPECT_EQ(fakeCuda().pinned, 0);
}

// Where nothing says that copies are over they may come still.
TEST_F(CudaTier, MemoryThatMayBeInUseIsNotFreed) {
  make();
  int32_t slot = 0, host = 0;
  ASSERT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, true, stream()));
  ASSERT_TRUE(*tier->allocate(1, &host));
  ASSERT_TRUE(tier->store(&slot, &host, 1, stream()).isOk());
  fakeCuda().failures = {{"cuEventSynchronize", 1}, {"cuStreamSynchronize", 1}};
  tier.reset();
  fakeCuda().failures.clear();
  EXPECT_GT(fakeWorkLeft(), 0u);
  EXPECT_EQ(fakeCuda().pinned, 1);
  std::free(fakeCuda().lastPinned);
  fakeCuda().pinned = 0;
}
