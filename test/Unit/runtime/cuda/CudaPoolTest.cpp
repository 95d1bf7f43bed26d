// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State pools in the memory of a GPU, over the stand-in of the driver: work on
// slots is asynchronous, without waits and allocations.

#include "cuda_test.h"
#include "gdnrt/state_pool.h"

#include <algorithm>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

class CudaPool : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    shape.numLayers = 2;
    shape.numRequests = 3;
    shape.keyHeads = shape.valueHeads = 1;
    shape.keyDim = shape.valueDim = 4;
  }
  std::unique_ptr<StatePool> make() {
    auto made = StatePool::make(makeDevice(), shape, {});
    EXPECT_TRUE(made.isOk()) << made.status().toString();
    return std::move(*made);
  }
  StatePoolShape shape;
};

} // namespace

TEST_F(CudaPool, WorksInTheOrderOfAStream) {
  int allocations = fakeCuda().allocations;
  auto pool = make();
  EXPECT_EQ(fakeCuda().allocations, allocations + 1);
  fakeCuda().calls.clear();
  int32_t slots[2], fork = 0;
  int stream = 0;
  EXPECT_TRUE(*pool->allocate(SlotKind::request, 2, slots, true, &stream));
  // Two layers of states and windows; neighbouring slots at once.
  EXPECT_EQ(fakeCuda().count("cuMemsetD8Async"), 4);
  EXPECT_TRUE(*pool->fork(2, &fork, &stream));
  // All layers at once.
  EXPECT_EQ(fakeCuda().count("cuMemcpy2DAsync"), 2);
  EXPECT_EQ(fakeCuda().count("cuMemcpyDtoDAsync"), 0);
  EXPECT_EQ(fakeCuda().count("cuStreamSynchronize"), 0);
  EXPECT_EQ(fakeCuda().count("cuMemAlloc"), 0);
  // The memory of the stand-in is the host's.
  Argument view = *pool->view(PoolBuffer::state, 1);
  auto *state = static_cast<float *>(view.data);
  state[fork * view.strides[0]] = 5;
  EXPECT_TRUE(pool->copy(&fork, slots, 1, &stream).isOk());
  EXPECT_EQ(state[slots[0] * view.strides[0]], 5);
  view = *pool->view(PoolBuffer::state, 0);
  EXPECT_EQ(static_cast<float *>(view.data)[slots[0] * view.strides[0]], 0);
  pool.reset();
  EXPECT_EQ(fakeCuda().allocations, allocations);
}

// One layer has no rows.
TEST_F(CudaPool, CopiesLayerByLayer) {
  shape.numLayers = 1;
  auto pool = make();
  int32_t slots[2];
  EXPECT_TRUE(*pool->allocate(SlotKind::request, 2, slots, true, nullptr));
  fakeCuda().calls.clear();
  EXPECT_TRUE(pool->copy(&slots[0], &slots[1], 1, nullptr).isOk());
  EXPECT_EQ(fakeCuda().count("cuMemcpyDtoDAsync"), 2);
  EXPECT_EQ(fakeCuda().count("cuMemcpy2DAsync"), 0);
}

TEST_F(CudaPool, IsZeroedWhenItIsThere) {
  fakeCuda().calls.clear();
  auto pool = make();
  // Whatever stream uses it first.
  const auto &calls = fakeCuda().calls;
  auto last = [&](const char *name) {
    return std::find(calls.rbegin(), calls.rend(), name) - calls.rbegin();
  };
  EXPECT_EQ(fakeCuda().count("cuMemsetD8Async"), 1);
  EXPECT_LT(last("cuStreamSynchronize"), last("cuMemsetD8Async"));
  fakeCuda().failures = {{"cuStreamSynchronize", 700}};
  EXPECT_EQ(StatePool::make(makeDevice(), shape, {}).status().code(),
            StatusCode::deviceError);
}

TEST_F(CudaPool, FailuresAreTheDriver) {
  auto pool = make();
  int32_t slot = 0;
  EXPECT_TRUE(*pool->allocate(SlotKind::request, 1, &slot, false, nullptr));
  fakeCuda().failures = {{"cuMemcpy2DAsync", 1}, {"cuMemsetD8Async", 1}};
  EXPECT_EQ(pool->reset(&slot, 1, nullptr).toString(),
            "DEVICE_ERROR: fill: cuMemsetD8Async: CUDA_ERROR_INVALID_VALUE "
            "(1): invalid argument");
  EXPECT_EQ(
      pool->fork(slot, &slot, nullptr).status().toString(),
      "DEVICE_ERROR: copy: cuMemcpy2DAsync: CUDA_ERROR_INVALID_VALUE (1): "
      "invalid argument");
  EXPECT_EQ(pool->numFree(SlotKind::request), 2);
  EXPECT_EQ(StatePool::make(makeDevice(), shape, {}).status().code(),
            StatusCode::deviceError);
  fakeCuda().failures = {{"cuMemAlloc", 2}};
  EXPECT_EQ(StatePool::make(makeDevice(), shape, {}).status().code(),
            StatusCode::outOfMemory);
}
