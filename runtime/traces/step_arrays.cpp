// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows into the arrays of a step.

#include "step_arrays.h"

#include <algorithm>

using namespace gdnrt::traces;

StepArrays::StepArrays(const std::vector<ServedRow> &rows, int64_t padding,
                       int64_t columns)
    : columns(columns), padding(padding) {
  for (const ServedRow &row : rows) {
    tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    queryStartLoc.push_back(static_cast<int32_t>(tokens.size()));
    emptyRows += row.tokens.empty();
    seqLens.push_back(static_cast<int32_t>(row.context + row.tokens.size()));
    for (auto t = size_t{0}; t < static_cast<size_t>(columns); ++t) {
      // One slot is enough where tokens have none in the table.
      blockTable.push_back(row.slots[std::min(t, row.slots.size() - 1)]);
      tokenSlots.push_back(t < row.tokenSlots.size() ? row.tokenSlots[t] : -1);
      parents.push_back(t < row.parents.size() ? row.parents[t] : -1);
    }
    accepted.push_back(row.accepted);
    drafts.push_back(row.drafts);
  }
  for (int64_t t = 0; t < padding; ++t)
    tokens.push_back(mix(98, static_cast<uint64_t>(t)));
}

gdnrt_common_metadata StepArrays::common() const {
  gdnrt_common_metadata common = gdnrt_common_metadata_default();
  common.num_reqs = numRows();
  common.num_actual_tokens = numTokens();
  common.query_start_loc = queryStartLoc.data();
  common.seq_lens = seqLens.data();
  common.block_table = blockTable.data();
  common.block_table_columns = common.block_table_stride = columns;
  common.num_accepted_tokens = accepted.data();
  common.num_decode_draft_tokens = drafts.data();
  common.token_slots = tokenSlots.data();
  common.parents = parents.data();
  common.token_slots_stride = columns;
  return common;
}
