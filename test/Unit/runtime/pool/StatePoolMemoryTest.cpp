// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the caller, and a device that refuses.

#include "pool_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// The arrays of a caller: one page per slot and layer, which holds the window
/// (bf16, [3, 16]: SD) at its start, then the state (f32, [2, 5, 3]), and 12
/// bytes that are nobody's.
struct WrappedPages {
  static constexpr int64_t kPage = 96 + 120 + 12, kSlots = 7, kLayers = 3;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kLayers * kSlots * kPage);
  int64_t stateSizes[4] = {kSlots, 2, 5, 3}, convSizes[3] = {kSlots, 16, 3};
  int64_t stateStrides[4] = {kPage / 4, 15, 3, 1};
  int64_t convStrides[3] = {kPage / 2, 1, 16};
  std::vector<Argument> states, convs;

  WrappedPages() {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      uint8_t *first = bytes.data() + layer * kSlots * kPage;
      convs.push_back({first, int32_t(DType::bf16), 3, convSizes, convStrides});
      states.push_back(
          {first + 96, int32_t(DType::f32), 4, stateSizes, stateStrides});
    }
  }
  Result<std::unique_ptr<StatePool>> wrap() {
    return StatePool::wrap(cpu(), smallShape(), states.data(), convs.data(),
                           {});
  }
  std::string error() { return wrap().status().toString(); }
};

/// A CPU whose fills and copies fail after the first `allowed` of them.
class FailingDevice final : public Device {
public:
  const DeviceProperties &properties() const override {
    return inner->properties();
  }
  Result<std::unique_ptr<LoadedCode>>
  load(const Image &image, size_t entry, std::optional<size_t> code) override {
    return inner->load(image, entry, code);
  }
  Status synchronize(void *stream) override {
    return inner->synchronize(stream);
  }
  Status fill(void *data, uint8_t value, uint64_t bytes,
              void *stream) override {
    if (allowed-- <= 0)
      return failure(StatusCode::deviceError, "fill: broken");
    return inner->fill(data, value, bytes, stream);
  }
  Status copy(void *to, const void *from, uint64_t bytes,
              void *stream) override {
    if (allowed-- <= 0)
      return failure(StatusCode::deviceError, "copy: broken");
    return inner->copy(to, from, bytes, stream);
  }
  Status upload(void *to, const void *from, uint64_t bytes,
                void *stream) override {
    return inner->upload(to, from, bytes, stream);
  }
  Result<void *> allocate(size_t bytes) override {
    if (bytes > mostBytes)
      return failure(StatusCode::outOfMemory, "no memory");
    return inner->allocate(bytes);
  }
  Status free(void *data) override { return inner->free(data); }
  Status write(void *to, const void *from, size_t bytes) override {
    return inner->write(to, from, bytes);
  }
  Status read(void *to, const void *from, size_t bytes) override {
    return inner->read(to, from, bytes);
  }

  std::shared_ptr<Device> inner = cpu();
  int allowed = 1 << 20;
  size_t mostBytes = 1 << 20;
};

} // namespace

TEST(StatePoolMemory, WrappedPages) {
  WrappedPages pages;
  std::fill(pages.bytes.begin(), pages.bytes.end(), uint8_t{0xaa});
  auto wrapped = pages.wrap();
  ASSERT_TRUE(wrapped.isOk()) << wrapped.status().toString();
  StatePool &pool = **wrapped;
  // Wrapping writes nothing.
  EXPECT_EQ(std::count(pages.bytes.begin(), pages.bytes.end(), 0xaa),
            static_cast<long>(pages.bytes.size()));
  EXPECT_EQ(pool.shape().convLayout, ConvLayout::sd);
  EXPECT_EQ(pool.shape().convDType, DType::bf16);
  EXPECT_EQ(pool.memoryBytes(), 3u * 7 * 216);
  EXPECT_EQ(pool.view(PoolBuffer::state, 1)->data, pages.states[1].data);

  paintAll(pool);
  EXPECT_EQ(take(pool, 1, /*zero=*/true), (Ids{1}));
  const Ids from = {5}, to = {3};
  EXPECT_TRUE(pool.copy(from.data(), to.data(), 1, nullptr).isOk());
  EXPECT_EQ(colours(pool), (std::vector<int>{1, 0, 3, 6, 5, 6, 7}));
  // The rest of each page is as it was.
  for (size_t page = 0; page < 21; ++page)
    for (size_t i = 216; i < 228; ++i)
      ASSERT_EQ(pages.bytes[page * 228 + i], 0xaa);
}

TEST(StatePoolMemory, LongerWindows) {
  WrappedPages pages;
  std::vector<float> conv(7 * 16 * 5);
  int64_t sizes[3] = {7, 16, 5};
  StatePoolShape shape = smallShape();
  shape.numLayers = 1;
  Argument wide = {conv.data(), int32_t(DType::f32), 3, sizes, nullptr};
  auto wrapped = StatePool::wrap(cpu(), shape, pages.states.data(), &wide, {});
  ASSERT_TRUE(wrapped.isOk()) << wrapped.status().toString();
  EXPECT_EQ((*wrapped)->shape().convExtra, 2);
  EXPECT_EQ((*wrapped)->view(PoolBuffer::conv, 0)->sizes[2], 3);
  EXPECT_EQ((*wrapped)->view(PoolBuffer::conv, 0)->strides[1], 5);
  // What pending tokens need besides is taken from the device.
  shape.pendingTokens = 2;
  wrapped = StatePool::wrap(cpu(), shape, pages.states.data(), &wide, {});
  ASSERT_TRUE(wrapped.isOk()) << wrapped.status().toString();
  paintAll(**wrapped);
  EXPECT_EQ(colours(**wrapped), (std::vector<int>{1, 2, 3, 4, 5, 6, 7}));
  shape.pendingTokens = 3;
  EXPECT_EQ(StatePool::wrap(cpu(), shape, pages.states.data(), &wide, {})
                .status()
                .toString(),
            "INVALID_ARGUMENT: state_pool: conv: expected 6 positions, got 5");
  // Deferred writes keep no inputs behind the window.
  shape.deferredWrites = true;
  wrapped = StatePool::wrap(cpu(), shape, pages.states.data(), &wide, {});
  ASSERT_TRUE(wrapped.isOk()) << wrapped.status().toString();
  EXPECT_EQ((*wrapped)->view(PoolBuffer::pendingCounts, 0)->sizes[0], 7);
}

TEST(StatePoolMemory, RefusesArrays) {
  {
    WrappedPages pages;
    pages.states[1].rank = 3;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: state of layer 1: "
                             "expected rank 4, got 3");
  }
  {
    WrappedPages pages;
    pages.convSizes[1] = 15;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: conv of layer 0: "
                             "expected size 16 of dim 1, got 15");
  }
  {
    WrappedPages pages;
    pages.convSizes[2] = 2;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: conv: expected at "
                             "least 3 positions, got 2");
  }
  {
    WrappedPages pages;
    pages.states[2].dtype = int32_t(DType::bf16);
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: state of layer 2: "
                             "expected dtype f32, that of layer 0, got bf16");
  }
  {
    WrappedPages pages;
    const int64_t strides[] = {2 * 16 * 3, 3, 1};
    pages.convs[1].strides = strides;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: conv of layer 1: "
                             "expected stride 114 of dim 0, that of layer 0, "
                             "got 96");
  }
  {
    WrappedPages pages;
    for (Argument &conv : pages.convs)
      conv.dtype = int32_t(DType::i32);
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: conv of layer 0: "
                             "expected dtype f32, bf16 or f16, got i32");
  }
  {
    WrappedPages pages;
    pages.states[0].data = nullptr;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: state of layer 0: "
                             "expected pointers to data and sizes, got null");
  }
  {
    WrappedPages pages;
    pages.states[0].data = static_cast<uint8_t *>(pages.states[0].data) + 2;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: state of layer 0: "
                             "the data is not aligned to its elements");
  }
}

TEST(StatePoolMemory, RefusesLayouts) {
  {
    // Gaps within a slot.
    WrappedPages pages;
    pages.stateStrides[1] = 16;
    EXPECT_EQ(pages.error(),
              "INVALID_ARGUMENT: state_pool: state: expected stride 15 of dim "
              "1, as the elements of a slot are dense, got 16");
  }
  {
    WrappedPages pages;
    pages.stateStrides[0] = 29;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: state: expected a "
                             "slot stride of at least 30 elements, got 29");
  }
  {
    // The window reaches into the state of its page.
    WrappedPages pages;
    pages.convs[1].data = static_cast<uint8_t *>(pages.convs[1].data) + 4;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: conv of layer 1 "
                             "overlaps state of layer 1");
  }
  {
    WrappedPages pages;
    pages.states[2].data = pages.states[0].data;
    EXPECT_EQ(pages.error(), "INVALID_ARGUMENT: state_pool: state of layer 2 "
                             "overlaps state of layer 0");
  }
}

TEST(StatePoolMemory, FailuresOfTheDeviceTakeNothing) {
  auto device = std::make_shared<FailingDevice>();
  auto made = StatePool::make(device, smallShape(), {/*debugChecks=*/true});
  ASSERT_TRUE(made.isOk());
  StatePool &pool = **made;
  take(pool, 1);
  int32_t slot = -7;
  device->allowed = 2;
  EXPECT_EQ(pool.allocate(SlotKind::request, 1, &slot, true, nullptr)
                .status()
                .toString(),
            "DEVICE_ERROR: fill: broken");
  device->allowed = 0;
  EXPECT_EQ(pool.fork(1, &slot, nullptr).status().toString(),
            "DEVICE_ERROR: copy: broken");
  EXPECT_EQ(pool.numFree(SlotKind::request), 3);
  EXPECT_EQ(freeAll(pool, {1}), "DEVICE_ERROR: fill: broken");
  // What is refused is not filled before.
  EXPECT_EQ(freeAll(pool, {1, 0}),
            "INVALID_ARGUMENT: state_pool: slot 0 is padding and cannot be "
            "freed");
  EXPECT_EQ(freeAll(pool, {1, 1}),
            "INVALID_ARGUMENT: state_pool: slot 1 occurs twice");
  EXPECT_TRUE(pool.isInUse(1));
  device->allowed = 0;
  EXPECT_EQ(StatePool::make(device, smallShape(), {}).status().toString(),
            "DEVICE_ERROR: fill: broken");
}

TEST(StatePoolMemory, DevicesMayHaveTooLittle) {
  auto device = std::make_shared<FailingDevice>();
  StatePoolShape shape = smallShape();
  shape.numRequests = 1 << 30;
  EXPECT_EQ(StatePool::make(device, shape, {}).status().toString(),
            "OUT_OF_MEMORY: no memory");
}

TEST(StatePoolMemory, FewCallsOfTheDevice) {
  auto device = std::make_shared<FailingDevice>();
  auto calls = [&](const StatePoolShape &shape, size_t count) {
    auto made = StatePool::make(device, shape, {});
    Ids slots(count);
    EXPECT_TRUE(*(*made)->allocate(SlotKind::request, count, slots.data(),
                                   false, nullptr));
    device->allowed = 1000;
    EXPECT_TRUE((*made)->reset(slots.data(), count, nullptr).isOk());
    return 1000 - device->allowed;
  };
  // Neighbouring slots at once; with all layers of a slot together, those.
  StatePoolShape shape = smallShape();
  EXPECT_EQ(calls(shape, 4), 3 * 2);
  shape.stateSlotStride = 90, shape.stateLayerStride = 30;
  shape.convSlotStride = 144, shape.convLayerStride = 48;
  EXPECT_EQ(calls(shape, 1), 2);
}
