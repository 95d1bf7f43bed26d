// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mode align: a request's states begin in the column of the block that its
// last token is in, so they move to other columns as it grows, and the state at
// the end of a block that has become full goes to that block's column.

#include "step_fields.h"

#include <algorithm>

using namespace gdnrt;

static Status checkAlign(const StepArrays &arrays, const CommonMetadata &common,
                         const StateMoves &moves) {
  if (arrays.options.mamba_cache_mode != GDNRT_CACHE_ALIGN)
    return invalid("mamba_cache_mode: expected align, whose states move "
                   "between columns, got ",
                   arrays.options.mamba_cache_mode == GDNRT_CACHE_ALL ? "all"
                                                                      : "none");
  if (Status s = checkStep(arrays, common); !s.isOk())
    return s;
  if (arrays.options.num_speculative_tokens > 0 && !moves.accepted)
    return invalid("accepted: expected counts, got null");
  return {};
}

static Status addMove(const CommonMetadata &common, int64_t row, int64_t source,
                      int64_t target, StateMoves &moves) {
  if (int64_t last = std::max(source, target);
      std::min(source, target) < 0 || last >= common.block_table_columns)
    return invalid("block_table: expected at least ", last + 1,
                   " columns for row ", row, ", whose state moves from column ",
                   source, " to ", target, ", got ",
                   common.block_table_columns);
  const int32_t *table = common.block_table + row * common.block_table_stride;
  if (table[source] == table[target])
    return {};
  moves.from[moves.count] = table[source];
  moves.to[moves.count] = table[target];
  ++moves.count;
  return {};
}

/// The count of a sequence, which kinds other than slots do not look at.
static Status checkCount(int64_t row, int32_t count, int64_t most) {
  if (count < 1 || count > most)
    return invalid("accepted: expected 1 to ", most, " in row ", row, ", got ",
                   count);
  return {};
}

Status gdnrt::alignBefore(const StepArrays &arrays,
                          const CommonMetadata &common, StateMoves &moves) {
  moves.count = 0;
  if (Status s = checkAlign(arrays, common, moves); !s.isOk())
    return s;
  // What is pending in a slot, or in a buffer, is counted as before.
  const bool counts = arrays.options.num_speculative_tokens > 0 &&
                      arrays.options.verify_states == GDNRT_VERIFY_SLOTS;
  struct Columns {
    int64_t before, now;
    bool moves;
  };
  auto getColumns = [&](int64_t row) -> Columns {
    int64_t tokens =
        common.query_start_loc[row + 1] - common.query_start_loc[row];
    int64_t done = common.seq_lens[row] - tokens;
    int64_t before = moves.columns[row];
    if (before < 0)
      before = (done - 1) / arrays.options.block_size;
    if (tokens == 0)
      return {before, moves.columns[row], false};
    int64_t now = (common.seq_lens[row] - 1) / arrays.options.block_size;
    return {before, now, done > 0 && before != now};
  };
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    Columns columns = getColumns(row);
    if (!columns.moves)
      continue;
    if (counts) {
      if (Status s = checkCount(row, moves.accepted[row], arrays.numColumns);
          !s.isOk())
        return s;
      columns.before += moves.accepted[row] - 1;
    }
    if (Status s = addMove(common, row, columns.before, columns.now, moves);
        !s.isOk())
      return s;
  }
  // Nothing of the engine's is changed by a call that fails.
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    const Columns columns = getColumns(row);
    if (counts && columns.moves)
      moves.accepted[row] = 1;
    moves.columns[row] = static_cast<int32_t>(columns.now);
  }
  return {};
}

Status gdnrt::alignAfter(const StepArrays &arrays, const CommonMetadata &common,
                         StateMoves &moves) {
  moves.count = 0;
  if (Status s = checkAlign(arrays, common, moves); !s.isOk())
    return s;
  if (arrays.options.num_speculative_tokens == 0)
    return {}; // the last state of a full block is in its column
  if (arrays.options.verify_states != GDNRT_VERIFY_SLOTS)
    return failure(StatusCode::unsupported,
                   "verify_states: expected slots, which have a state after "
                   "each token, to keep those at ends of blocks");
  auto getFull = [&](int64_t row) {
    int32_t drafts = common.num_decode_draft_tokens
                         ? std::max(common.num_decode_draft_tokens[row], 0)
                         : 0;
    int64_t first = common.seq_lens[row] - drafts; // with its first token
    int64_t now = first + moves.accepted[row] - 1;
    int64_t full = now / arrays.options.block_size * arrays.options.block_size;
    return std::pair(first, full);
  };
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    if (common.query_start_loc[row + 1] == common.query_start_loc[row])
      continue;
    if (Status s = checkCount(row, moves.accepted[row], arrays.numColumns);
        !s.isOk())
      return s;
    auto [first, full] = getFull(row);
    if (full < first)
      continue;
    if (Status s = addMove(common, row, moves.columns[row] + full - first,
                           full / arrays.options.block_size - 1, moves);
        !s.isOk())
      return s;
  }
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    if (common.query_start_loc[row + 1] == common.query_start_loc[row])
      continue;
    auto [first, full] = getFull(row);
    // The state that the next step starts from has moved as well.
    if (full >= first &&
        moves.columns[row] == full / arrays.options.block_size - 1)
      moves.accepted[row] = 1;
  }
  return {};
}
