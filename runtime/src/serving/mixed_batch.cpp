// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps whose sequences stay where they are: verify and prefill get the same
// arrays, and a flag for each sequence says whose it is.

#include "step_fields.h"

#include <algorithm>

using namespace gdnrt;

namespace {

/// What the sequences of a mixed batch are.
class Kinds {
public:
  Kinds(const MetadataOptions &options, const CommonMetadata &common)
      : options_(options), common_(common) {}

  int64_t tokensOf(int64_t row) const {
    return common_.query_start_loc[row + 1] - common_.query_start_loc[row];
  }
  /// Whether drafts of the sequence are verified, or might have been.
  bool isVerified(int64_t row) const {
    return options_.num_speculative_tokens > 0 &&
           common_.num_decode_draft_tokens &&
           common_.num_decode_draft_tokens[row] >= 0;
  }
  /// Whether verify takes the sequence. One without tokens is nobody's. A plain
  /// decode is a verify of one token where that leaves its state in the first
  /// of its slots.
  bool isOfVerify(int64_t row) const {
    const int64_t tokens = tokensOf(row);
    return tokens == 0 || isVerified(row) ||
           (options_.verify_states == GDNRT_VERIFY_SLOTS && tokens == 1 &&
            common_.seq_lens[row] > 1);
  }

private:
  const MetadataOptions &options_;
  const CommonMetadata &common_;
};

} // namespace

/// Element `row` of the arrays of verify, for a sequence of prefill.
static void skipInVerify(StepArrays &arrays, int64_t row) {
  const int64_t columns = arrays.numColumns;
  const int32_t slot = arrays.options.pad_slot;
  arrays.specAccepted[row] = arrays.hasCommits() ? 0 : 1;
  std::fill_n(arrays.specSlots + row * columns, columns, slot);
  if (arrays.options.verify_states != GDNRT_VERIFY_SLOTS)
    arrays.specRowSlots[row] = slot;
  if (arrays.options.verify_states == GDNRT_VERIFY_TREE)
    std::fill_n(arrays.specParents + row * columns, columns, -1);
}

/// Element `row` of the arrays of prefill, for a sequence of verify.
static void skipInPrefill(StepArrays &arrays, int64_t row) {
  arrays.readSlots[row] = arrays.writeSlots[row] = arrays.options.pad_slot;
  arrays.nonSpecAccepted[row] = arrays.hasCommits() ? 0 : 1;
  arrays.hasInitial[row] = 1;
}

/// What verify needs of a sequence that it takes.
static Status checkVerified(const StepArrays &arrays,
                            const CommonMetadata &common, const Kinds &kinds,
                            int64_t row) {
  const int64_t tokens = kinds.tokensOf(row);
  if (tokens > arrays.numColumns)
    return invalid("query_start_loc: expected at most ", arrays.numColumns,
                   " tokens in row ", row, ", which is verified, got ", tokens);
  if (tokens > 0 && !common.num_accepted_tokens &&
      arrays.options.num_speculative_tokens > 0 &&
      arrays.options.verify_states != GDNRT_VERIFY_TREE)
    return invalid("num_accepted_tokens: expected counts for a step that "
                   "verifies rows, got null");
  return {};
}

/// The sequences and tokens of a graph: those of the step and of its padding.
static Status padMixed(const StepArrays &arrays, const CommonMetadata &common,
                       int64_t &rows, int64_t &tokens) {
  tokens = common.num_actual_tokens;
  if (common.num_padded_reqs == 0)
    return {};
  if (common.num_padded_reqs < rows || common.num_padded_reqs > arrays.maxRows)
    return invalid("num_padded_reqs: expected ", rows, " to ", arrays.maxRows,
                   ", got ", common.num_padded_reqs);
  rows = common.num_padded_reqs;
  return {};
}

Status gdnrt::buildMixed(StepArrays &arrays, const CommonMetadata &common,
                         GDNMetadata &m) {
  const Kinds kinds(arrays.options, common);
  int64_t rows = common.num_reqs;
  arrays.used.nonSpec = arrays.used.spec = rows;
  if (Status s =
          addCommit(arrays, common,
                    /*spec=*/common.num_decode_draft_tokens != nullptr, m);
      !s.isOk())
    return s;
  std::copy_n(common.query_start_loc, rows + 1, arrays.nonSpecStarts);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t tokens = kinds.tokensOf(row);
    const bool isPrefill = !kinds.isOfVerify(row);
    arrays.isPrefill[row] = isPrefill;
    if (isPrefill) {
      skipInVerify(arrays, row);
      fillSlots(arrays, common, row, row);
      arrays.hasInitial[row] = common.seq_lens[row] > tokens;
      ++m.num_prefills;
      m.num_prefill_tokens += tokens;
      continue;
    }
    if (Status s = checkVerified(arrays, common, kinds, row); !s.isOk())
      return s;
    skipInPrefill(arrays, row);
    if (Status s = fillSpec(arrays, common, row, row); !s.isOk())
      return s;
    m.num_spec_decodes += tokens > 0;
    m.num_spec_decode_tokens += tokens;
  }

  const bool isGraph = arrays.options.use_full_cuda_graph != 0;
  int64_t tokens = common.query_start_loc[rows];
  if (isGraph) {
    if (Status s = padMixed(arrays, common, rows, tokens); !s.isOk())
      return s;
    // What the step has of commits, a graph has in any case.
    arrays.clearRuns(m);
    padCommit(arrays, m, rows);
  }
  m.run_is_prefill = {arrays.isPrefill, rows};
  m.non_spec_state_indices = {arrays.writeSlots, rows};
  m.non_spec_read_indices = {arrays.readSlots, rows};
  m.non_spec_query_start_loc = {arrays.nonSpecStarts, rows + 1};
  m.spec_query_start_loc = m.non_spec_query_start_loc;
  m.num_accepted_tokens = {arrays.specAccepted, rows};
  if (arrays.options.verify_states != GDNRT_VERIFY_LAZY)
    m.spec_state_indices = {arrays.specSlots, rows * arrays.numColumns};
  if (arrays.options.verify_states != GDNRT_VERIFY_SLOTS)
    m.spec_slots = {arrays.specRowSlots, rows};
  if (arrays.options.verify_states == GDNRT_VERIFY_TREE)
    m.spec_parents = {arrays.specParents, rows * arrays.numColumns};
  if (isGraph || m.num_spec_decodes > 0)
    arrays.addRun(m, GDNRT_RUN_VERIFY, 0, tokens, 0, rows);
  if (isGraph || m.num_prefills > 0)
    arrays.addRun(m, GDNRT_RUN_PREFILL, 0, tokens, 0, rows);
  m.num_run_tokens = m.num_runs > 0 ? tokens : 0;
  return {};
}
