// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of state pools: the life of a sequence, and nulls everywhere.

#include "gdn-c/state_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace {

class StatePoolApi : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, &error), GDNRT_OK);
    options.num_layers = 2;
    options.num_requests = 3;
    options.num_track = 1;
    options.num_key_heads = 1;
    options.num_value_heads = 2;
    options.key_dim = options.value_dim = 4;
    options.conv_width = 4;
    options.conv_dtype = GDNRT_BF16;
    options.debug_checks = 1;
  }
  void TearDown() override { gdnrt_device_destroy(device); }
  gdnrt_state_pool *make() {
    gdnrt_state_pool *pool = nullptr;
    EXPECT_EQ(gdnrt_state_pool_create(device, &options, &pool, &error),
              GDNRT_OK)
        << error.message;
    return pool;
  }

  gdnrt_device *device = nullptr;
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  gdnrt_error error = {};
};

} // namespace

TEST_F(StatePoolApi, LifeOfASequence) {
  gdnrt_state_pool *pool = make();
  // The pool keeps what it needs of its device.
  gdnrt_device_destroy(device);
  device = nullptr;
  int32_t slots[4] = {}, taken = -1, fork = -1, track = -1;
  ASSERT_EQ(
      gdnrt_state_pool_allocate(pool, 4, 1, nullptr, slots, &taken, &error),
      GDNRT_OK);
  EXPECT_EQ(taken, 0);
  ASSERT_EQ(
      gdnrt_state_pool_allocate(pool, 1, 1, nullptr, slots, &taken, &error),
      GDNRT_OK);
  EXPECT_EQ(taken, 1);
  gdnrt_arg view;
  ASSERT_EQ(gdnrt_state_pool_view(pool, GDNRT_POOL_STATE, 1, &view, &error),
            GDNRT_OK);
  EXPECT_EQ(view.rank, 4);
  EXPECT_EQ(view.sizes[0], 5);
  auto *state = static_cast<float *>(view.data);
  state[slots[0] * view.strides[0]] = 7;
  ASSERT_EQ(
      gdnrt_state_pool_fork(pool, slots[0], nullptr, &fork, &taken, &error),
      GDNRT_OK);
  EXPECT_EQ(state[fork * view.strides[0]], 7);
  ASSERT_EQ(gdnrt_state_pool_allocate_track(pool, 1, 0, nullptr, &track, &taken,
                                            &error),
            GDNRT_OK);
  EXPECT_EQ(track, 4);
  ASSERT_EQ(gdnrt_state_pool_copy(pool, &fork, &track, 1, nullptr, &error),
            GDNRT_OK);
  ASSERT_EQ(gdnrt_state_pool_reset(pool, &fork, 1, nullptr, &error), GDNRT_OK);
  EXPECT_EQ(state[fork * view.strides[0]], 0);
  EXPECT_EQ(state[track * view.strides[0]], 7);
  gdnrt_state_pool_info info = gdnrt_state_pool_info_default();
  ASSERT_EQ(gdnrt_state_pool_describe(pool, &info, &error), GDNRT_OK);
  EXPECT_EQ(info.num_slots, 5);
  EXPECT_EQ(info.free_requests, 1);
  EXPECT_EQ(info.used_requests, 2);
  EXPECT_EQ(info.free_track, 0);
  EXPECT_EQ(info.used_track, 1);
  uint64_t bytes = 0;
  ASSERT_EQ(gdnrt_state_pool_bytes(&options, &bytes, &error), GDNRT_OK);
  EXPECT_EQ(info.bytes, bytes);
  int64_t requests = 0;
  ASSERT_EQ(
      gdnrt_state_pool_requests_that_fit(&options, bytes, &requests, &error),
      GDNRT_OK);
  EXPECT_EQ(requests, 3);
  const int32_t both[] = {slots[0], fork};
  EXPECT_EQ(gdnrt_state_pool_check_batch(pool, both, 2, &error), GDNRT_OK);
  EXPECT_EQ(gdnrt_state_pool_free(pool, both, 2, nullptr, &error), GDNRT_OK);
  EXPECT_EQ(gdnrt_state_pool_check_batch(pool, both, 2, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: state_pool: slot 1 is free");
  gdnrt_state_pool_destroy(pool);
}

TEST_F(StatePoolApi, Wrap) {
  std::vector<float> state(2 * 5 * 32), conv(2 * 5 * 16 * 3);
  int64_t stateSizes[] = {5, 2, 4, 4}, convSizes[] = {5, 16, 3};
  gdnrt_arg states[2], convs[2];
  for (int layer = 0; layer < 2; ++layer) {
    states[layer] = {
        &state[size_t(layer) * 160], GDNRT_F32, 4, stateSizes, nullptr, 0};
    convs[layer] = {
        &conv[size_t(layer) * 240], GDNRT_F32, 3, convSizes, nullptr, 0};
  }
  gdnrt_state_pool *pool = nullptr;
  ASSERT_EQ(
      gdnrt_state_pool_wrap(device, &options, states, convs, &pool, &error),
      GDNRT_OK)
      << error.message;
  state[160 + 32] = 3;
  const int32_t slot = 1;
  int32_t taken = 0, got = 0;
  EXPECT_EQ(
      gdnrt_state_pool_allocate(pool, 1, 1, nullptr, &got, &taken, nullptr),
      GDNRT_OK);
  EXPECT_EQ(got, slot);
  EXPECT_EQ(state[160 + 32], 0);
  gdnrt_state_pool_destroy(pool);
}

TEST_F(StatePoolApi, WrapLooksAtNoArrayOfTooManyLayers) {
  float memory = 0;
  int64_t sizes[] = {5, 2, 4, 4};
  const gdnrt_arg one = {&memory, GDNRT_F32, 4, sizes, nullptr, 0};
  gdnrt_state_pool *pool = nullptr;
  for (int64_t layers :
       {int64_t{0}, int64_t{-1}, (int64_t{1} << 20) + 1, INT64_MAX}) {
    options.num_layers = layers;
    EXPECT_EQ(
        gdnrt_state_pool_wrap(device, &options, &one, &one, &pool, &error),
        GDNRT_INVALID_ARGUMENT);
    EXPECT_EQ(error.message, "INVALID_ARGUMENT: state_pool: num_layers: "
                             "expected 1 to 1048576, got " +
                                 std::to_string(layers));
  }
  EXPECT_EQ(pool, nullptr);
}

TEST_F(StatePoolApi, WrapRefusesMorePositionsThanMemory) {
  std::vector<float> memory(160);
  int64_t stateSizes[] = {5, 2, 4, 4}, convSizes[] = {5, 16, 3};
  const gdnrt_arg state = {memory.data(), GDNRT_F32, 4, stateSizes, nullptr, 0},
                  conv = {memory.data(), GDNRT_F32, 3, convSizes, nullptr, 0};
  options.num_layers = 1;
  gdnrt_state_pool *pool = nullptr;
  for (int64_t positions : {INT64_MAX, int64_t{1} << 60, int64_t{1} << 55}) {
    convSizes[2] = positions;
    EXPECT_EQ(
        gdnrt_state_pool_wrap(device, &options, &state, &conv, &pool, &error),
        GDNRT_INVALID_ARGUMENT);
    EXPECT_STREQ(error.message,
                 "INVALID_ARGUMENT: state_pool: conv of layer 0: the array "
                 "does not fit in the address space");
  }
}

TEST_F(StatePoolApi, Nulls) {
  gdnrt_state_pool *pool = make();
  gdnrt_state_pool_destroy(nullptr);
  uint64_t bytes;
  int64_t requests;
  int32_t slot = 1, taken = 0;
  gdnrt_arg arg = {};
  gdnrt_state_pool_info info = gdnrt_state_pool_info_default();
  auto refused = [&](gdnrt_status status, const char *name) {
    EXPECT_EQ(status, GDNRT_INVALID_ARGUMENT) << name;
    EXPECT_EQ(std::string(error.message), std::string("INVALID_ARGUMENT: ") +
                                              name +
                                              ": expected a pointer, got null");
  };
  gdnrt_error *e = &error;
  refused(gdnrt_state_pool_bytes(nullptr, &bytes, e), "options");
  refused(gdnrt_state_pool_bytes(&options, nullptr, e), "bytes");
  refused(gdnrt_state_pool_requests_that_fit(nullptr, 1, &requests, e),
          "options");
  refused(gdnrt_state_pool_requests_that_fit(&options, 1, nullptr, e),
          "requests");
  refused(gdnrt_state_pool_create(nullptr, &options, &pool, e), "device");
  refused(gdnrt_state_pool_create(device, nullptr, &pool, e), "options");
  refused(gdnrt_state_pool_create(device, &options, nullptr, e), "pool");
  refused(gdnrt_state_pool_wrap(nullptr, &options, &arg, &arg, &pool, e),
          "device");
  refused(gdnrt_state_pool_wrap(device, nullptr, &arg, &arg, &pool, e),
          "options");
  refused(gdnrt_state_pool_wrap(device, &options, nullptr, &arg, &pool, e),
          "states");
  refused(gdnrt_state_pool_wrap(device, &options, &arg, nullptr, &pool, e),
          "convs");
  refused(gdnrt_state_pool_wrap(device, &options, &arg, &arg, nullptr, e),
          "pool");
  refused(gdnrt_state_pool_describe(nullptr, &info, e), "pool");
  refused(gdnrt_state_pool_describe(pool, nullptr, e), "info");
  refused(gdnrt_state_pool_view(nullptr, 0, 0, &arg, e), "pool");
  refused(gdnrt_state_pool_view(pool, 0, 0, nullptr, e), "view");
  refused(gdnrt_state_pool_allocate(nullptr, 1, 0, nullptr, &slot, &taken, e),
          "pool");
  refused(gdnrt_state_pool_allocate(pool, 1, 0, nullptr, nullptr, &taken, e),
          "slots");
  refused(gdnrt_state_pool_allocate(pool, 1, 0, nullptr, &slot, nullptr, e),
          "taken");
  refused(
      gdnrt_state_pool_allocate_track(nullptr, 1, 0, nullptr, &slot, &taken, e),
      "pool");
  refused(gdnrt_state_pool_free(nullptr, &slot, 1, nullptr, e), "pool");
  refused(gdnrt_state_pool_free(pool, nullptr, 1, nullptr, e), "slots");
  refused(gdnrt_state_pool_fork(nullptr, 1, nullptr, &slot, &taken, e), "pool");
  refused(gdnrt_state_pool_fork(pool, 1, nullptr, nullptr, &taken, e), "slot");
  refused(gdnrt_state_pool_fork(pool, 1, nullptr, &slot, nullptr, e), "taken");
  refused(gdnrt_state_pool_reset(nullptr, &slot, 1, nullptr, e), "pool");
  refused(gdnrt_state_pool_reset(pool, nullptr, 1, nullptr, e), "slots");
  refused(gdnrt_state_pool_copy(nullptr, &slot, &slot, 1, nullptr, e), "pool");
  refused(gdnrt_state_pool_copy(pool, nullptr, &slot, 1, nullptr, e), "from");
  refused(gdnrt_state_pool_copy(pool, &slot, nullptr, 1, nullptr, e), "to");
  refused(gdnrt_state_pool_check_batch(nullptr, &slot, 1, e), "pool");
  refused(gdnrt_state_pool_check_batch(pool, nullptr, 1, e), "slots");
  EXPECT_EQ(gdnrt_state_pool_free(pool, nullptr, 0, nullptr, e), GDNRT_OK);
  gdnrt_state_pool_destroy(pool);
}

TEST_F(StatePoolApi, Options) {
  uint64_t bytes = 0;
  auto message = [&] {
    EXPECT_EQ(gdnrt_state_pool_bytes(&options, &bytes, &error),
              GDNRT_INVALID_ARGUMENT);
    return std::string(error.message);
  };
  options.struct_size -= 4;
  EXPECT_NE(message().find("options: expected the struct_size of "
                           "gdnrt_state_pool_options to be a multiple of 8"),
            std::string::npos);
  options.struct_size += 4;
  options.conv_layout = 2;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: state_pool: conv_layout: expected 0 "
                       "(DS) or 1 (SD), got 2");
  options.conv_layout = GDNRT_CONV_SD;
  options.state_dtype = 77;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: state_pool: state_dtype: expected "
                       "f32, bf16 or f16, got the unknown dtype 77");
  options.state_dtype = GDNRT_F16;
  options.conv_dtype = GDNRT_U8;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: state_pool: conv_dtype: expected "
                       "f32, bf16 or f16, got u8");
  options.conv_dtype = GDNRT_BF16;
  gdnrt_state_pool *pool = make();
  gdnrt_arg view;
  EXPECT_EQ(gdnrt_state_pool_view(pool, 10, 0, &view, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: state_pool: buffer: expected "
                              "0 to 9, got 10");
  EXPECT_EQ(gdnrt_state_pool_view(pool, GDNRT_POOL_STATE_LOW, 0, &view, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: state_pool: the pool has no lower plane of "
               "states: expected state_planes 2, got 0");
  gdnrt_state_pool_destroy(pool);
  options.state_planes = 2;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: state_pool: state_dtype: expected "
                       "f32 with state_planes, got f16");
  options.state_dtype = GDNRT_F32;
  options.pending_dtype = GDNRT_BF16;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: state_pool: pending_dtype: expected "
                       "f32 or f16, got bf16");
  options.pending_dtype = GDNRT_F16;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: state_pool: pending_dtype: expected "
                       "f32 without deferred_writes, got f16");
}

TEST_F(StatePoolApi, StatesInPlanes) {
  options.state_planes = 2;
  gdnrt_state_pool *pool = make();
  gdnrt_arg view;
  auto dtypeOf = [&](gdnrt_pool_buffer buffer) {
    EXPECT_EQ(gdnrt_state_pool_view(pool, buffer, 0, &view, &error), GDNRT_OK)
        << error.message;
    return view.dtype;
  };
  EXPECT_EQ(dtypeOf(GDNRT_POOL_STATE), GDNRT_U8);
  EXPECT_EQ(dtypeOf(GDNRT_POOL_STATE_LOW), GDNRT_U8);
  EXPECT_EQ(view.rank, 4);
  EXPECT_EQ(dtypeOf(GDNRT_POOL_STATE_SCALES), GDNRT_F32);
  EXPECT_EQ(view.rank, 3);
  gdnrt_state_pool_destroy(pool);
  // They are the pool's own.
  const gdnrt_arg views[2] = {view, view};
  EXPECT_EQ(
      gdnrt_state_pool_wrap(device, &options, views, views, &pool, &error),
      GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: state_pool: state_planes: expected 0 for "
               "states in arrays of the caller, got 2");
}
