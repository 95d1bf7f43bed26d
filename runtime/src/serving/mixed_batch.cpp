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

/// The arrays of prefill: its sequences, and between two of them one element
/// for all tokens of verify there.
class PrefillRows {
public:
  explicit PrefillRows(StepArrays &arrays) : arrays_(arrays) {
    arrays.nonSpecStarts[0] = 0;
  }

  void addPrefill(const CommonMetadata &common, int64_t row) {
    const int32_t next = common.query_start_loc[row + 1];
    fillSlots(arrays_, common, row, count_);
    arrays_.hasInitial[count_] =
        common.seq_lens[row] > next - common.query_start_loc[row];
    add(/*isPrefill=*/1, next);
  }
  /// Tokens of verify up to `next`.
  void addGap(int32_t next) {
    if (next == arrays_.nonSpecStarts[count_])
      return;
    if (count_ > 0 && !arrays_.nonSpecIsPrefill[count_ - 1]) {
      arrays_.nonSpecStarts[count_] = next;
      return;
    }
    arrays_.readSlots[count_] = arrays_.writeSlots[count_] =
        arrays_.options.pad_slot;
    arrays_.nonSpecAccepted[count_] = arrays_.hasCommits() ? 0 : 1;
    arrays_.hasInitial[count_] = 1;
    add(/*isPrefill=*/0, next);
  }
  int64_t count() const { return count_; }

private:
  void add(uint8_t isPrefill, int32_t next) {
    arrays_.nonSpecIsPrefill[count_] = isPrefill;
    arrays_.nonSpecStarts[++count_] = next;
  }

  StepArrays &arrays_;
  int64_t count_ = 0;
};

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

/// The sequences of a graph, for verify and for prefill: those of the step and
/// of its padding.
static Status padMixed(const StepArrays &arrays, const CommonMetadata &common,
                       int64_t &rows, int64_t &prefillRows, GDNMetadata &m) {
  const bool isPadded = common.num_padded_reqs != 0;
  if (isPadded && (common.num_padded_reqs < rows ||
                   common.num_padded_reqs > arrays.maxPaddedRows))
    return invalid("num_padded_reqs: expected ", rows, " to ",
                   arrays.maxPaddedRows, ", got ", common.num_padded_reqs);
  if (isPadded)
    rows = common.num_padded_reqs;
  const int64_t most = arrays.options.max_num_prefills;
  if (most == 0) {
    m.num_expected_prefills = 0;
    prefillRows = rows;
    return {};
  }
  if (m.num_prefills > most && isPadded)
    return invalid("query_start_loc: expected at most ", most,
                   " sequences of prefill in a step that is padded for a graph "
                   "(max_num_prefills), got ",
                   m.num_prefills);
  if (m.num_prefills > most)
    return {};
  m.num_expected_prefills = most;
  // Before, between and behind them are tokens of verify.
  prefillRows = std::min(rows, 2 * most + 1);
  return {};
}

/// Shares the tokens of padding among the rows of verify behind those of the
/// step, which are skipped and so give zeros. Returns the number of rows.
static int64_t spreadPadding(StepArrays &arrays, int64_t stepRows, int64_t rows,
                             int64_t tokens) {
  // Where padding is no more than its rows could have, it is short.
  if (tokens > rows * arrays.numColumns)
    rows += kPaddingRows;
  const int64_t columns = arrays.numColumns;
  const int64_t end = arrays.specStarts[stepRows], count = rows - stepRows;
  const int64_t share = count ? (tokens - end + count - 1) / count : 0;
  for (int64_t row = stepRows; row < rows; ++row) {
    arrays.isPrefill[row] = 0;
    skipInVerify(arrays, row);
    // Whatever the pool's null slot is.
    std::fill_n(arrays.specSlots + row * columns, columns, GDNRT_PAD_SLOT_ID);
    if (arrays.options.verify_states != GDNRT_VERIFY_SLOTS)
      arrays.specRowSlots[row] = GDNRT_PAD_SLOT_ID;
    arrays.specStarts[row + 1] = static_cast<int32_t>(
        std::min(tokens, end + (row - stepRows + 1) * share));
  }
  arrays.used.spec = rows;
  return rows;
}

Status gdnrt::buildMixed(StepArrays &arrays, const CommonMetadata &common,
                         GDNMetadata &m) {
  const Kinds kinds(arrays.options, common);
  int64_t rows = common.num_reqs;
  PrefillRows prefills(arrays);
  StepKinds all;
  all.verifies = arrays.options.num_speculative_tokens > 0 &&
                 common.num_decode_draft_tokens;
  if (Status s = addCommit(arrays, common, all, m); !s.isOk())
    return s;
  std::copy_n(common.query_start_loc, rows + 1, arrays.specStarts);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t tokens = kinds.tokensOf(row);
    const bool isPrefill = !kinds.isOfVerify(row);
    arrays.isPrefill[row] = isPrefill;
    if (isPrefill) {
      skipInVerify(arrays, row);
      prefills.addPrefill(common, row);
      ++m.num_prefills;
      m.num_prefill_tokens += tokens;
      continue;
    }
    if (Status s = checkVerified(arrays, common, kinds, row); !s.isOk())
      return s;
    prefills.addGap(common.query_start_loc[row + 1]);
    if (Status s = fillSpec(arrays, common, row, row); !s.isOk())
      return s;
    m.num_spec_decodes += tokens > 0;
    m.num_spec_decode_tokens += tokens;
  }
  arrays.used.spec = rows;
  arrays.used.nonSpec = prefills.count();

  const bool isGraph = arrays.options.use_full_cuda_graph != 0;
  int64_t tokens = common.query_start_loc[rows];
  int64_t prefillRows = prefills.count();
  m.num_expected_prefills = m.num_prefills;
  if (isGraph) {
    if (Status s = padMixed(arrays, common, rows, prefillRows, m); !s.isOk())
      return s;
    tokens = common.num_actual_tokens;
    // What the step has of commits, a graph has in any case.
    arrays.clearRuns(m);
    padCommit(arrays, m, rows);
    rows = spreadPadding(arrays, common.num_reqs, rows, tokens);
    // The zeros are verify's.
    prefills.addGap(static_cast<int32_t>(tokens));
    arrays.used.nonSpec = prefills.count();
  }
  m.run_is_prefill = {arrays.isPrefill, rows};
  m.non_spec_is_prefill = {arrays.nonSpecIsPrefill, prefillRows};
  m.non_spec_state_indices = {arrays.writeSlots, prefillRows};
  m.non_spec_read_indices = {arrays.readSlots, prefillRows};
  m.non_spec_query_start_loc = {arrays.nonSpecStarts, prefillRows + 1};
  describeSpec(arrays, rows, m);
  if (isGraph || m.num_spec_decodes > 0)
    arrays.addRun(m, GDNRT_RUN_VERIFY, 0, tokens, 0, rows);
  if (isGraph || m.num_prefills > 0)
    arrays.addRun(m, GDNRT_RUN_PREFILL, 0, tokens, 0, prefillRows);
  m.num_run_tokens = m.num_runs > 0 ? tokens : 0;
  return {};
}
