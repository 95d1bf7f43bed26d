// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A layer under test: which arrays it gets when, and the metadata of a step.

#include "layer_test.h"

#include <algorithm>
#include <set>

using namespace gdnrt::cts;

LayerTest::LayerTest(bool debugChecks)
    : EntryTest(debugChecks), kind(std::get<0>(GetParam())),
      decode(EntryKind::decode, kernel), prefill(EntryKind::prefill, kernel),
      verify(EntryKind::verify, kernel), commit(EntryKind::commit, kernel) {}

void LayerTest::SetUp() {
  EntryTest::SetUp();
  if (IsSkipped())
    return;
  // Ids of engines are i32; that a layer says so is a case of its own.
  for (size_t p = 0; p < gdnrt_entry_param_count(kernel.entry()); ++p) {
    gdnrt_param_info info = gdnrt_param_info_default();
    gdnrt_entry_param(kernel.entry(), p, &info, &error);
    bool slots = std::string(info.name).find("slots") != std::string::npos;
    if (slots && info.dtype != GDNRT_I32)
      GTEST_SKIP() << "a layer has no " << info.name << " of i64";
  }
  isDeferred_ = takes(kernel, "pending_counts");
}

void LayerTest::TearDown() {
  gdnrt_gdn_layer_destroy(layer);
  gdnrt_metadata_builder_destroy(builder);
  EXPECT_EQ(gdnrt_device_free(kernel.device(), arena_, &error), GDNRT_OK);
}

bool LayerTest::takes(const Kernel &of, const char *name) const {
  size_t index;
  return of.exists() &&
         gdnrt_entry_find_param(of.entry(), name, &index, nullptr) == GDNRT_OK;
}

gdnrt_verify_states LayerTest::states() const {
  return takes(verify, "parents")            ? GDNRT_VERIFY_TREE
         : takes(verify, "pending_keys")     ? GDNRT_VERIFY_LAZY
         : takes(verify, "token_state_pool") ? GDNRT_VERIFY_BUFFER
                                             : GDNRT_VERIFY_SLOTS;
}

Rows LayerTest::rows() const {
  Rows rows;
  rows.lengths = {3, 2, 0, 1, 5};
  rows.slots = {4, 0, 6, 2, 7};
  if (kind == EntryKind::decode) {
    rows.lengths.assign(4, 1);
    rows.slots = {4, 0, 2, 7};
  }
  if (kind != EntryKind::verify)
    return rows;
  rows.lengths = {3, 2, 1, 3};
  rows.slots = {4, 0, 2, 7};
  rows.steps = 1 + kDrafts;
  rows.accepted.assign(4, 0);
  switch (states()) {
  case GDNRT_VERIFY_SLOTS:
    rows.tokenSlots = {{4, 5, 6}, {-1, -1, -1}, {1, 2, 3}, {7, 8, 9}};
    rows.accepted = {2, 1, 1, 3};
    break;
  case GDNRT_VERIFY_TREE:
    rows.tokenSlots = {{5, 6, 8}, {-1, -1, -1}, {1, -1, -1}, {9, 10, 3}};
    rows.parents = {{-1, 0, 0}, {-1, 0, 1}, {-1, -1, -1}, {-1, 0, 1}};
    break;
  case GDNRT_VERIFY_LAZY:
    rows.accepted = {2, 1, 0, 3};
    break;
  case GDNRT_VERIFY_BUFFER:
    rows.tokenSlots = {{4, 5, 6}, {-1, -1, -1}, {1, 2, 3}, {7, 8, 9}};
    break;
  }
  return rows;
}

Rows LayerTest::padded(Rows live) const {
  live.lengths.insert(live.lengths.end(), {1, 1});
  live.slots.insert(live.slots.end(), {0, 0});
  if (kind != EntryKind::verify)
    return live;
  if (!live.tokenSlots.empty())
    live.tokenSlots.insert(live.tokenSlots.end(), {{-1, -1, -1}, {0, 0, 0}});
  if (!live.parents.empty())
    live.parents.insert(live.parents.end(), {{-1, -1, -1}, {-1, -1, -1}});
  const int64_t none = hasCommits() ? 0 : 1;
  if (!live.accepted.empty())
    live.accepted.insert(live.accepted.end(), {none, none});
  return live;
}

std::vector<gdnrt_named_arg>
LayerTest::pick(const std::vector<gdnrt_named_arg> &args, bool fixed) {
  static const std::set<std::string> kFixed = {
      "conv_weight",      "A_log",
      "dt_bias",          "norm_weight",
      "conv_pool",        "state_pool",
      "pending_keys",     "pending_deltas",
      "pending_decays",   "token_conv_pool",
      "token_state_pool", "norm_constants",
      "state_scales",     "state_low",
      "pending_counts",   "pending_scales"};
  static const std::set<std::string> kTokens = {
      "qkvz", "ba", "qkv",       "q",    "k",    "v",  "z",
      "b",    "a",  "log_decay", "beta", "core", "out"};
  std::vector<gdnrt_named_arg> found;
  for (const gdnrt_named_arg &each : args)
    if ((fixed ? kFixed : kTokens).count(each.name))
      found.push_back(each);
  return found;
}

void LayerTest::makeLayer(const std::vector<gdnrt_named_arg> &args,
                          bool whole) {
  ASSERT_EQ(createLayer(args, whole), GDNRT_OK) << error.message;
}

gdnrt_status LayerTest::createLayer(const std::vector<gdnrt_named_arg> &args,
                                    bool whole) {
  gdnrt_gdn_layer_destroy(layer);
  layer = nullptr;
  gdnrt_gdn_kernels kernels = gdnrt_gdn_kernels_default();
  auto has = [&](EntryKind one) { return whole || kind == one; };
  isDeferred_ = (has(EntryKind::decode) && takes(decode, "pending_counts")) ||
                (has(EntryKind::verify) && takes(verify, "pending_counts"));
  if (has(EntryKind::decode))
    kernels.decode = decode.handle();
  if (has(EntryKind::prefill))
    kernels.prefill = prefill.handle();
  if (has(EntryKind::verify)) {
    kernels.verify = verify.handle();
    kernels.commit = commit.handle();
  }
  std::vector<gdnrt_named_arg> fixed = pick(args, true);
  return gdnrt_gdn_layer_create(&kernels, fixed.data(), fixed.size(), &layer,
                                &error);
}

gdnrt_gdn_metadata LayerTest::build(EntryKind of, const Rows &rows,
                                    int64_t padded, bool capture) {
  const bool verifies = of == EntryKind::verify;
  const auto count = static_cast<int64_t>(rows.lengths.size());
  if (!builder || forGraphs_ != (padded > 0 || capture)) {
    gdnrt_metadata_builder_destroy(builder);
    builder = nullptr;
    forGraphs_ = padded > 0 || capture;
    gdnrt_metadata_options options = gdnrt_metadata_options_default();
    options.max_num_seqs = 8;
    options.max_num_tokens = 8192;
    options.num_speculative_tokens = kind == EntryKind::verify ? kDrafts : 0;
    options.use_full_cuda_graph = forGraphs_;
    options.deferred_writes = isDeferred_;
    options.verify_states = states();
    EXPECT_EQ(gdnrt_metadata_builder_create(&options, &builder, &error),
              GDNRT_OK)
        << error.message;
  }
  std::vector<int32_t> starts = {0}, lengths, table, accepted, drafts;
  std::vector<int32_t> tokenSlots, parents;
  const bool hasTable = verifies && states() == GDNRT_VERIFY_SLOTS;
  auto append = [](std::vector<int32_t> &to, const std::vector<int64_t> &row) {
    for (int64_t value : row)
      to.push_back(static_cast<int32_t>(value));
  };
  for (size_t row = 0; row < rows.lengths.size(); ++row) {
    auto tokens = static_cast<int32_t>(rows.lengths[row]);
    starts.push_back(starts.back() + tokens);
    const bool isFirst = std::find(firstTokens.begin(), firstTokens.end(),
                                   row) != firstTokens.end();
    lengths.push_back((isFirst ? 0 : 20) + tokens);
    drafts.push_back(verifies ? tokens - 1 : -1);
    if (hasTable) {
      append(table, rows.tokenSlots[row]);
    } else {
      // Columns of other tokens are looked at for rows that were verified.
      const auto slot = static_cast<int32_t>(rows.slots[row]);
      table.insert(table.end(), 1 + kDrafts, slot);
    }
    accepted.push_back(rows.accepted.empty()
                           ? (hasCommits() ? 0 : 1)
                           : static_cast<int32_t>(rows.accepted[row]));
    if (!rows.tokenSlots.empty())
      append(tokenSlots, rows.tokenSlots[row]);
    if (!rows.parents.empty())
      append(parents, rows.parents[row]);
  }
  gdnrt_common_metadata common = gdnrt_common_metadata_default();
  common.num_reqs = count;
  common.num_actual_tokens = starts.back();
  common.query_start_loc = starts.data();
  common.seq_lens = lengths.data();
  common.block_table = table.data();
  common.block_table_columns = common.block_table_stride = 1 + kDrafts;
  common.num_accepted_tokens = accepted.data();
  common.num_decode_draft_tokens = verifies ? drafts.data() : nullptr;
  common.num_padded_reqs = padded;
  common.token_slots = tokenSlots.empty() ? nullptr : tokenSlots.data();
  common.parents = parents.empty() ? nullptr : parents.data();
  common.token_slots_stride = 1 + kDrafts;
  gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
  EXPECT_EQ(capture ? gdnrt_metadata_builder_build_for_cudagraph_capture(
                          builder, &common, &metadata, &error)
                    : gdnrt_metadata_builder_build(builder, &common, &metadata,
                                                   &error),
            GDNRT_OK)
      << error.message;
  return metadata;
}

void *LayerTest::upload(const gdnrt_gdn_metadata &metadata) {
  if (suiteOptions.device == "cpu")
    return nullptr;
  if (arenaBytes_ < metadata.arena_bytes) {
    EXPECT_EQ(gdnrt_device_free(kernel.device(), arena_, &error), GDNRT_OK);
    arenaBytes_ = metadata.arena_bytes;
    EXPECT_EQ(
        gdnrt_device_allocate(kernel.device(), arenaBytes_, &arena_, &error),
        GDNRT_OK);
  }
  EXPECT_EQ(gdnrt_metadata_upload(kernel.device(), &metadata, arena_, nullptr,
                                  &error),
            GDNRT_OK)
      << error.message;
  // Steps and graphs are on streams that do not wait for that of the copy.
  EXPECT_EQ(gdnrt_device_synchronize(kernel.device(), nullptr, &error),
            GDNRT_OK);
  return arena_;
}

void LayerTest::step(const std::vector<gdnrt_named_arg> &args,
                     const gdnrt_gdn_metadata *metadata, void *stream) {
  void *arena = metadata ? upload(*metadata) : nullptr;
  std::vector<gdnrt_named_arg> tokens = pick(args, false);
  ASSERT_EQ(gdnrt_gdn_layer_forward(layer, metadata, arena, tokens.data(),
                                    tokens.size(), stream, &error),
            GDNRT_OK)
      << error.message;
  EXPECT_EQ(gdnrt_device_synchronize(kernel.device(), stream, &error),
            GDNRT_OK);
}
