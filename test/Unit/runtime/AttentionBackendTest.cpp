// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention backends through the C ABI: the dispatch by mode, what is refused,
// what the hybrid one hands to whom, and the slots that the linear one keeps.

#include "gdn-c/attention.h"

#include "../../../runtime/src/serving/float_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

/// Writes down what it was asked.
struct Recorder {
  std::vector<std::string> calls;
  bool destroyed = false;
  bool refuses = false;

  static Recorder &of(void *context) {
    return *static_cast<Recorder *>(context);
  }
  static gdnrt_status note(void *context, std::string text,
                           gdnrt_error *error) {
    of(context).calls.push_back(std::move(text));
    if (!of(context).refuses)
      return GDNRT_OK;
    std::strcpy(error->message, "INVALID_ARGUMENT: the recorder refuses");
    return GDNRT_INVALID_ARGUMENT;
  }
  static std::string describe(const gdnrt_graph_batch *b) {
    return std::to_string(b->bs) + " " + std::to_string(b->num_tokens) + " " +
           std::to_string(b->seq_lens_sum) + " mode " +
           std::to_string(b->forward_mode);
  }

  gdnrt_attention_callbacks callbacks(bool graphs) {
    gdnrt_attention_callbacks c = gdnrt_attention_callbacks_default();
    c.context = this;
    c.init_forward_metadata = [](void *context, const gdnrt_forward_batch *b,
                                 gdnrt_error *error) {
      return note(context, "metadata " + std::to_string(b->batch_size), error);
    };
    c.forward_decode = [](void *context, const gdnrt_attention_call *call,
                          const gdnrt_forward_batch *, gdnrt_error *error) {
      return note(context, "decode " + std::to_string(call->save_kv_cache),
                  error);
    };
    c.forward_extend = [](void *context, const gdnrt_attention_call *call,
                          const gdnrt_forward_batch *, gdnrt_error *error) {
      return note(context, "extend " + std::to_string(call->layer->layer_id),
                  error);
    };
    c.destroy = [](void *context) { of(context).destroyed = true; };
    if (!graphs)
      return c;
    c.get_cuda_graph_seq_len_fill_value = [](void *context, int64_t *value,
                                             gdnrt_error *error) {
      *value = 7;
      return note(context, "fill", error);
    };
    c.init_cuda_graph_state = [](void *context, int64_t bs, int64_t tokens,
                                 gdnrt_error *error) {
      return note(context,
                  "state " + std::to_string(bs) + " " + std::to_string(tokens),
                  error);
    };
    c.init_forward_metadata_capture_cuda_graph =
        [](void *context, const gdnrt_graph_batch *b, gdnrt_error *error) {
          return note(context, "capture " + describe(b), error);
        };
    c.init_forward_metadata_replay_cuda_graph =
        [](void *context, const gdnrt_graph_batch *b, gdnrt_error *error) {
          return note(context, "replay " + describe(b), error);
        };
    return c;
  }
};

class AttentionBackend : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, &error), GDNRT_OK);
    gdnrt_attention_callbacks calls = recorder.callbacks(true);
    ASSERT_EQ(
        gdnrt_attention_backend_create_custom(device, &calls, &full, &error),
        GDNRT_OK);
    ASSERT_EQ(gdnrt_attention_backend_create_gdn(device, &gdn, &error),
              GDNRT_OK);
    const int64_t layers[] = {3, 7};
    ASSERT_EQ(gdnrt_attention_backend_create_hybrid(full, gdn, layers, 2,
                                                    &hybrid, &error),
              GDNRT_OK);
    call.layer = &layer;
    call.out = {out, GDNRT_F32, 2, sizes, nullptr, 0};
    call.q = {q, GDNRT_F32, 2, sizes, nullptr, 0};
    layer.layer_id = 3;
    batch.batch_size = 3;
    batch.req_pool_indices = slots;
    batch.extend_seq_lens = lengths;
  }
  void TearDown() override {
    gdnrt_attention_backend_destroy(hybrid);
    gdnrt_attention_backend_destroy(gdn);
    gdnrt_attention_backend_destroy(full);
    gdnrt_device_destroy(device);
  }
  bool hasMetadata(const gdnrt_attention_backend *backend,
                   gdnrt_gdn_forward_metadata &found) {
    int32_t known = 7;
    EXPECT_EQ(gdnrt_attention_forward_metadata(backend, &found, &known, &error),
              GDNRT_OK)
        << error.message;
    return known == 1;
  }
  gdnrt_gdn_forward_metadata metadata() {
    gdnrt_gdn_forward_metadata found = gdnrt_gdn_forward_metadata_default();
    EXPECT_TRUE(hasMetadata(hybrid, found));
    return found;
  }

  Recorder recorder;
  gdnrt_error error = {};
  gdnrt_device *device = nullptr;
  gdnrt_attention_backend *full = nullptr, *gdn = nullptr, *hybrid = nullptr;
  gdnrt_forward_batch batch = gdnrt_forward_batch_default();
  gdnrt_radix_attention layer = gdnrt_radix_attention_default();
  gdnrt_attention_call call = gdnrt_attention_call_default();
  int64_t sizes[2] = {2, 4};
  float out[8], q[8];
  int64_t slots[3] = {4, 9, 2};
  int32_t lengths[3] = {5, 0, 2};
};

} // namespace

TEST_F(AttentionBackend, Modes) {
  struct Expected {
    int32_t mode, extend, decode, idle, decodeOrIdle;
  };
  for (Expected e : {Expected{GDNRT_MODE_EXTEND, 1, 0, 0, 0},
                     {GDNRT_MODE_DECODE, 0, 1, 0, 1},
                     {GDNRT_MODE_MIXED, 1, 0, 0, 0},
                     {GDNRT_MODE_IDLE, 0, 0, 1, 1}}) {
    EXPECT_EQ(gdnrt_forward_mode_is_extend(e.mode), e.extend);
    EXPECT_EQ(gdnrt_forward_mode_is_decode(e.mode), e.decode);
    EXPECT_EQ(gdnrt_forward_mode_is_idle(e.mode), e.idle);
    EXPECT_EQ(gdnrt_forward_mode_is_decode_or_idle(e.mode), e.decodeOrIdle);
  }
}

TEST_F(AttentionBackend, DispatchesByMode) {
  call.save_kv_cache = 1;
  for (int32_t mode :
       {GDNRT_MODE_DECODE, GDNRT_MODE_EXTEND, GDNRT_MODE_MIXED}) {
    batch.forward_mode = mode;
    EXPECT_EQ(gdnrt_attention_forward(hybrid, &call, &batch, &error), GDNRT_OK);
  }
  EXPECT_EQ(recorder.calls,
            (std::vector<std::string>{"decode 1", "extend 3", "extend 3"}));
}

/// An engine's own modes may have other numbers, or there may be more of them.
TEST_F(AttentionBackend, RefusesOtherModes) {
  const std::string refusal =
      "INVALID_ARGUMENT: forward_mode: expected 0 (extend), 1 (decode), 2 "
      "(mixed) or 3 (idle), got ";
  for (int32_t mode : {-1, 4, 1 << 20}) {
    batch.forward_mode = mode;
    const std::string expected = refusal + std::to_string(mode);
    EXPECT_EQ(gdnrt_attention_forward(full, &call, &batch, &error),
              GDNRT_INVALID_ARGUMENT);
    EXPECT_EQ(error.message, expected);
    EXPECT_EQ(gdnrt_attention_init_forward_metadata(gdn, &batch, &error),
              GDNRT_INVALID_ARGUMENT);
    EXPECT_EQ(error.message, expected);
  }
  EXPECT_TRUE(recorder.calls.empty());
  gdnrt_graph_batch graph = gdnrt_graph_batch_default();
  graph.bs = graph.num_tokens = graph.num_reqs = 3;
  graph.req_pool_indices = slots;
  graph.forward_mode = 4;
  EXPECT_EQ(gdnrt_attention_init_cuda_graph_state(hybrid, 4, 4, &error),
            GDNRT_OK);
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(
                hybrid, &graph, &error),
            GDNRT_UNSUPPORTED);
}

TEST_F(AttentionBackend, IdleIsZeroAndAsksNobody) {
  std::fill(out, out + 8, NAN);
  batch.forward_mode = GDNRT_MODE_IDLE;
  EXPECT_EQ(gdnrt_attention_forward(hybrid, &call, &batch, &error), GDNRT_OK);
  EXPECT_EQ(std::vector<float>(out, out + 8), std::vector<float>(8, 0.0f));
  // Rows that are apart keep what is between them.
  std::fill(out, out + 8, 5.0f);
  int64_t narrow[2] = {2, 2}, apart[2] = {4, 1};
  call.out = {out, GDNRT_F32, 2, narrow, apart, 0};
  EXPECT_EQ(gdnrt_attention_forward(full, &call, &batch, &error), GDNRT_OK);
  EXPECT_EQ(std::vector<float>(out, out + 8),
            (std::vector<float>{0, 0, 5, 5, 0, 0, 5, 5}));
  EXPECT_TRUE(recorder.calls.empty());
  // Neither is metadata looked at.
  gdnrt_gdn_forward_metadata found = gdnrt_gdn_forward_metadata_default();
  batch.req_pool_indices = nullptr;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata(gdn, &batch, &error),
            GDNRT_OK);
  EXPECT_FALSE(hasMetadata(gdn, found));
}

TEST_F(AttentionBackend, HybridAsksBothTheFullOneFirst) {
  batch.forward_mode = GDNRT_MODE_EXTEND;
  recorder.refuses = true;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata(hybrid, &batch, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: the recorder refuses");
  gdnrt_gdn_forward_metadata found = gdnrt_gdn_forward_metadata_default();
  EXPECT_FALSE(hasMetadata(hybrid, found));
  recorder.refuses = false;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata(hybrid, &batch, &error),
            GDNRT_OK);
  found = metadata();
  EXPECT_EQ(found.batch_size, 3);
  EXPECT_EQ(std::vector<int64_t>(found.cache_indices, found.cache_indices + 3),
            (std::vector<int64_t>{4, 9, 2}));
  EXPECT_EQ(std::vector<int64_t>(found.cu_seqlens, found.cu_seqlens + 4),
            (std::vector<int64_t>{0, 5, 5, 7}));
  batch.forward_mode = GDNRT_MODE_DECODE;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata(hybrid, &batch, &error),
            GDNRT_OK);
  EXPECT_EQ(metadata().cu_seqlens, nullptr);

  int64_t value = 0;
  EXPECT_EQ(
      gdnrt_attention_get_cuda_graph_seq_len_fill_value(hybrid, &value, &error),
      GDNRT_OK);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(
      gdnrt_attention_get_cuda_graph_seq_len_fill_value(gdn, &value, &error),
      GDNRT_OK);
  EXPECT_EQ(value, 1);
}

TEST_F(AttentionBackend, GraphsKeepAddresses) {
  gdnrt_graph_batch graph = gdnrt_graph_batch_default();
  graph.bs = 3;
  graph.num_tokens = 3;
  graph.num_reqs = 3;
  graph.req_pool_indices = slots;
  graph.forward_mode = GDNRT_MODE_DECODE;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_capture_cuda_graph(
                gdn, &graph, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_attention_init_cuda_graph_state(hybrid, 4, 4, &error),
            GDNRT_OK);
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_capture_cuda_graph(
                hybrid, &graph, &error),
            GDNRT_OK);
  gdnrt_gdn_forward_metadata captured = metadata();
  EXPECT_EQ(captured.cache_indices[1], 9);
  // An eager batch between them has arrays of its own.
  batch.forward_mode = GDNRT_MODE_DECODE;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata(hybrid, &batch, &error),
            GDNRT_OK);
  EXPECT_NE(metadata().cache_indices, captured.cache_indices);

  // D8: the tail still names slots of requests that live, and its lengths are
  // whatever the backend of full attention pads with.
  const int32_t seqLens[] = {17, 64, 64};
  slots[0] = 6;
  graph.num_reqs = 1;
  graph.seq_lens = seqLens;
  graph.seq_lens_sum = 19;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(
                hybrid, &graph, &error),
            GDNRT_OK);
  gdnrt_gdn_forward_metadata replayed = metadata();
  EXPECT_EQ(replayed.cache_indices, captured.cache_indices);
  EXPECT_EQ(replayed.cu_seqlens, nullptr);
  EXPECT_EQ(
      std::vector<int64_t>(replayed.cache_indices, replayed.cache_indices + 3),
      (std::vector<int64_t>{6, 0, 0}));
  EXPECT_EQ(recorder.calls,
            (std::vector<std::string>{"state 4 4", "capture 3 3 0 mode 1",
                                      "metadata 3", "replay 3 3 19 mode 1"}));
  // A graph may have more rows than its next batch, and an idle rank has none.
  graph.bs = 2;
  graph.num_reqs = 0;
  slots[0] = 7;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(
                hybrid, &graph, &error),
            GDNRT_OK);
  EXPECT_EQ(
      std::vector<int64_t>(captured.cache_indices, captured.cache_indices + 4),
      (std::vector<int64_t>{0, 0, 0, 0}));
  graph.num_reqs = 3;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(gdn, &graph,
                                                                    &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: num_reqs: expected 0 to 2, "
                              "the rows of the graph, got 3");
  graph.bs = 5;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(gdn, &graph,
                                                                    &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: bs: expected 0 to 4, got 5");
  EXPECT_EQ(gdnrt_attention_init_cuda_graph_state(gdn, 5, 5, &error),
            GDNRT_INVALID_ARGUMENT);
  for (int64_t tokens : {int64_t(-1), int64_t(1) << 31}) {
    EXPECT_EQ(gdnrt_attention_init_cuda_graph_state(gdn, 4, tokens, &error),
              GDNRT_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(error.message),
              "INVALID_ARGUMENT: max_num_tokens: expected 0 to 8388607, got " +
                  std::to_string(tokens));
  }
}

TEST_F(AttentionBackend, GraphsOfExtendHaveBounds) {
  auto capture = gdnrt_attention_init_forward_metadata_capture_cuda_graph;
  auto replay = gdnrt_attention_init_forward_metadata_replay_cuda_graph;
  EXPECT_EQ(gdnrt_attention_init_cuda_graph_state(hybrid, 4, 20, &error),
            GDNRT_OK);
  gdnrt_graph_batch graph = gdnrt_graph_batch_default();
  graph.bs = 4;
  graph.num_tokens = 16;
  graph.forward_mode = GDNRT_MODE_EXTEND;
  EXPECT_EQ(capture(hybrid, &graph, &error), GDNRT_OK) << error.message;
  const gdnrt_gdn_forward_metadata captured = metadata();
  EXPECT_EQ(captured.batch_size, 4);
  auto starts = [&] {
    return std::vector<int64_t>(captured.cu_seqlens, captured.cu_seqlens + 5);
  };
  EXPECT_EQ(starts(), (std::vector<int64_t>{0, 0, 0, 0, 0}));

  int32_t lengths[] = {9, 0, 7, 1000};
  graph.num_reqs = 3;
  graph.req_pool_indices = slots;
  graph.extend_seq_lens = lengths;
  graph.forward_mode = GDNRT_MODE_MIXED;
  EXPECT_EQ(replay(hybrid, &graph, &error), GDNRT_OK) << error.message;
  EXPECT_EQ(metadata().cu_seqlens, captured.cu_seqlens);
  EXPECT_EQ(starts(), (std::vector<int64_t>{0, 9, 9, 16, 16}));
  EXPECT_EQ(captured.cache_indices[2], 2);
  EXPECT_EQ(captured.cache_indices[3], 0);
  // The other side gets all of the batch.
  EXPECT_EQ(recorder.calls,
            (std::vector<std::string>{"state 4 20", "capture 4 16 0 mode 0",
                                      "replay 4 16 0 mode 2"}));

  // What is refused changes nothing.
  auto refuse = [&](const char *why) {
    EXPECT_EQ(replay(gdn, &graph, &error), GDNRT_INVALID_ARGUMENT);
    EXPECT_STREQ(error.message, why);
    EXPECT_EQ(starts(), (std::vector<int64_t>{0, 9, 9, 16, 16}));
  };
  lengths[2] = 8;
  refuse("INVALID_ARGUMENT: extend_seq_lens: expected at most 16 tokens, those "
         "of the graph, got 17");
  lengths[1] = -1;
  refuse("INVALID_ARGUMENT: extend_seq_lens: expected 0 or more in row 1, got "
         "-1");
  graph.extend_seq_lens = nullptr;
  refuse("INVALID_ARGUMENT: extend_seq_lens: expected an array, got null");
  graph.num_tokens = 21;
  refuse(
      "INVALID_ARGUMENT: num_tokens: expected 0 to 20, the max_num_tokens of "
      "init_cuda_graph_state, got 21");
  graph.forward_mode = GDNRT_MODE_IDLE;
  EXPECT_EQ(replay(gdn, &graph, &error), GDNRT_UNSUPPORTED);
  EXPECT_STREQ(error.message, "UNSUPPORTED: forward_mode: expected decode or "
                              "extend for a graph, got 3");
}

TEST_F(AttentionBackend, WhatABackendLacksIsRefused) {
  Recorder plain;
  gdnrt_attention_callbacks calls = plain.callbacks(false);
  gdnrt_attention_backend *small = nullptr;
  ASSERT_EQ(
      gdnrt_attention_backend_create_custom(device, &calls, &small, &error),
      GDNRT_OK);
  int64_t value = 0;
  gdnrt_graph_batch graph = gdnrt_graph_batch_default();
  EXPECT_EQ(
      gdnrt_attention_get_cuda_graph_seq_len_fill_value(small, &value, &error),
      GDNRT_UNSUPPORTED);
  EXPECT_EQ(gdnrt_attention_init_cuda_graph_state(small, 1, 1, &error),
            GDNRT_UNSUPPORTED);
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_capture_cuda_graph(
                small, &graph, &error),
            GDNRT_UNSUPPORTED);
  EXPECT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(
                small, &graph, &error),
            GDNRT_UNSUPPORTED);
  EXPECT_STREQ(error.message,
               "UNSUPPORTED: init_forward_metadata_replay_cuda_graph: the "
               "backend does not implement it");
  // The linear one has no full attention.
  batch.forward_mode = GDNRT_MODE_DECODE;
  EXPECT_EQ(gdnrt_attention_forward(gdn, &call, &batch, &error),
            GDNRT_UNSUPPORTED);
  EXPECT_STREQ(error.message,
               "UNSUPPORTED: forward_decode: the backend has linear attention "
               "alone, forward_gdn");
  gdnrt_attention_backend_destroy(small);
  EXPECT_TRUE(plain.destroyed);
  calls.forward_extend = nullptr;
  EXPECT_EQ(
      gdnrt_attention_backend_create_custom(device, &calls, &small, &error),
      GDNRT_INVALID_ARGUMENT);
}

TEST_F(AttentionBackend, HybridKeepsItsPartsAlive) {
  gdnrt_attention_backend_destroy(full);
  full = nullptr;
  EXPECT_FALSE(recorder.destroyed);
  batch.forward_mode = GDNRT_MODE_DECODE;
  EXPECT_EQ(gdnrt_attention_forward(hybrid, &call, &batch, &error), GDNRT_OK);
  gdnrt_attention_backend_destroy(hybrid);
  hybrid = nullptr;
  EXPECT_TRUE(recorder.destroyed);
}

TEST_F(AttentionBackend, NullIsRefused) {
  EXPECT_EQ(gdnrt_attention_forward(nullptr, &call, &batch, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_attention_forward(hybrid, nullptr, &batch, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(
      gdnrt_attention_forward_gdn(gdn, nullptr, &batch, nullptr, 0, &error),
      GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_attention_init_forward_metadata(gdn, nullptr, &error),
            GDNRT_INVALID_ARGUMENT);
  batch.forward_mode = GDNRT_MODE_DECODE;
  batch.req_pool_indices = nullptr;
  EXPECT_EQ(gdnrt_attention_init_forward_metadata(gdn, &batch, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: req_pool_indices: expected an "
                              "array, got null");
  gdnrt_attention_backend_destroy(nullptr);
}

TEST(FloatBits, EveryHalf) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    float value = gdnrt::floatOfHalf(static_cast<uint16_t>(half));
    uint32_t exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(value));
      continue;
    }
    double expected =
        exponent == 31 ? std::numeric_limits<double>::infinity()
        : exponent == 0
            ? std::ldexp(mantissa, -24)
            : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
    EXPECT_EQ(value, half & 0x8000 ? -expected : expected) << half;
    EXPECT_EQ(gdnrt::halfOfFloat(value), half);
  }
}

TEST(FloatBits, Rounding) {
  // Ties to even, carries into the exponent, and what overflows.
  EXPECT_EQ(gdnrt::halfOfFloat(1 + 0x1p-11f), 0x3c00);
  EXPECT_EQ(gdnrt::halfOfFloat(1 + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(gdnrt::halfOfFloat(2 - 0x1p-12f), 0x4000);
  EXPECT_EQ(gdnrt::halfOfFloat(65519.0f), 0x7bff);
  EXPECT_EQ(gdnrt::halfOfFloat(65520.0f), 0x7c00);
  EXPECT_EQ(gdnrt::halfOfFloat(-0x1p-25f), 0x8000);
  EXPECT_EQ(gdnrt::halfOfFloat(3 * 0x1p-25f), 2);
  EXPECT_EQ(gdnrt::bfloatOfFloat(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(gdnrt::bfloatOfFloat(1 + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(gdnrt::bfloatOfFloat(NAN) & 0x7fc0, 0x7fc0);
}
