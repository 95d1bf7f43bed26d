// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State pools in the memory of a GPU, over the stand-in of the driver: work on
// slots is asynchronous, without waits and allocations. With kernels a slot is
// one launch, and no ids go to the device in a capture or on other streams.

#include "cuda_test.h"
#include "gdnrt/state_pool.h"

#include <algorithm>
#include <cstring>

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

namespace {

/// A pool of 12 slots in two layers, and kernels of its states that the
/// stand-in runs.
class CudaPoolMoves : public CudaPool {
protected:
  static constexpr int64_t kElements = 16; // of a slot in a layer

  void SetUp() override {
    CudaPool::SetUp();
    shape.numRequests = 11;
    fakeCuda().parameterBytesOf = {{"copy_slots_kernel", 21 * 8},
                                   {"zero_slots_kernel", 18 * 8}};
    fakeCuda().run = [](const FakeLaunch &launch) {
      const int64_t *words = launch.words.data();
      const bool copies = launch.kernel == "copy_slots_kernel";
      const auto *from = reinterpret_cast<const int32_t *>(words[0]);
      const auto *to = reinterpret_cast<const int32_t *>(words[copies ? 3 : 0]);
      const int64_t *pool = words + (copies ? 6 : 3);
      for (int64_t n = 0; n < words[1]; ++n) {
        if (from[n] < 0 || to[n] < 0)
          continue;
        ASSERT_LT(std::max(from[n], to[n]), pool[1]);
        auto slot = [&](int32_t id) {
          return reinterpret_cast<float *>(pool[0]) + id * pool[5];
        };
        if (copies)
          std::memcpy(slot(to[n]), slot(from[n]), kElements * sizeof(float));
        else
          std::memset(slot(to[n]), 0, kElements * sizeof(float));
      }
    };
  }
  void TearDown() override {
    pool.reset();
    CudaPool::TearDown();
  }
  void makePool() {
    std::shared_ptr<Device> device = makeDevice();
    auto made = StatePool::make(device, shape, {});
    ASSERT_TRUE(made.isOk()) << made.status().toString();
    pool = std::move(*made);
    ImageBuilder builder;
    builder.blob({1});
    for (const char *name : {"copy_slots", "zero_slots"}) {
      EntryBuilder entry = builder.entry(name);
      entry.tensor("slots", fb::Access::read, fb::DType::i32, {"N"});
      if (*name == 'c')
        entry.tensor("write_slots", fb::Access::read, fb::DType::i32, {"N"});
      entry.pool("state_pool", fb::DType::f32, {"P", "Hv", "4", "4"});
      addGpuCode(entry, *builder.image.entries.back(),
                 std::string(name) + "_kernel", "sm_90a", fb::CodeFormat::cubin,
                 0);
    }
    const Bytes bytes = builder.build();
    auto image = Image::loadMemory(bytes.data(), bytes.size());
    ASSERT_TRUE(image.isOk()) << image.status().toString();
    Status status = pool->useKernels(loadKernel(device, **image, 0),
                                     loadKernel(device, **image, 1));
    ASSERT_TRUE(status.isOk()) << status.toString();
    int32_t slots[11];
    EXPECT_TRUE(*pool->allocate(SlotKind::request, 11, slots, false, nullptr));
    for (int32_t slot = 0; slot < 12; ++slot)
      for (int64_t layer = 0; layer < 2; ++layer)
        values[layer][slot] = *state(layer, slot) = float(slot + 100 * layer);
  }
  float *state(int64_t layer, int32_t slot) {
    Argument view = *pool->view(PoolBuffer::state, layer);
    return static_cast<float *>(view.data) + slot * view.strides[0];
  }
  /// Copies, in the pool and in `values`, and compares all slots.
  void copy(std::vector<int32_t> from, std::vector<int32_t> to, void *stream) {
    forget();
    Status status = pool->copy(from.data(), to.data(), from.size(), stream);
    EXPECT_TRUE(status.isOk()) << status.toString();
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] > 0 && to[i] > 0)
        for (auto &layer : values)
          layer[to[i]] = layer[from[i]];
    compare();
  }
  void reset(std::vector<int32_t> slots, void *stream) {
    forget();
    Status status = pool->reset(slots.data(), slots.size(), stream);
    EXPECT_TRUE(status.isOk()) << status.toString();
    for (int32_t slot : slots)
      if (slot > 0)
        for (auto &layer : values)
          layer[slot] = 0;
    compare();
  }
  void forget() {
    fakeCuda().calls.clear();
    fakeCuda().launches.clear();
  }
  void compare() {
    for (int64_t layer = 0; layer < 2; ++layer)
      for (int32_t slot = 0; slot < 12; ++slot)
        EXPECT_EQ(*state(layer, slot), values[layer][slot])
            << "layer " << layer << ", slot " << slot;
  }
  /// Launches, and copies of ids to the device, since the call began.
  std::pair<size_t, int> work() {
    return {fakeCuda().launches.size(), fakeCuda().count("cuMemcpyHtoDAsync")};
  }
  using Work = std::pair<size_t, int>;
  std::unique_ptr<StatePool> pool;
  float values[2][12] = {};
};

} // namespace

TEST_F(CudaPoolMoves, OneSlotIsALaunchOnAnyStream) {
  makePool();
  int streams[2];
  for (void *stream : {&streams[0], &streams[1]}) {
    copy({3}, {7}, stream);
    EXPECT_EQ(work(), Work(1, 0));
    EXPECT_EQ(fakeCuda().launches[0].config.stream, stream);
    EXPECT_EQ(fakeCuda().launches[0].words[1], 2); // both layers
    copy({-1, 5, 0, 9}, {4, 2, 6, 9}, stream);
    EXPECT_EQ(work(), Work(1, 0));
    reset({0, 11}, stream);
    EXPECT_EQ(work(), Work(1, 0));
  }
  copy({4, 0}, {4, 1}, nullptr);
  EXPECT_EQ(work(), Work(0, 0));
}

TEST_F(CudaPoolMoves, IdsOfManyGoAheadOnTheFirstStream) {
  makePool();
  int streams[2];
  copy({1, -1, 8}, {2, 3, 4}, &streams[0]);
  EXPECT_EQ(work(), Work(1, 1));
  reset({5, 6, 9}, &streams[0]);
  EXPECT_EQ(work(), Work(1, 1));
  // Launches of the first stream may still read theirs.
  copy({1, 2, 5, 0, 7}, {8, 9, 10, 3, 4}, &streams[1]);
  EXPECT_EQ(work(), Work(3, 0));
  reset({1, 2, 3, 7}, &streams[1]);
  EXPECT_EQ(work(), Work(2, 0));
}

TEST_F(CudaPoolMoves, ACaptureHasLaunchesAlone) {
  makePool();
  int stream = 0;
  fakeCuda().isCapturing = true;
  copy({1, 2, 3, 9}, {4, 5, 6, 7}, &stream);
  EXPECT_EQ(work(), Work(2, 0));
  reset({10, 2}, &stream);
  EXPECT_EQ(work(), Work(2, 0));
  fakeCuda().isCapturing = false;
  destroyFakeGraphs();
  copy({4, 8}, {1, 3}, &stream);
  EXPECT_EQ(work(), Work(1, 1));
}

TEST_F(CudaPoolMoves, FailuresAreTheDriver) {
  makePool();
  const int32_t from[] = {1, 5}, to[] = {3, 4};
  fakeCuda().failures = {{"cuLaunchKernelEx", 1}};
  EXPECT_EQ(pool->copy(from, to, 1, nullptr).toString(),
            "DEVICE_ERROR: copy_slots: copy_slots_kernel: cuLaunchKernelEx: "
            "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  fakeCuda().failures = {{"cuMemcpyHtoDAsync", 1}};
  EXPECT_EQ(pool->copy(from, to, 2, nullptr).toString(),
            "DEVICE_ERROR: upload: cuMemcpyHtoDAsync: CUDA_ERROR_INVALID_VALUE "
            "(1): invalid argument");
  compare();
}
