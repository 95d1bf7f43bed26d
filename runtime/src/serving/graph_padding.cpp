// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What graphs read behind the sequences of a step. A graph has the rows that it
// was captured with, and no step knows how many those are: so every array says
// padding up to its end, in every step.

#include "gdnrt/metadata_builder.h"

#include <algorithm>

using namespace gdnrt;

/// Grows a step of one kind to the rows of a graph, if graphs are that large.
Status MetadataBuilder::pad(const CommonMetadata &common, GDNMetadata &m) {
  bool spec = m.num_spec_decodes > 0;
  int64_t live = spec ? m.num_spec_decodes : m.num_decodes;
  if (live > maxGraphRows_ || m.num_spec_decode_tokens > maxGraphRows_)
    return {};
  int64_t rows = common.num_padded_reqs;
  if (rows == 0)
    // A sequence of decode is a token, so tokens of padding are rows.
    rows = spec ? common.num_reqs
                : std::max(common.num_reqs, common.num_actual_tokens);
  if (common.num_padded_reqs == 0 && rows > maxGraphRows_)
    return {};
  if (rows < live || rows > maxGraphRows_)
    return invalid("num_padded_reqs: expected ", live, " to ", maxGraphRows_,
                   ", got ", rows);
  if (spec) {
    padSpec(m, rows);
    return {};
  }
  int64_t tokens = common.query_start_loc[common.num_reqs];
  if (tokens > 0 && common.query_start_loc[tokens] != tokens)
    return invalid("query_start_loc: expected the rows without tokens of a "
                   "graph behind all others");
  padDecode(m, rows);
  return {};
}

/// Rows behind the last one of a decode graph have the null slot and no tokens.
/// An idle rank has nothing but such rows, and no launch.
void MetadataBuilder::padDecode(GDNMetadata &m, int64_t rows) {
  const bool idle = m.num_runs == 0;
  m.non_spec_state_indices.size = rows;
  m.non_spec_read_indices.size = rows;
  m.non_spec_query_start_loc.size = rows + 1;
  for (gdnrt_i32_array *counts :
       {&m.num_accepted_tokens, &m.non_spec_num_accepted,
        &m.spec_decode_src_indices})
    if (counts->data)
      counts->size = rows;
  runs_.clear();
  m.num_runs = 0;
  if (idle)
    return;
  // A graph has a token in every row, those of the padding included.
  padCommit(m, rows);
  addRun(m, GDNRT_RUN_DECODE, 0, rows, 0, rows);
  m.num_run_tokens = rows;
}

/// Rows behind the last one of a verify graph.
void MetadataBuilder::padSpec(GDNMetadata &m, int64_t rows) {
  if (m.spec_state_indices.data)
    m.spec_state_indices.size = rows * numColumns_;
  if (m.spec_slots.data)
    m.spec_slots.size = rows;
  if (m.spec_parents.data)
    m.spec_parents.size = rows * numColumns_;
  m.spec_query_start_loc.size = rows + 1;
  m.num_accepted_tokens.size = rows;
  // Rows without tokens may be between: they are not verified.
  std::fill(specMasks_, specMasks_ + m.num_spec_decodes, uint8_t{1});
  std::fill(specMasks_ + m.num_spec_decodes, specMasks_ + rows, uint8_t{0});
  m.spec_sequence_masks.size = rows;
  runs_.clear();
  m.num_runs = 0;
  if (options_.verify_states == GDNRT_VERIFY_BUFFER)
    padCommit(m, rows);
  addRun(m, GDNRT_RUN_VERIFY, 0, m.num_actual_tokens, 0, rows);
  m.num_run_tokens = m.num_actual_tokens;
}

/// The commit of a graph over `rows` rows, those of padding included. The graph
/// has it whether or not anything waits.
void MetadataBuilder::padCommit(GDNMetadata &m, int64_t rows) {
  if (!hasCommits())
    return;
  m.commit_slots.size = m.commit_num_accepted.size = rows;
  if (m.commit_token_slots.data)
    m.commit_token_slots.size = rows * numColumns_;
  addRun(m, GDNRT_RUN_COMMIT, 0, 0, 0, rows);
}

/// Everything behind the rows that the step filled: no slot, no tokens. Only as
/// far as a step before filled more.
void MetadataBuilder::padTails() {
  const int32_t noCount = hasCommits() ? 0 : 1;
  auto fill = [](auto *array, int64_t from, int64_t to, auto value) {
    if (from < to)
      std::fill(array + from, array + to, value);
  };
  auto padStarts = [&](int32_t *starts, int64_t rows) {
    fill(starts, rows + 1, maxRows_ + 1, starts[rows]);
  };
  int64_t from = used_.nonSpec, to = filled_.nonSpec;
  fill(readSlots_, from, to, options_.pad_slot);
  fill(writeSlots_, from, to, options_.pad_slot);
  fill(nonSpecAccepted_, from, to, noCount);
  fill(hasInitial_, from, to, uint8_t{1});
  padStarts(nonSpecStarts_, from);

  from = used_.spec, to = filled_.spec;
  fill(specAccepted_, from, to, noCount);
  fill(specSlots_, from * numColumns_, to * numColumns_, options_.pad_slot);
  if (options_.verify_states != GDNRT_VERIFY_SLOTS)
    fill(specRowSlots_, from, to, options_.pad_slot);
  if (options_.verify_states == GDNRT_VERIFY_TREE)
    fill(specParents_, from * numColumns_, to * numColumns_, int32_t{-1});
  padStarts(specStarts_, from);

  if (hasCommits()) {
    from = used_.commits, to = filled_.commits;
    fill(commitSlots_, from, to, options_.pad_slot);
    fill(commitAccepted_, from, to, int32_t{0});
    if (options_.verify_states == GDNRT_VERIFY_BUFFER)
      fill(commitTokenSlots_, from * numColumns_, to * numColumns_,
           options_.pad_slot);
  }
  filled_ = used_;
}
