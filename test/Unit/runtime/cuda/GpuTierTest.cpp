// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host tiers on a real GPU: states come back while their slots have other
// owners, and the rate of copies is printed. Skipped where there is no GPU.

#include "gdn-c/state_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <vector>

namespace {

constexpr int64_t kLayers = 8, kElements = 32 * 128 * 128;
constexpr size_t kSlots = 4;

class GpuTier : public ::testing::Test {
protected:
  void SetUp() override {
    const gdnrt_status status =
        gdnrt_device_create_cuda(nullptr, &device, &error);
    if (status == GDNRT_UNSUPPORTED)
      GTEST_SKIP() << error.message;
    ASSERT_EQ(status, GDNRT_OK) << error.message;
    gdnrt_state_pool_options shape = gdnrt_state_pool_options_default();
    shape.num_layers = kLayers;
    shape.num_requests = kSlots;
    shape.num_key_heads = 16;
    shape.num_value_heads = 32;
    shape.key_dim = shape.value_dim = 128;
    shape.conv_width = 4;
    shape.conv_dtype = GDNRT_BF16;
    ASSERT_EQ(gdnrt_state_pool_create(device, &shape, &pool, &error), GDNRT_OK)
        << error.message;
  }
  void TearDown() override {
    gdnrt_host_tier_destroy(tier);
    gdnrt_state_pool_destroy(pool);
    gdnrt_device_destroy(device);
  }
  void makeTier(int32_t format) {
    gdnrt_host_tier_destroy(tier);
    tier = nullptr;
    gdnrt_host_tier_options options = gdnrt_host_tier_options_default();
    options.num_slots = kSlots;
    options.format = format;
    ASSERT_EQ(gdnrt_host_tier_create(pool, &options, &tier, &error), GDNRT_OK)
        << error.message;
  }
  float *state(int64_t layer, int32_t slot) {
    gdnrt_arg view;
    EXPECT_EQ(
        gdnrt_state_pool_view(pool, GDNRT_POOL_STATE, layer, &view, &error),
        GDNRT_OK);
    return static_cast<float *>(view.data) + slot * view.strides[0];
  }
  void write(int32_t slot, float value) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const std::vector<float> values(kElements,
                                      value + static_cast<float>(layer));
      EXPECT_EQ(gdnrt_device_write(device, state(layer, slot), values.data(),
                                   kElements * sizeof(float), &error),
                GDNRT_OK);
    }
  }
  /// How many elements are others than `write` left.
  int64_t countWrong(int32_t slot, float value) {
    int64_t wrong = 0;
    std::vector<float> values(kElements);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      EXPECT_EQ(gdnrt_device_read(device, values.data(), state(layer, slot),
                                  kElements * sizeof(float), &error),
                GDNRT_OK);
      for (float each : values)
        wrong += each != value + static_cast<float>(layer);
    }
    return wrong;
  }
  std::vector<int32_t> take(size_t count) {
    std::vector<int32_t> slots(count);
    int32_t taken = 0;
    EXPECT_EQ(gdnrt_state_pool_allocate(pool, count, 1, nullptr, slots.data(),
                                        &taken, &error),
              GDNRT_OK);
    EXPECT_EQ(taken, 1);
    return slots;
  }
  void check(gdnrt_status status) {
    ASSERT_EQ(status, GDNRT_OK) << error.message;
  }

  gdnrt_device *device = nullptr;
  gdnrt_state_pool *pool = nullptr;
  gdnrt_host_tier *tier = nullptr;
  gdnrt_error error = {};
};

} // namespace

// All slots go to the host, others zero and fill them at once, and all come
// back.
TEST_F(GpuTier, StatesComeBack) {
  makeTier(GDNRT_HOST_AS_POOL);
  for (int round = 0; round < 3; ++round) {
    std::vector<int32_t> slots = take(kSlots), hosts(kSlots);
    for (size_t i = 0; i < kSlots; ++i)
      write(slots[i], static_cast<float>(100 * round + 10 * i));
    int32_t taken = 0;
    check(gdnrt_host_tier_swap_out(tier, slots.data(), kSlots, nullptr,
                                   hosts.data(), &taken, &error));
    ASSERT_EQ(taken, 1);
    const std::vector<int32_t> others = take(kSlots);
    check(gdnrt_state_pool_reset(pool, others.data(), kSlots, nullptr, &error));
    check(gdnrt_state_pool_free(pool, others.data(), kSlots, nullptr, &error));
    check(gdnrt_host_tier_swap_in(tier, hosts.data(), kSlots, nullptr,
                                  slots.data(), &taken, &error));
    ASSERT_EQ(taken, 1);
    for (size_t i = 0; i < kSlots; ++i)
      EXPECT_EQ(countWrong(slots[i], static_cast<float>(100 * round + 10 * i)),
                0);
    check(gdnrt_state_pool_free(pool, slots.data(), kSlots, nullptr, &error));
  }
}

// More checkpoints than slots: each comes back as it was, several times, with
// nobody waiting for the device but the reads of the test.
TEST_F(GpuTier, ACacheMovesItsCheckpoints) {
  makeTier(GDNRT_HOST_AS_POOL);
  gdnrt_state_cache_options options = gdnrt_state_cache_options_default();
  options.page_tokens = 1;
  options.max_nodes = 64;
  options.max_tokens = 1000;
  options.host_tier = tier;
  options.host_min_tokens = 1;
  gdnrt_state_cache *cache = nullptr;
  check(gdnrt_state_cache_create(pool, &options, &cache, &error));
  constexpr int32_t prompts = 7;
  gdnrt_cache_tokens tokens = gdnrt_cache_tokens_default();
  tokens.token_bytes = 4;
  tokens.count = 1;
  int32_t prompt = 0, slot = 0, taken = 0;
  tokens.tokens = &prompt;
  for (; prompt < prompts; ++prompt) {
    check(gdnrt_state_cache_take_slots(cache, 1, 1, &slot, &taken, &error));
    ASSERT_EQ(taken, 1);
    write(slot, static_cast<float>(10 * prompt));
    gdnrt_cache_entry entry = gdnrt_cache_entry_default();
    entry.slot = slot;
    gdnrt_cache_inserted done = gdnrt_cache_inserted_default();
    check(gdnrt_state_cache_insert(cache, &tokens, &entry, nullptr, 0, &done,
                                   &error));
    ASSERT_EQ(done.slot_taken, 1);
  }
  for (int round = 0; round < 3; ++round)
    for (prompt = 0; prompt < prompts; ++prompt) {
      gdnrt_cache_match match = gdnrt_cache_match_default();
      check(gdnrt_state_cache_match(cache, &tokens, &match, &error));
      ASSERT_EQ(match.tokens, 1) << prompt;
      gdnrt_cache_lock lock = gdnrt_cache_lock_default();
      check(gdnrt_state_cache_lock(cache, match.node, &lock, &error));
      check(gdnrt_state_cache_fetch(cache, &lock, &taken, &error));
      ASSERT_EQ(taken, 1);
      check(gdnrt_host_tier_wait(tier, &lock.slot, 1, nullptr, &error));
      EXPECT_EQ(countWrong(lock.slot, static_cast<float>(10 * prompt)), 0);
      check(gdnrt_state_cache_unlock(cache, &lock, &error));
      int64_t copied = 0;
      check(gdnrt_state_cache_copy_ahead(cache, 1, &copied, &error));
      check(gdnrt_state_cache_audit(cache, &error));
    }
  gdnrt_state_cache_destroy(cache);
}

TEST_F(GpuTier, RatesOfCopies) {
  const std::vector<int32_t> slots = take(kSlots);
  for (auto [name, format] : {std::pair("as they are", GDNRT_HOST_AS_POOL),
                              {"bf16", GDNRT_HOST_BF16},
                              {"f16", GDNRT_HOST_F16},
                              {"i8x2", GDNRT_HOST_I8X2},
                              {"i8", GDNRT_HOST_I8}}) {
    makeTier(format);
    std::vector<int32_t> hosts(kSlots);
    int32_t taken = 0;
    check(gdnrt_host_tier_allocate(tier, kSlots, hosts.data(), &taken, &error));
    ASSERT_EQ(taken, 1);
    auto gigabytes = [&](auto &&copy) {
      double best = 0;
      for (int i = 0; i < 5; ++i) {
        const auto start = std::chrono::steady_clock::now();
        check(copy());
        check(gdnrt_host_tier_synchronize(tier, hosts.data(), kSlots, &error));
        const std::chrono::duration<double> took =
            std::chrono::steady_clock::now() - start;
        best =
            std::max(best, 4e-9 * kSlots * kLayers * kElements / took.count());
      }
      return best;
    };
    const double store = gigabytes([&] {
      return gdnrt_host_tier_store(tier, slots.data(), hosts.data(), kSlots,
                                   nullptr, &error);
    });
    const double load = gigabytes([&] {
      return gdnrt_host_tier_load(tier, hosts.data(), slots.data(), kSlots,
                                  nullptr, &error);
    });
    EXPECT_GT(store, 0);
    EXPECT_GT(load, 0);
    std::printf("states %s: %.1f GB/s of f32 stored, %.1f loaded\n", name,
                store, load);
  }
}
