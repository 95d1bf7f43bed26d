// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step as an engine has it: arrays with an element for each row.

#ifndef GDNRT_TRACES_STEP_ARRAYS_H
#define GDNRT_TRACES_STEP_ARRAYS_H

#include "engine.h"

namespace gdnrt::traces {

/// The most rows and tokens of a step.
constexpr int64_t kMostRows = 64, kMostTokens = 8192;
/// What graphs are captured for. Some steps have more of each.
constexpr int64_t kGraphRows = 16, kGraphTokens = 128, kMostPrefills = 2;

struct StepArrays {
  /// `padding` tokens follow those of the rows; `columns` is the most tokens of
  /// a verified row.
  StepArrays(const std::vector<ServedRow> &rows, int64_t padding,
             int64_t columns);
  /// What a metadata builder reads; it points into the arrays.
  gdnrt_common_metadata common() const;
  int64_t numRows() const { return static_cast<int64_t>(seqLens.size()); }
  int64_t numTokens() const { return static_cast<int64_t>(tokens.size()); }
  /// The tokens of rows.
  int64_t numRowTokens() const { return queryStartLoc.back(); }

  int64_t columns, padding, emptyRows = 0;
  std::vector<int32_t> queryStartLoc = {0}, seqLens, blockTable, accepted,
                       drafts, tokenSlots, parents;
  /// Those of the padding too.
  std::vector<uint64_t> tokens;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_STEP_ARRAYS_H
