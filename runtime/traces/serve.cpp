// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step through the metadata builder and the layers, as an engine runs it.

#include "arguments.h"
#include "engine.h"

#include <algorithm>

using namespace gdnrt::traces;

constexpr int64_t kMostRows = 64, kMostTokens = 8192;
/// Graphs of mixed batches are for fewer sequences of prefill than some steps
/// have.
constexpr int64_t kMostPrefills = 2;

void Engine::makeLayers() {
  gdnrt_error error;
  gdnrt_metadata_options options = gdnrt_metadata_options_default();
  options.max_num_seqs = kMostRows;
  options.max_num_tokens = kMostTokens;
  options.num_speculative_tokens = verifyTokens_ - 1;
  options.use_full_cuda_graph = 1;
  options.mixed_batch = kernels_.isMixed();
  options.max_num_prefills = kernels_.isMixed() ? kMostPrefills : 0;
  options.verify_states =
      kernels_.verifyKind() == VerifyKind::tree     ? GDNRT_VERIFY_TREE
      : kernels_.verifyKind() == VerifyKind::lazy   ? GDNRT_VERIFY_LAZY
      : kernels_.verifyKind() == VerifyKind::buffer ? GDNRT_VERIFY_BUFFER
                                                    : GDNRT_VERIFY_SLOTS;
  check(gdnrt_metadata_builder_create(&options, &builder_, &error), error);
  gdnrt_gdn_kernels kernels = gdnrt_gdn_kernels_default();
  kernels.decode = kernels_.decode;
  kernels.prefill = kernels_.prefill;
  kernels.verify = kernels_.verify;
  kernels.commit = kernels_.commit;
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Arguments args;
    addWeights(args, layer);
    addPools(args, layer, /*withTokens=*/true);
    layers_.push_back(nullptr);
    check(gdnrt_gdn_layer_create(&kernels, args.named().data(),
                                 args.named().size(), &layers_.back(), &error),
          error);
  }
}

/// Gives the runs of a step the rows that a graph was captured with: more than
/// the step has, and as the arrays say they are padding. False for a step that
/// no graph is replayed for. One of a mixed batch takes any step.
static bool asGraph(gdnrt_gdn_metadata &metadata, std::vector<gdnrt_run> &runs,
                    int64_t rows) {
  if (metadata.num_runs == 0 ||
      (metadata.num_prefills > 0 && !metadata.run_is_prefill.data))
    return false;
  runs.assign(metadata.runs, metadata.runs + metadata.num_runs);
  for (gdnrt_run &run : runs) {
    run.num_rows = rows;
    if (run.kind == GDNRT_RUN_DECODE)
      metadata.num_run_tokens = run.num_tokens = rows;
  }
  metadata.runs = runs.data();
  return true;
}

/// Whether a step of a mixed batch has more sequences of prefill than a graph.
static bool isBeyondGraph(const std::vector<ServedRow> &rows, VerifyKind kind,
                          bool speculates) {
  return std::count_if(rows.begin(), rows.end(), [&](const ServedRow &row) {
           const bool isVerified = speculates && row.drafts >= 0;
           const bool isDecode = kind == VerifyKind::slots && row.context > 0 &&
                                 row.tokens.size() == 1;
           return !row.tokens.empty() && !isVerified && !isDecode;
         }) > kMostPrefills;
}

std::vector<Outputs> Engine::serve(const std::vector<ServedRow> &rows,
                                   int64_t padding) {
  if (!builder_)
    makeLayers();
  std::vector<int32_t> queryStartLoc = {0}, seqLens, blockTable, accepted,
                       drafts, tokenSlots, parents;
  std::vector<uint64_t> tokens;
  int64_t emptyRows = 0;
  for (const ServedRow &row : rows) {
    tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    queryStartLoc.push_back(static_cast<int32_t>(tokens.size()));
    emptyRows += row.tokens.empty();
    seqLens.push_back(static_cast<int32_t>(row.context + row.tokens.size()));
    for (auto t = size_t{0}; t < static_cast<size_t>(verifyTokens_); ++t) {
      // One slot is enough where tokens have none in the table.
      blockTable.push_back(row.slots[std::min(t, row.slots.size() - 1)]);
      tokenSlots.push_back(t < row.tokenSlots.size() ? row.tokenSlots[t] : -1);
      parents.push_back(t < row.parents.size() ? row.parents[t] : -1);
    }
    accepted.push_back(row.accepted);
    drafts.push_back(row.drafts);
  }
  gdnrt_common_metadata common = gdnrt_common_metadata_default();
  common.num_reqs = static_cast<int64_t>(rows.size());
  common.num_actual_tokens = static_cast<int64_t>(tokens.size()) + padding;
  common.query_start_loc = queryStartLoc.data();
  common.seq_lens = seqLens.data();
  common.block_table = blockTable.data();
  common.block_table_columns = common.block_table_stride = verifyTokens_;
  common.num_accepted_tokens = accepted.data();
  common.num_decode_draft_tokens = drafts.data();
  // The caller may say how many rows a graph has, or leave it out.
  const bool isEven = ++numServed_ % 2 == 0;
  common.num_padded_reqs = isEven ? common.num_reqs + padding - emptyRows : 0;
  if (kernels_.isMixed() &&
      isBeyondGraph(rows, kernels_.verifyKind(), verifyTokens_ > 1))
    common.num_padded_reqs = 0;
  common.token_slots = tokenSlots.data();
  common.parents = parents.data();
  common.token_slots_stride = verifyTokens_;
  for (int64_t t = 0; t < padding; ++t)
    tokens.push_back(mix(98, static_cast<uint64_t>(t)));
  gdnrt_error error;
  gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
  // Counts that are left out are either not needed or an error.
  gdnrt_common_metadata without = common;
  without.num_accepted_tokens = nullptr;
  if (numServed_ % 3 != 0 ||
      gdnrt_metadata_builder_build(builder_, &without, &metadata, &error) !=
          GDNRT_OK)
    check(gdnrt_metadata_builder_build(builder_, &common, &metadata, &error),
          error);
  std::vector<gdnrt_run> runs;
  if (numServed_ % 4 < 2 && asGraph(metadata, runs, kMostRows))
    while (static_cast<int64_t>(tokens.size()) < metadata.num_run_tokens)
      tokens.push_back(mix(97, tokens.size()));
  void *arena = nullptr;
  if (!kernels_.isHost()) {
    // Nobody else may write the arena where only changes are copied.
    const bool changes = verifyTokens_ % 2 == 0;
    if (!changes || numServed_ == 1) {
      std::vector<uint8_t> room(metadata.arena_bytes);
      array("arena").write(room.data(), room.size());
    }
    arena = array("arena").data();
    check((changes ? gdnrt_metadata_upload_changed : gdnrt_metadata_upload)(
              kernels_.device(), &metadata, arena, nullptr, &error),
          error);
  }
  std::vector<Outputs> outputs;
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Arguments args;
    Outputs core;
    addTokens(args, tokens, layer, core);
    check(gdnrt_gdn_layer_forward(layers_[static_cast<size_t>(layer)],
                                  &metadata, arena, args.named().data(),
                                  args.named().size(), nullptr, &error),
          error);
    array("core").read(core.data(), core.size() * sizeof(float));
    outputs.push_back(std::move(core));
  }
  return outputs;
}
