// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What graphs read behind the sequences of a step. A graph has the rows that it
// was captured with, and no step knows how many those are: so every array says
// padding up to its end, in every step.

#include "step_fields.h"

#include <algorithm>

using namespace gdnrt;

void gdnrt::padCommit(StepArrays &arrays, GDNMetadata &m, int64_t rows) {
  if (!arrays.hasCommits())
    return;
  m.commit_slots.size = m.commit_num_accepted.size = rows;
  if (m.commit_token_slots.data)
    m.commit_token_slots.size = rows * arrays.numColumns;
  arrays.addRun(m, GDNRT_RUN_COMMIT, 0, 0, 0, rows);
}

/// Rows behind the last one of a decode graph have the null slot and no tokens.
/// An idle rank has nothing but such rows, and no launch.
static void padDecode(StepArrays &arrays, GDNMetadata &m, int64_t rows) {
  const bool idle = m.num_runs == 0;
  m.non_spec_state_indices.size = rows;
  m.non_spec_read_indices.size = rows;
  m.non_spec_query_start_loc.size = rows + 1;
  for (gdnrt_i32_array *counts :
       {&m.num_accepted_tokens, &m.non_spec_num_accepted,
        &m.spec_decode_src_indices})
    if (counts->data)
      counts->size = rows;
  arrays.clearRuns(m);
  if (idle)
    return;
  // A graph has a token in every row, those of the padding included. Tokens of
  // a verify may wait there.
  if (arrays.options.num_speculative_tokens > 0)
    padCommit(arrays, m, rows);
  arrays.addRun(m, GDNRT_RUN_DECODE, 0, rows, 0, rows);
  m.num_run_tokens = rows;
}

/// Rows behind the last one of a verify graph.
static void padSpec(StepArrays &arrays, GDNMetadata &m, int64_t rows) {
  if (m.spec_state_indices.data)
    m.spec_state_indices.size = rows * arrays.numColumns;
  if (m.spec_slots.data)
    m.spec_slots.size = rows;
  if (m.spec_parents.data)
    m.spec_parents.size = rows * arrays.numColumns;
  m.spec_query_start_loc.size = rows + 1;
  m.num_accepted_tokens.size = rows;
  // Rows without tokens may be between: they are not verified.
  std::fill(arrays.specMasks, arrays.specMasks + m.num_spec_decodes,
            uint8_t{1});
  std::fill(arrays.specMasks + m.num_spec_decodes, arrays.specMasks + rows,
            uint8_t{0});
  m.spec_sequence_masks.size = rows;
  arrays.clearRuns(m);
  if (arrays.options.verify_states == GDNRT_VERIFY_BUFFER)
    padCommit(arrays, m, rows);
  arrays.addRun(m, GDNRT_RUN_VERIFY, 0, m.num_actual_tokens, 0, rows);
  m.num_run_tokens = m.num_actual_tokens;
}

/// Grows a step of one kind to the rows of a graph, if graphs are that large.
Status gdnrt::padToGraph(StepArrays &arrays, const CommonMetadata &common,
                         GDNMetadata &m) {
  bool spec = m.num_spec_decodes > 0;
  int64_t live = spec ? m.num_spec_decodes : m.num_decodes;
  if (live > arrays.maxGraphRows ||
      m.num_spec_decode_tokens > arrays.maxGraphRows)
    return {};
  int64_t rows = common.num_padded_reqs;
  if (rows == 0)
    // A sequence of decode is a token, so tokens of padding are rows.
    rows = spec ? common.num_reqs
                : std::max(common.num_reqs, common.num_actual_tokens);
  if (common.num_padded_reqs == 0 && rows > arrays.maxGraphRows)
    return {};
  if (rows < live || rows > arrays.maxGraphRows)
    return invalid("num_padded_reqs: expected ", live, " to ",
                   arrays.maxGraphRows, ", got ", rows);
  if (spec) {
    padSpec(arrays, m, rows);
    return {};
  }
  int64_t tokens = common.query_start_loc[common.num_reqs];
  if (tokens > 0 && common.query_start_loc[tokens] != tokens)
    return invalid("query_start_loc: expected the rows without tokens of a "
                   "graph behind all others");
  padDecode(arrays, m, rows);
  return {};
}
