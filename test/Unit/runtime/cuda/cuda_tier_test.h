// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool and a host tier on the stand-in of the driver, with lazy streams, and
// kernels that fill and read slots.

#ifndef GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_TIER_TEST_H
#define GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_TIER_TEST_H

#include "cuda_test.h"
#include "fake_streams.h"
#include "gdnrt/host_tier.h"

#include <algorithm>

namespace gdnrt::test {

class CudaTier : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    shape.numLayers = 2;
    shape.numRequests = 1;
    shape.keyHeads = shape.valueHeads = 1;
    shape.keyDim = shape.valueDim = 4;
    options.numSlots = 2;
  }
  void TearDown() override {
    tier.reset();
    pool.reset();
    setFakeStreamsLazy(false);
    EXPECT_EQ(fakeCuda().pinned, 0);
    EXPECT_EQ(fakeCuda().events, 0);
    CudaTest::TearDown();
  }
  void make() {
    auto made = StatePool::make(makeDevice(), shape, poolOptions);
    ASSERT_TRUE(made.isOk()) << made.status().toString();
    pool = std::move(*made);
    auto tierMade = HostTier::make(pool, options);
    ASSERT_TRUE(tierMade.isOk()) << tierMade.status().toString();
    tier = std::move(*tierMade);
    setFakeStreamsLazy(true);
  }
  float *state(int64_t layer, int32_t slot) {
    const Argument view = *pool->view(PoolBuffer::state, layer);
    return static_cast<float *>(view.data) + slot * view.strides[0];
  }
  /// What a kernel on the stream of the steps would do.
  void launchFill(int32_t slot, float value) {
    runOnFakeStream(stream(), [this, slot, value] {
      for (int64_t layer = 0; layer < shape.numLayers; ++layer)
        std::fill_n(state(layer, slot), 16, value + static_cast<float>(layer));
    });
  }
  /// A kernel that reads a slot.
  void launchRead(int32_t slot, std::vector<float> &found) {
    runOnFakeStream(stream(), [this, slot, &found] {
      for (int64_t layer = 0; layer < shape.numLayers; ++layer)
        found.push_back(state(layer, slot)[15]);
    });
  }
  cuda::Stream stream() { return reinterpret_cast<cuda::Stream>(&steps); }

  int steps = 0;
  StatePoolShape shape;
  StatePoolOptions poolOptions;
  HostTierOptions options;
  std::shared_ptr<StatePool> pool;
  std::unique_ptr<HostTier> tier;
};

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_TIER_TEST_H
