// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State pools on the device: what zeroing, copies, forks and debug checks do to
// memory, byte by byte, in every layout, and what they leave alone. The memory
// is the caller's, with gaps, and mirrored on the host.

#include "gdn-c/state_pool.h"
#include "suite.h"

#include <algorithm>
#include <cstring>

using namespace gdnrt::cts;

namespace {

struct PoolLayout {
  const char *name;
  bool isSD;
  int64_t gap;
  /// Slot after slot with all layers, instead of layer after layer.
  bool isSlotMajor;
  int32_t dtype;
};

std::ostream &operator<<(std::ostream &os, const PoolLayout &layout) {
  return os << layout.name;
}

constexpr PoolLayout kPoolLayouts[] = {
    {"dense", false, 0, false, GDNRT_F32},
    {"byPosition", true, 0, false, GDNRT_F32},
    {"gaps", false, 40, false, GDNRT_BF16},
    {"slotMajor", false, 0, true, GDNRT_F32},
    {"slotMajorGaps", true, 24, true, GDNRT_F16},
};

/// 3 layers, 5 slots for requests, 2 to track.
class PoolCases : public ::testing::TestWithParam<PoolLayout> {
protected:
  static constexpr int64_t kLayers = 3, kSlots = 8, kChannels = 2 * 16 + 32;
  static constexpr int64_t kStateElements = 2 * 16 * 16;
  static constexpr int64_t kConvElements = kChannels * 3;

  /// A block of the device and what it has to hold.
  struct Memory {
    void *device = nullptr;
    Bytes expected;
    int64_t slotElements = 0, slotStride = 0, layerStride = 0;
  };

  void SetUp() override {
    device = makeDevice(1);
    bytes = GetParam().dtype == GDNRT_F32 ? 4 : 2;
    place(state, kStateElements);
    place(conv, kConvElements);
    options.num_layers = kLayers;
    options.num_requests = 5;
    options.num_track = 2;
    options.num_key_heads = 1;
    options.num_value_heads = 2;
    options.key_dim = options.value_dim = 16;
    options.conv_width = 4;
  }
  void TearDown() override {
    gdnrt_state_pool_destroy(pool);
    for (Memory *memory : {&state, &conv})
      ok(gdnrt_device_free(device, memory->device, &error));
    gdnrt_device_destroy(device);
  }
  void ok(gdnrt_status status) { ASSERT_EQ(status, GDNRT_OK) << error.message; }

  /// Every byte of a block differs from those around it.
  void place(Memory &memory, int64_t elements) {
    const PoolLayout &layout = GetParam();
    memory.slotElements = elements;
    memory.slotStride = elements + layout.gap;
    memory.layerStride = memory.slotStride * kSlots;
    if (layout.isSlotMajor) {
      memory.layerStride = memory.slotStride;
      memory.slotStride *= kLayers;
    }
    const auto size =
        static_cast<size_t>(kLayers * kSlots * (elements + layout.gap) * bytes);
    memory.expected.resize(size);
    for (size_t i = 0; i < size; ++i)
      memory.expected[i] = static_cast<uint8_t>(i * 131 + i / 251);
    ok(gdnrt_device_allocate(device, size, &memory.device, &error));
    ok(gdnrt_device_write(device, memory.device, memory.expected.data(), size,
                          &error));
  }
  void wrap(bool debugChecks) {
    options.debug_checks = debugChecks;
    const int64_t stateSizes[] = {kSlots, 2, 16, 16};
    const int64_t convSizes[] = {kSlots, kChannels, 3};
    const int64_t stateStrides[] = {state.slotStride, 256, 16, 1};
    const bool isSD = GetParam().isSD;
    const int64_t convStrides[] = {conv.slotStride, isSD ? 1 : 3,
                                   isSD ? kChannels : 1};
    gdnrt_arg states[kLayers], convs[kLayers];
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      auto at = [&](const Memory &memory) {
        return static_cast<uint8_t *>(memory.device) +
               layer * memory.layerStride * bytes;
      };
      states[layer] = {at(state),  GetParam().dtype, 4,
                       stateSizes, stateStrides,     0};
      convs[layer] = {at(conv), GetParam().dtype, 3, convSizes, convStrides, 0};
    }
    ok(gdnrt_state_pool_wrap(device, &options, states, convs, &pool, &error));
  }

  /// The bytes of a slot in the mirror.
  uint8_t *slotOf(Memory &memory, int64_t layer, int32_t slot) {
    return memory.expected.data() +
           (layer * memory.layerStride + slot * memory.slotStride) * bytes;
  }
  template <typename Change> void expectChange(Change &&change) {
    for (Memory *memory : {&state, &conv})
      for (int64_t layer = 0; layer < kLayers; ++layer)
        change(*memory, layer,
               static_cast<size_t>(memory->slotElements * bytes));
  }
  void expectFilled(const std::vector<int32_t> &slots, uint8_t value) {
    expectChange([&](Memory &memory, int64_t layer, size_t size) {
      for (int32_t slot : slots)
        std::memset(slotOf(memory, layer, slot), value, size);
    });
  }
  void expectCopied(int32_t from, int32_t to) {
    expectChange([&](Memory &memory, int64_t layer, size_t size) {
      std::memcpy(slotOf(memory, layer, to), slotOf(memory, layer, from), size);
    });
  }
  void compare() {
    ok(gdnrt_device_synchronize(device, nullptr, &error));
    for (Memory *memory : {&state, &conv}) {
      Bytes found(memory->expected.size());
      ok(gdnrt_device_read(device, found.data(), memory->device, found.size(),
                           &error));
      auto differing =
          std::mismatch(found.begin(), found.end(), memory->expected.begin());
      EXPECT_TRUE(differing.first == found.end())
          << (memory == &state ? "states" : "windows") << ", byte "
          << differing.first - found.begin();
    }
  }

  gdnrt_device *device = nullptr;
  gdnrt_state_pool *pool = nullptr;
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  gdnrt_error error = {};
  int64_t bytes = 4;
  Memory state, conv;
};

} // namespace

INSTANTIATE_TEST_SUITE_P(Cts, PoolCases, ::testing::ValuesIn(kPoolLayouts),
                         [](const auto &info) { return info.param.name; });

TEST_P(PoolCases, WrappingChangesNothing) {
  wrap(false);
  compare();
}

TEST_P(PoolCases, NewSlotsAreZeroIfAsked) {
  wrap(false);
  int32_t slots[3] = {}, track = 0, taken = 0;
  ok(gdnrt_state_pool_allocate(pool, 3, 1, nullptr, slots, &taken, &error));
  expectFilled({slots[0], slots[1], slots[2]}, 0);
  ok(gdnrt_state_pool_allocate(pool, 1, 0, nullptr, slots, &taken, &error));
  ok(gdnrt_state_pool_allocate_track(pool, 1, 1, nullptr, &track, &taken,
                                     &error));
  expectFilled({track}, 0);
  compare();
}

TEST_P(PoolCases, ResetsAndPaddingIsPassedOver) {
  wrap(false);
  const int32_t slots[] = {5, 0, -1, 2, 3, 7};
  ok(gdnrt_state_pool_reset(pool, slots, 6, nullptr, &error));
  expectFilled({5, 2, 3, 7}, 0);
  compare();
}

TEST_P(PoolCases, CopiesAndForks) {
  wrap(false);
  const int32_t from[] = {4, 4, 0, 3, 2}, to[] = {1, 7, 5, -1, 2};
  ok(gdnrt_state_pool_copy(pool, from, to, 5, nullptr, &error));
  expectCopied(4, 1);
  expectCopied(4, 7);
  compare();
  int32_t fork = 0, taken = 0;
  ok(gdnrt_state_pool_fork(pool, 7, nullptr, &fork, &taken, &error));
  expectCopied(7, fork);
  compare();
}

TEST_P(PoolCases, RefusedCallsTouchNothing) {
  wrap(true);
  int32_t slot = 0, taken = 0;
  ok(gdnrt_state_pool_allocate(pool, 1, 0, nullptr, &slot, &taken, &error));
  const int32_t past[] = {slot, 8}, isFree[] = {slot, 3};
  EXPECT_EQ(gdnrt_state_pool_reset(pool, past, 2, nullptr, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_state_pool_reset(pool, isFree, 2, nullptr, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_state_pool_copy(pool, past, isFree, 2, nullptr, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_state_pool_free(pool, isFree, 2, nullptr, &error),
            GDNRT_INVALID_ARGUMENT);
  int32_t many[6];
  ok(gdnrt_state_pool_allocate(pool, 6, 1, nullptr, many, &taken, &error));
  EXPECT_EQ(taken, 0);
  compare();
}

TEST_P(PoolCases, DebugChecksFillFreedSlots) {
  wrap(true);
  int32_t slots[3] = {}, taken = 0;
  ok(gdnrt_state_pool_allocate(pool, 3, 0, nullptr, slots, &taken, &error));
  ok(gdnrt_state_pool_free(pool, slots + 1, 1, nullptr, &error));
  expectFilled({slots[1]}, 0xff);
  compare();
}

TEST_P(PoolCases, OwnMemoryBeginsWithZeros) {
  const PoolLayout &layout = GetParam();
  options.state_dtype = options.conv_dtype = layout.dtype;
  options.conv_layout = layout.isSD ? GDNRT_CONV_SD : GDNRT_CONV_DS;
  options.pending_tokens = 2;
  ok(gdnrt_state_pool_create(device, &options, &pool, &error));
  for (int32_t buffer = GDNRT_POOL_STATE; buffer <= GDNRT_POOL_PENDING_DECAYS;
       ++buffer)
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      gdnrt_arg view;
      ok(gdnrt_state_pool_view(pool, buffer, layer, &view, &error));
      Bytes found(static_cast<size_t>(view.strides[0] * kSlots * bytes), 1);
      ok(gdnrt_device_read(device, found.data(), view.data, found.size(),
                           &error));
      EXPECT_EQ(found, Bytes(found.size(), 0)) << buffer;
    }
}
