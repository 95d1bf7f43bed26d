// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of a scheduler: what a layer launches for metadata, and a backend for a
// batch, has the bits of the kernel alone. Rows of padding and profile runs
// give zeros and touch no pool.

#include "gdn-c/attention.h"
#include "suite.h"

#include <algorithm>
#include <set>

using namespace gdnrt::cts;

namespace {

/// A layer of one kernel, and metadata of the kind of rows that it does.
class StepCases : public EntryTest {
protected:
  void SetUp() override {
    EntryTest::SetUp();
    if (IsSkipped())
      return;
    kind = std::get<0>(GetParam());
    for (size_t p = 0; p < gdnrt_entry_param_count(kernel.entry()); ++p) {
      gdnrt_param_info info;
      gdnrt_entry_param(kernel.entry(), p, &info, &error);
      static const std::set<std::string> notOfSteps = {
          "parents", "pending_keys", "pending_deltas", "pending_decays"};
      bool slots = std::string(info.name).find("slots") != std::string::npos;
      if (notOfSteps.count(info.name) || (slots && info.dtype != GDNRT_I32))
        GTEST_SKIP() << "a layer has no " << info.name << " of that kind";
    }
  }
  void TearDown() override {
    gdnrt_gdn_layer_destroy(layer);
    gdnrt_metadata_builder_destroy(builder);
    gdnrt_attention_backend_destroy(backend);
  }

  /// Rows of every length that the kernel takes; the second is skipped.
  Rows rows() const {
    Rows rows;
    rows.lengths = {3, 2, 0, 1, 5};
    rows.slots = {4, 0, 6, 2, 7};
    if (kind == EntryKind::decode) {
      rows.lengths.assign(4, 1);
      rows.slots = {4, 0, 2, 7};
    }
    if (kind == EntryKind::verify) {
      rows.lengths = {3, 2, 1, 3};
      rows.tokenSlots = {{4, 5, 6}, {-1, -1, -1}, {1, 2, 3}, {7, 8, 9}};
      rows.accepted = {2, 1, 1, 3};
    }
    return rows;
  }

  static bool isFixed(const std::string &name) {
    return name == "conv_weight" || name == "A_log" || name == "dt_bias" ||
           name == "norm_weight" || name == "conv_pool" || name == "state_pool";
  }
  static bool isOfTokens(const std::string &name) {
    static const std::set<std::string> kNames = {
        "qkvz", "ba", "qkv", "q", "k", "v", "z", "b", "a", "core", "out"};
    return kNames.count(name) != 0;
  }
  static std::vector<gdnrt_named_arg>
  pick(const std::vector<gdnrt_named_arg> &args, bool fixed) {
    std::vector<gdnrt_named_arg> found;
    for (const gdnrt_named_arg &each : args)
      if (fixed ? isFixed(each.name) : isOfTokens(each.name))
        found.push_back(each);
    return found;
  }

  void makeLayer(const std::vector<gdnrt_named_arg> &args) {
    gdnrt_gdn_layer_destroy(layer);
    layer = nullptr;
    gdnrt_gdn_kernels kernels = {};
    (kind == EntryKind::decode    ? kernels.decode
     : kind == EntryKind::prefill ? kernels.prefill
                                  : kernels.verify) = kernel.handle();
    std::vector<gdnrt_named_arg> fixed = pick(args, true);
    ASSERT_EQ(gdnrt_gdn_layer_create(&kernels, fixed.data(), fixed.size(),
                                     &layer, &error),
              GDNRT_OK)
        << error.message;
  }

  /// What a scheduler says of the rows, all of which have a state. A graph's
  /// arrays have `padded` rows.
  gdnrt_gdn_metadata build(const Rows &rows, int64_t padded) {
    bool verify = kind == EntryKind::verify;
    gdnrt_metadata_options options = {};
    options.struct_size = sizeof(options);
    options.max_num_seqs = 8;
    options.max_num_tokens = 64;
    options.num_speculative_tokens = verify ? 2 : 0;
    options.use_full_cuda_graph = padded > 0;
    EXPECT_EQ(gdnrt_metadata_builder_create(&options, &builder, &error),
              GDNRT_OK)
        << error.message;
    std::vector<int32_t> starts = {0}, lengths, table, accepted, drafts;
    for (size_t row = 0; row < rows.lengths.size(); ++row) {
      auto tokens = static_cast<int32_t>(rows.lengths[row]);
      starts.push_back(starts.back() + tokens);
      lengths.push_back(20 + tokens);
      drafts.push_back(tokens - 1);
      if (!verify)
        table.push_back(static_cast<int32_t>(rows.slots[row]));
      else
        for (int64_t slot : rows.tokenSlots[row])
          table.push_back(static_cast<int32_t>(slot));
      accepted.push_back(verify ? static_cast<int32_t>(rows.accepted[row]) : 1);
    }
    gdnrt_common_metadata common = {};
    common.num_reqs = static_cast<int64_t>(rows.lengths.size());
    common.num_actual_tokens = starts.back();
    common.query_start_loc = starts.data();
    common.seq_lens = lengths.data();
    common.block_table = table.data();
    common.block_table_columns = common.block_table_stride = verify ? 3 : 1;
    common.num_accepted_tokens = verify ? accepted.data() : nullptr;
    common.num_decode_draft_tokens = verify ? drafts.data() : nullptr;
    common.num_padded_reqs = padded;
    gdnrt_gdn_metadata metadata = {};
    EXPECT_EQ(gdnrt_metadata_builder_build(builder, &common, &metadata, &error),
              GDNRT_OK)
        << error.message;
    return metadata;
  }

  /// The layer over `metadata`, or over none, on the device.
  void step(const std::vector<gdnrt_named_arg> &args,
            const gdnrt_gdn_metadata *metadata) {
    void *arena = nullptr;
    if (metadata && suiteOptions.device != "cpu") {
      ASSERT_EQ(gdnrt_device_allocate(kernel.device(), metadata->arena_bytes,
                                      &arena, &error),
                GDNRT_OK);
      ASSERT_EQ(gdnrt_metadata_upload(kernel.device(), metadata, arena, nullptr,
                                      &error),
                GDNRT_OK)
          << error.message;
    }
    std::vector<gdnrt_named_arg> tokens = pick(args, false);
    EXPECT_EQ(gdnrt_gdn_layer_forward(layer, metadata, arena, tokens.data(),
                                      tokens.size(), nullptr, &error),
              GDNRT_OK)
        << error.message;
    EXPECT_EQ(gdnrt_device_synchronize(kernel.device(), nullptr, &error),
              GDNRT_OK);
    EXPECT_EQ(gdnrt_device_free(kernel.device(), arena, &error), GDNRT_OK);
  }

  EntryKind kind = EntryKind::decode;
  gdnrt_error error = {};
  gdnrt_gdn_layer *layer = nullptr;
  gdnrt_metadata_builder *builder = nullptr;
  gdnrt_attention_backend *backend = nullptr;
};

INSTANTIATE_TEST_SUITE_P(
    Cts, StepCases,
    ::testing::Combine(::testing::Values(EntryKind::decode, EntryKind::prefill,
                                         EntryKind::verify),
                       ::testing::Values(1, 2)),
    nameOf);

} // namespace

TEST_P(StepCases, LayerHasTheBitsOfTheKernel) {
  Problem alone(kernel.entry(), rows());
  Problem layered = alone;
  kernel.run(alone);
  gdnrt_gdn_metadata metadata = build(rows(), 0);
  kernel.onDevice(layered, [&](const auto &args) {
    makeLayer(args);
    step(args, &metadata);
  });
  expectSameOutputs(layered, alone);
  expectSamePools(layered, alone);
}

TEST_P(StepCases, PaddingOfGraphsIsZero) {
  if (kind == EntryKind::prefill)
    GTEST_SKIP() << "graphs are of decode and verify";
  Rows live = rows(), padded = live;
  // Two rows more, with a token each, that name slots of others.
  padded.lengths.insert(padded.lengths.end(), {1, 1});
  padded.slots.insert(padded.slots.end(), {0, 0});
  if (kind == EntryKind::verify) {
    padded.tokenSlots.insert(padded.tokenSlots.end(),
                             {{-1, -1, -1}, {0, 0, 0}});
    padded.accepted.insert(padded.accepted.end(), {1, 1});
  }
  Problem alone(kernel.entry(), padded);
  Problem layered = alone;
  kernel.run(alone);
  gdnrt_gdn_metadata metadata =
      build(live, static_cast<int64_t>(padded.lengths.size()));
  kernel.onDevice(layered, [&](const auto &args) {
    makeLayer(args);
    step(args, &metadata);
  });
  expectSameOutputs(layered, alone);
  expectSamePools(layered, alone);
  for (size_t row = live.lengths.size(); row < padded.lengths.size(); ++row)
    expectZeroRow(layered, static_cast<int64_t>(row));
}

TEST_P(StepCases, ProfileRunTouchesNothing) {
  Problem problem(kernel.entry(), rows());
  Problem before = problem;
  kernel.onDevice(problem, [&](const auto &args) {
    makeLayer(args);
    step(args, nullptr);
    step(args, nullptr);
  });
  for (int64_t row = 0; row < problem.numRows(); ++row)
    expectZeroRow(problem, row);
  expectSamePools(problem, before);
}

TEST_P(StepCases, BackendHasTheBitsOfTheKernel) {
  if (kind == EntryKind::verify)
    GTEST_SKIP() << "batches of that kind verify nothing";
  Problem alone(kernel.entry(), rows());
  Problem batched = alone, idle = alone;
  kernel.run(alone);
  ASSERT_EQ(
      gdnrt_attention_backend_create_gdn(kernel.device(), &backend, &error),
      GDNRT_OK);
  const Rows live = rows();
  const std::vector<int64_t> &slots = live.slots;
  std::vector<int32_t> lengths(live.lengths.begin(), live.lengths.end());
  gdnrt_forward_batch batch = {};
  batch.batch_size = static_cast<int64_t>(slots.size());
  batch.req_pool_indices = slots.data();
  batch.extend_seq_lens = lengths.data();
  auto forward = [&](const Problem &problem) {
    kernel.onDevice(problem, [&](const auto &args) {
      makeLayer(args);
      std::vector<gdnrt_named_arg> tokens = pick(args, false);
      EXPECT_EQ(gdnrt_attention_init_forward_metadata(backend, &batch, &error),
                GDNRT_OK)
          << error.message;
      EXPECT_EQ(gdnrt_attention_forward_gdn(backend, layer, &batch,
                                            tokens.data(), tokens.size(),
                                            &error),
                GDNRT_OK)
          << error.message;
      EXPECT_EQ(gdnrt_device_synchronize(kernel.device(), nullptr, &error),
                GDNRT_OK);
    });
  };
  batch.forward_mode =
      kind == EntryKind::decode ? GDNRT_MODE_DECODE : GDNRT_MODE_MIXED;
  forward(batched);
  expectSameOutputs(batched, alone);
  expectSamePools(batched, alone);

  Problem before = idle;
  batch.forward_mode = GDNRT_MODE_IDLE;
  forward(idle);
  for (int64_t row = 0; row < idle.numRows(); ++row)
    expectZeroRow(idle, row);
  expectSamePools(idle, before);
}
