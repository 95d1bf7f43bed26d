// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools whose slots are moved by the entries of an image: every byte is what
// the device's fill and copy leave, in every layout, also where kernels know a
// part of a slot alone.

#include "gdn-c/state_pool.h"
#include "suite.h"

#include <cstdlib>

using namespace gdnrt::cts;

namespace {

class PoolMoveCases : public EntryTest {
protected:
  PoolMoveCases() : zero(EntryKind::zero, kernel) {}
  void SetUp() override {
    EntryTest::SetUp();
    if (!IsSkipped() && !zero.exists())
      GTEST_SKIP() << zero.refusal();
  }
  void TearDown() override {
    gdnrt_state_pool_destroy(moved);
    gdnrt_state_pool_destroy(filled);
  }
  void ok(gdnrt_status status) { ASSERT_EQ(status, GDNRT_OK) << error.message; }

  gdnrt_param_info param(const char *name) {
    size_t index = 0;
    gdnrt_param_info info = gdnrt_param_info_default();
    if (gdnrt_entry_find_param(kernel.entry(), name, &index, nullptr) ==
        GDNRT_OK)
      ok(gdnrt_entry_param(kernel.entry(), index, &info, &error));
    return info;
  }
  bool takesI32() { return param("slots").dtype == GDNRT_I32; }
  int32_t numPlanes() {
    return (param("state_scales").rank != 0) + (param("state_low").rank != 0);
  }

  /// 2 layers, 300 slots: more than one launch has.
  void makePools(int32_t layout, int64_t extra, int64_t pending,
                 bool isDeferred = false) {
    gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
    options.num_layers = 2;
    options.num_requests = 299;
    const gdnrt_param_info state = param("state_pool");
    const gdnrt_param_info conv = param("conv_pool");
    options.num_key_heads = options.num_value_heads = 1;
    options.value_dim = std::strtoll(state.dims[2], nullptr, 10);
    options.key_dim = std::strtoll(state.dims[3], nullptr, 10);
    options.conv_width =
        conv.rank ? 1 + std::strtoll(conv.dims[2], nullptr, 10) : 4;
    const int32_t planes = numPlanes();
    options.state_planes = planes;
    options.state_dtype = planes ? GDNRT_F32 : state.dtype;
    options.conv_dtype = conv.rank ? conv.dtype : GDNRT_BF16;
    options.conv_layout = layout;
    options.conv_extra = pending && !isDeferred ? pending : extra;
    options.deferred_writes = isDeferred;
    options.pending_tokens = pending;
    for (gdnrt_state_pool **pool : {&moved, &filled}) {
      gdnrt_state_pool_destroy(*pool);
      *pool = nullptr;
      ok(gdnrt_state_pool_create(kernel.device(), &options, pool, &error));
      const int32_t last = isDeferred ? GDNRT_POOL_PENDING_COUNTS
                           : pending  ? GDNRT_POOL_PENDING_DECAYS
                                      : GDNRT_POOL_CONV_HISTORY;
      buffers.clear();
      for (int32_t buffer = GDNRT_POOL_STATE; buffer <= last; ++buffer)
        if (buffer != GDNRT_POOL_CONV) // part of the history
          buffers.push_back(buffer);
      for (int32_t plane = 0; plane < planes; ++plane)
        buffers.push_back(GDNRT_POOL_STATE_SCALES + plane);
      forEachArray(*pool, [&](const gdnrt_arg &view, size_t bytes, int seed) {
        Bytes values(bytes);
        for (size_t i = 0; i < bytes; ++i)
          values[i] = static_cast<uint8_t>(i * 131 + i / 251 + size_t(seed));
        ok(gdnrt_device_write(kernel.device(), view.data, values.data(), bytes,
                              &error));
      });
    }
  }
  template <typename Body>
  void forEachArray(gdnrt_state_pool *pool, Body body) {
    for (int32_t buffer : buffers)
      for (int64_t layer = 0; layer < 2; ++layer) {
        gdnrt_arg view;
        ok(gdnrt_state_pool_view(pool, buffer, layer, &view, &error));
        static constexpr size_t kBytes[] = {4, 2, 2, 4};
        body(view,
             static_cast<size_t>(view.strides[0] * view.sizes[0]) *
                 (view.dtype == GDNRT_U8 ? 1 : kBytes[view.dtype]),
             buffer * 7 + static_cast<int>(layer));
      }
  }
  void compare() {
    ok(gdnrt_device_synchronize(kernel.device(), nullptr, &error));
    std::vector<Bytes> all;
    for (gdnrt_state_pool *pool : {moved, filled})
      forEachArray(pool, [&](const gdnrt_arg &view, size_t bytes, int) {
        all.emplace_back(bytes);
        ok(gdnrt_device_read(kernel.device(), all.back().data(), view.data,
                             bytes, &error));
      });
    for (size_t i = 0; i < all.size() / 2; ++i)
      EXPECT_TRUE(all[i] == all[all.size() / 2 + i]) << "array " << i;
  }

  gdnrt_error error = {};
  Kernel zero;
  gdnrt_state_pool *moved = nullptr, *filled = nullptr;
  std::vector<int32_t> buffers;
};
GDNRT_CTS_MOVES(PoolMoveCases, copy);

} // namespace

TEST_P(PoolMoveCases, HaveTheBytesOfFillAndCopy) {
  if (!takesI32())
    GTEST_SKIP() << "pools have ids of i32";
  struct {
    int32_t layout;
    int64_t extra, pending;
    bool isDeferred = false;
  } const cases[] = {{GDNRT_CONV_DS, 0, 0},
                     {GDNRT_CONV_SD, 0, 0},
                     {GDNRT_CONV_DS, 2, 0},
                     {GDNRT_CONV_DS, 0, 3},
                     {GDNRT_CONV_DS, 0, 3, true}};
  for (auto [layout, extra, pending, isDeferred] : cases) {
    if (numPlanes() == 1 && !isDeferred)
      continue; // no such pools
    makePools(layout, extra, pending, isDeferred);
    ok(gdnrt_state_pool_use_kernels(moved, kernel.handle(), zero.handle(),
                                    &error));
    std::vector<int32_t> from, to;
    for (int32_t i = 1; i <= 140; ++i) {
      from.push_back(i % 9 ? i : -1);
      to.push_back(i % 7 ? 299 - i : 0);
    }
    from.push_back(150);
    to.push_back(150);
    std::vector<int32_t> reset = {3, -1, 0, 298, 4};
    for (int32_t i = 5; i < 290; ++i)
      reset.push_back(i % 3 ? i : -1);
    for (gdnrt_state_pool *pool : {moved, filled}) {
      ok(gdnrt_state_pool_copy(pool, from.data(), to.data(), from.size(),
                               nullptr, &error));
      int32_t slot = 0, taken = 0;
      ok(gdnrt_state_pool_fork(pool, 9, nullptr, &slot, &taken, &error));
      EXPECT_EQ(slot, 1);
    }
    compare();
    for (gdnrt_state_pool *pool : {moved, filled}) {
      ok(gdnrt_state_pool_reset(pool, reset.data(), reset.size(), nullptr,
                                &error));
      // Fewer than before, then more.
      ok(gdnrt_state_pool_copy(pool, to.data(), from.data(), 3, nullptr,
                               &error));
    }
    compare();
  }
}

namespace {

/// How three layers of a caller's memory lie, in slots of one buffer: slot s of
/// layer l is at s * slot + at[l]. The first three are one array for kernels.
struct Arrangement {
  const char *name;
  int64_t slot;
  int64_t at[3];
};
constexpr int64_t kWrapped = 40;
constexpr Arrangement kArrangements[] = {
    {"layer by layer", 1, {0, kWrapped, 2 * kWrapped}},
    {"slot by slot", 3, {0, 1, 2}},
    {"slot by slot, with gaps", 6, {1, 3, 5}},
    {"layers go down", 1, {2 * kWrapped, kWrapped, 0}},
    {"unequal distances", 1, {0, kWrapped + 1, 2 * kWrapped + 3}}};

} // namespace

TEST_P(PoolMoveCases, MemoryOfTheCaller) {
  if (!takesI32() || numPlanes() > 0)
    GTEST_SKIP() << "no such pools";
  const gdnrt_param_info params[] = {param("state_pool"), param("conv_pool")};
  if (params[1].rank == 0)
    GTEST_SKIP() << "kernels do not move windows";
  for (const Arrangement &each : kArrangements) {
    SCOPED_TRACE(each.name);
    void *memory[2][2] = {};
    size_t bytes[2] = {};
    gdnrt_state_pool *pools[2] = {};
    for (int which = 0; which < 2; ++which) {
      gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
      options.num_layers = 3;
      options.num_requests = kWrapped - 1;
      options.num_key_heads = options.num_value_heads = 1;
      options.value_dim = std::strtoll(params[0].dims[2], nullptr, 10);
      options.key_dim = std::strtoll(params[0].dims[3], nullptr, 10);
      options.conv_width = 1 + std::strtoll(params[1].dims[2], nullptr, 10);
      const int64_t channels = 2 * options.key_dim + options.value_dim;
      const int64_t sizes[2][4] = {
          {kWrapped, 1, options.value_dim, options.key_dim},
          {kWrapped, channels, options.conv_width - 1, 0}};
      int64_t strides[2][4];
      gdnrt_arg layers[2][3];
      for (int buffer = 0; buffer < 2; ++buffer) {
        const int rank = buffer == 0 ? 4 : 3;
        int64_t elements = 1;
        for (int d = rank - 1; d > 0; --d) {
          strides[buffer][d] = elements;
          elements *= sizes[buffer][d];
        }
        strides[buffer][0] = elements * each.slot;
        const int64_t size = params[buffer].dtype == GDNRT_F32 ? 4 : 2;
        bytes[buffer] =
            static_cast<size_t>(elements * size * (6 * kWrapped + 8));
        ok(gdnrt_device_allocate(kernel.device(), bytes[buffer],
                                 &memory[which][buffer], &error));
        Bytes values(bytes[buffer]);
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<uint8_t>(i * 131 + i / 251);
        ok(gdnrt_device_write(kernel.device(), memory[which][buffer],
                              values.data(), values.size(), &error));
        for (int layer = 0; layer < 3; ++layer) {
          gdnrt_arg &array = layers[buffer][layer];
          array = gdnrt_arg{};
          array.data = static_cast<uint8_t *>(memory[which][buffer]) +
                       each.at[layer] * elements * size;
          array.dtype = params[buffer].dtype;
          array.rank = rank;
          array.sizes = sizes[buffer];
          array.strides = strides[buffer];
        }
      }
      ok(gdnrt_state_pool_wrap(kernel.device(), &options, layers[0], layers[1],
                               &pools[which], &error));
    }
    ok(gdnrt_state_pool_use_kernels(pools[0], kernel.handle(), zero.handle(),
                                    &error));
    const int32_t from[] = {1, 5, -1, 7, 9, 39}, to[] = {2, 6, 8, 0, 9, 38};
    const int32_t reset[] = {0, 3, -1, 39, 20, 21};
    for (gdnrt_state_pool *pool : pools) {
      ok(gdnrt_state_pool_copy(pool, from, to, 6, nullptr, &error));
      ok(gdnrt_state_pool_reset(pool, reset, 6, nullptr, &error));
      ok(gdnrt_state_pool_copy(pool, to, from, 2, nullptr, &error));
    }
    ok(gdnrt_device_synchronize(kernel.device(), nullptr, &error));
    for (int buffer = 0; buffer < 2; ++buffer) {
      Bytes found[2];
      for (int which = 0; which < 2; ++which) {
        found[which].resize(bytes[buffer]);
        ok(gdnrt_device_read(kernel.device(), found[which].data(),
                             memory[which][buffer], bytes[buffer], &error));
      }
      EXPECT_TRUE(found[0] == found[1]) << "buffer " << buffer;
    }
    for (int which = 0; which < 2; ++which) {
      gdnrt_state_pool_destroy(pools[which]);
      for (void *each : memory[which])
        ok(gdnrt_device_free(kernel.device(), each, &error));
    }
  }
}

TEST_P(PoolMoveCases, Refusals) {
  const bool isDeferred = numPlanes() == 1;
  makePools(GDNRT_CONV_DS, 0, isDeferred ? 3 : 0, isDeferred);
  if (!takesI32()) {
    EXPECT_EQ(gdnrt_state_pool_use_kernels(moved, kernel.handle(),
                                           zero.handle(), &error),
              GDNRT_UNSUPPORTED);
    EXPECT_EQ(std::string(error.message),
              "UNSUPPORTED: copy_slots: slots: expected an entry with ids of "
              "i32, got i64");
    return;
  }
  EXPECT_EQ(gdnrt_state_pool_use_kernels(moved, zero.handle(), kernel.handle(),
                                         &error),
            GDNRT_NOT_FOUND);
  Kernel elsewhere(EntryKind::copy, 1);
  EXPECT_EQ(gdnrt_state_pool_use_kernels(moved, elsewhere.handle(),
                                         zero.handle(), &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error.message),
            "INVALID_ARGUMENT: state_pool: expected "
            "kernels of the pool's device");
  // What was refused changes nothing: the device fills and copies.
  const int32_t from = 4, to = 5;
  for (gdnrt_state_pool *pool : {moved, filled})
    ok(gdnrt_state_pool_copy(pool, &from, &to, 1, nullptr, &error));
  compare();
}
