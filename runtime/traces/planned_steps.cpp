// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps whose arrays are on the device, with the plan of a batch ahead of the
// layers, and in their graph.

#include "planned_steps.h"

#include "arguments.h"
#include "layer_graphs.h"
#include "step_arrays.h"

#include <algorithm>

using namespace gdnrt::traces;

PlannedSteps::~PlannedSteps() { gdnrt_batch_planner_destroy(planner_); }

void PlannedSteps::makePlanner(int32_t verifyStates) {
  gdnrt_batch_planner_options options = gdnrt_batch_planner_options_default();
  options.max_num_seqs = kMostRows;
  options.num_speculative_tokens = engine_.verifyTokens_ - 1;
  options.verify_states = verifyStates;
  gdnrt_error error;
  check(gdnrt_batch_planner_create(engine_.kernels_.plan, &options, &planner_,
                                   &error),
        error);
}

/// A sequence with tokens of the padding, which has to be skipped: it has no
/// slot, a count out of range, or more tokens than it can have.
static void addSkipped(StepArrays &step, VerifyKind kind, uint64_t seed) {
  const int64_t count = std::min(step.padding, step.columns);
  if (count == 0 || seed % 4 == 0)
    return;
  const bool takesCounts = kind != VerifyKind::tree;
  const bool hasSlots = step.numRows() > 0 && seed % 4 > 1;
  const bool hasCount = hasSlots && (!takesCounts || seed % 4 == 2);
  const int32_t ids[] = {-1, 0, 1 << 20, -7};
  step.queryStartLoc.push_back(
      static_cast<int32_t>(step.numRowTokens() + count));
  const int32_t all = hasSlots && hasCount ? -1 : 5;
  step.seqLens.push_back(static_cast<int32_t>(count) + all);
  for (int64_t t = 0; t < step.columns; ++t) {
    step.blockTable.push_back(hasSlots ? step.blockTable[static_cast<size_t>(t)]
                                       : ids[seed / 4 % 4]);
    step.tokenSlots.push_back(-1);
    step.parents.push_back(-1);
  }
  const int32_t below = kind == VerifyKind::slots ? 0 : -1;
  step.accepted.push_back(!hasSlots || hasCount ? 1
                          : seed % 8 > 3
                              ? below
                              : static_cast<int32_t>(step.columns) + 1);
  step.drafts.push_back(static_cast<int32_t>(count) - 1);
}

/// Rows without tokens up to the most there can be, with what others left.
static void pad(std::vector<int32_t> &values, int64_t count, int32_t value) {
  values.resize(static_cast<size_t>(count), value);
}

/// The step in memory of the device, at the same addresses for all steps.
gdnrt_device_batch PlannedSteps::writeBatch(StepArrays step, int64_t numSeqs) {
  const VerifyKind kind = engine_.kernels_.verifyKind();
  const bool isTree = kind == VerifyKind::tree;
  const bool hasTokenSlots = isTree || kind == VerifyKind::buffer;
  const int64_t table = kMostRows * step.columns;
  const int32_t stale = step.numRows() > 0 ? step.blockTable[0] : 1;
  // A table of one slot for each sequence, or part of a wider one.
  const bool isNarrow = isTree || kind == VerifyKind::lazy;
  const int64_t width = isNarrow ? 1 : step.columns;
  for (auto i = size_t{0}; isNarrow && i < step.seqLens.size(); ++i)
    step.blockTable[i] = step.blockTable[i * static_cast<size_t>(step.columns)];
  if (isNarrow)
    step.blockTable.resize(step.seqLens.size());
  // Without guesses nothing is verified.
  if (engine_.verifyTokens_ == 1)
    step.drafts.assign(step.drafts.size(), -1);
  // Starts of rows that are not there may be left at zero.
  pad(step.queryStartLoc, kMostRows + 1,
      engine_.numServed_ % 4 < 2 ? step.queryStartLoc.back() : 0);
  pad(step.seqLens, kMostRows, 9);
  pad(step.blockTable, kMostRows * width, stale);
  pad(step.accepted, kMostRows, 2);
  pad(step.drafts, kMostRows, engine_.numServed_ % 2 ? 1 : -1);
  pad(step.tokenSlots, table, stale);
  pad(step.parents, table, 0);
  auto write = [&](const char *name, const std::vector<int32_t> &values) {
    DeviceArray &to = engine_.array(std::string("planned_") + name);
    to.write(values.data(), values.size() * sizeof(int32_t));
    return static_cast<const int32_t *>(to.data());
  };
  gdnrt_device_batch batch = gdnrt_device_batch_default();
  batch.num_seqs = numSeqs;
  batch.query_start_loc = write("query_start_loc", step.queryStartLoc);
  batch.seq_lens = write("seq_lens", step.seqLens);
  batch.block_table = write("block_table", step.blockTable);
  batch.block_table_columns = kind == VerifyKind::slots ? width : 1;
  batch.block_table_stride = width;
  batch.num_decode_draft_tokens = write("num_drafts", step.drafts);
  if (hasTokenSlots) {
    batch.token_slots = write("token_slots", step.tokenSlots);
    batch.token_slots_stride = step.columns;
  }
  if (isTree)
    batch.parents = write("parents", step.parents);
  else
    batch.num_accepted_tokens = write("num_accepted", step.accepted);
  return batch;
}

std::vector<Outputs> PlannedSteps::serve(StepArrays step, bool fits,
                                         bool isBeyond) {
  if (step.numRows() < kGraphRows)
    addSkipped(step, engine_.kernels_.verifyKind(),
               mix(95, static_cast<uint64_t>(engine_.numServed_)));
  const int64_t padded = engine_.numServed_ % 2 ? kGraphRows : 0;
  const int64_t numSeqs = fits ? kGraphRows : std::max(step.numRows(), padded);
  gdnrt_device_batch batch = writeBatch(step, numSeqs);
  batch.num_tokens = fits ? kGraphTokens : step.numTokens();
  // Not to say how many sequences of prefill there are is right for any step.
  if (fits ||
      (!isBeyond && engine_.numServed_ % 4 < 2 && numSeqs >= kMostPrefills))
    batch.max_num_prefills = kMostPrefills;
  ++numPlanned_;
  gdnrt_error error;
  gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
  auto plan = [&](void *stream) {
    check(gdnrt_batch_planner_plan(planner_, &batch, stream, &metadata, &error),
          error);
  };
  if (!fits) {
    plan(nullptr);
    return engine_.runLayers(metadata, nullptr, step.tokens);
  }
  return engine_.graphs_->replay(
      engine_.graphs_->of(GDNRT_RUN_PREFILL,
                          [&](void *stream) {
                            plan(stream);
                            engine_.graphs_->recordLayers(metadata, nullptr,
                                                          stream);
                          }),
      step.tokens);
}
