// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Full attention over a paged cache: arrays and sizes that it refuses, and who
// owns the context of a backend that the caller implements.

#include "exchange/failing_allocator.h"

#include "gdn-c/attention.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

class PagedBackend : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, &error), GDNRT_OK);
    ASSERT_EQ(gdnrt_attention_backend_create_paged(device, &backend, &error),
              GDNRT_OK);
    layer.tp_q_head_num = 2;
    layer.tp_k_head_num = layer.tp_v_head_num = 1;
    layer.head_dim = layer.v_head_dim = 4;
    layer.k_buffer = {keys.data(), GDNRT_F32, 3, cacheSizes, nullptr, -1};
    layer.v_buffer = {values.data(), GDNRT_F32, 3, cacheSizes, nullptr, -1};
    call.layer = &layer;
    call.q = {q.data(), GDNRT_F32, 2, querySizes, nullptr, -1};
    call.k = {k.data(), GDNRT_F32, 2, keySizes, nullptr, -1};
    call.v = {v.data(), GDNRT_F32, 2, keySizes, nullptr, -1};
    call.out = {out.data(), GDNRT_F32, 2, querySizes, nullptr, -1};
    call.save_kv_cache = 1;
    batch.forward_mode = GDNRT_MODE_DECODE;
    batch.batch_size = 1;
    batch.req_pool_indices = requests;
    batch.seq_lens = lengths;
    batch.req_to_token = places;
    batch.req_to_token_stride = 3;
    batch.out_cache_loc = newPlaces;
  }
  void TearDown() override {
    gdnrt_attention_backend_destroy(backend);
    gdnrt_device_destroy(device);
  }
  void refuses(const std::string &message) {
    EXPECT_EQ(gdnrt_attention_forward(backend, &call, &batch, &error),
              GDNRT_INVALID_ARGUMENT);
    EXPECT_EQ(error.message, "INVALID_ARGUMENT: " + message);
  }

  gdnrt_device *device = nullptr;
  gdnrt_attention_backend *backend = nullptr;
  gdnrt_error error = {};
  std::vector<float> keys = std::vector<float>(12), values = keys,
                     q = std::vector<float>(8), out = q,
                     k = std::vector<float>(4), v = k;
  const int64_t cacheSizes[3] = {3, 1, 4}, querySizes[2] = {1, 8},
                keySizes[2] = {1, 4}, requests[1] = {0}, newPlaces[1] = {2};
  const int32_t lengths[1] = {3}, places[3] = {0, 1, 2};
  gdnrt_radix_attention layer = gdnrt_radix_attention_default();
  gdnrt_attention_call call = gdnrt_attention_call_default();
  gdnrt_forward_batch batch = gdnrt_forward_batch_default();
};

} // namespace

TEST_F(PagedBackend, RefusesArraysWithoutData) {
  ASSERT_EQ(gdnrt_attention_forward(backend, &call, &batch, &error), GDNRT_OK)
      << error.message;
  struct Case {
    const char *name;
    gdnrt_arg *arg;
    int rows;
  };
  // Keys and values are both of the step, or both in the cache.
  for (const Case &each : {Case{"q", &call.q, 1}, Case{"out", &call.out, 1},
                           Case{"k_buffer", &layer.k_buffer, 3},
                           Case{"v_buffer", &layer.v_buffer, 3},
                           Case{"k", &call.k, 1}, Case{"v", &call.v, 1}}) {
    void *data = each.arg->data;
    each.arg->data = nullptr;
    refuses(std::string(each.name) + ": expected a pointer to the data of " +
            std::to_string(each.rows) + " rows, got null");
    each.arg->data = data;
  }
  call.k.data = call.v.data = nullptr;
  EXPECT_EQ(gdnrt_attention_forward(backend, &call, &batch, &error), GDNRT_OK)
      << error.message;
}

TEST_F(PagedBackend, RefusesSizesThatAreNone) {
  batch.batch_size = -1;
  refuses("batch_size: expected 0 or more, got -1");
  batch.batch_size = 1;
  const int64_t huge = std::numeric_limits<int64_t>::max();
  layer.head_dim = huge;
  refuses("layer: head_dim: expected 1 to 1048576, got " +
          std::to_string(huge));
  layer.head_dim = 4;
  layer.v_head_dim = huge;
  refuses("layer: v_head_dim: expected 1 to 1048576, got " +
          std::to_string(huge));
  layer.v_head_dim = 4;
  layer.tp_q_head_num = huge;
  refuses("layer: tp_q_head_num: expected 1 to 1048576, got " +
          std::to_string(huge));
}

TEST_F(PagedBackend, WhatIsNotCreatedIsNotDestroyed) {
  int destroyed = 0;
  gdnrt_attention_callbacks calls = gdnrt_attention_callbacks_default();
  calls.context = &destroyed;
  calls.init_forward_metadata = [](void *, const gdnrt_forward_batch *,
                                   gdnrt_error *) { return GDNRT_OK; };
  calls.forward_decode = [](void *, const gdnrt_attention_call *,
                            const gdnrt_forward_batch *,
                            gdnrt_error *) { return GDNRT_OK; };
  calls.destroy = [](void *context) { ++*static_cast<int *>(context); };
  gdnrt_attention_backend *custom = nullptr;
  EXPECT_EQ(
      gdnrt_attention_backend_create_custom(device, &calls, &custom, &error),
      GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(destroyed, 0);
  calls.forward_extend = calls.forward_decode;
  int64_t successes = 0;
  for (bool hasFailed = gdnrt::test::failsAllocations(); hasFailed;
       ++successes) {
    const gdnrt::test::FailingAllocations failing(successes, /*once=*/true);
    const gdnrt_status status =
        gdnrt_attention_backend_create_custom(device, &calls, &custom, &error);
    hasFailed = failing.hasFailed();
    if (!hasFailed)
      gdnrt_attention_backend_destroy(custom);
    EXPECT_EQ(status, hasFailed ? GDNRT_OUT_OF_MEMORY : GDNRT_OK);
    EXPECT_EQ(destroyed, hasFailed ? 0 : 1);
  }
  destroyed = 0;
  ASSERT_EQ(
      gdnrt_attention_backend_create_custom(device, &calls, &custom, &error),
      GDNRT_OK);
  gdnrt_attention_backend_destroy(custom);
  EXPECT_EQ(destroyed, 1);
}
