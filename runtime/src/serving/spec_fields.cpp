// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where verified sequences keep what may be taken back, by the kind of the
// verify kernel, and the commit that a step begins with where tokens of the
// step before wait for one.

#include "step_fields.h"

#include <algorithm>

using namespace gdnrt;

/// Element `to` of the arrays of verified sequences.
Status gdnrt::fillSpec(StepArrays &arrays, const CommonMetadata &common,
                       int64_t row, int64_t to) {
  const int32_t kind = arrays.options.verify_states;
  bool empty = common.query_start_loc[row] == common.query_start_loc[row + 1];
  int32_t accepted = kind == GDNRT_VERIFY_TREE || !common.num_accepted_tokens
                         ? 1
                         : common.num_accepted_tokens[row];
  int32_t *slots = arrays.specSlots + to * arrays.numColumns;
  const int32_t *columns = arrays.stateColumns(common, row);
  arrays.specAccepted[to] = accepted;
  if (kind == GDNRT_VERIFY_SLOTS) {
    if (empty)
      std::fill_n(slots, arrays.numColumns, arrays.options.pad_slot);
    else
      std::copy_n(columns, arrays.numColumns, slots);
    return {};
  }
  arrays.specRowSlots[to] = empty                      ? arrays.options.pad_slot
                            : arrays.isCount(accepted) ? columns[0]
                                                       : GDNRT_PAD_SLOT_ID;
  if (kind == GDNRT_VERIFY_LAZY)
    return {};
  if (empty) {
    std::fill_n(slots, arrays.numColumns, arrays.options.pad_slot);
  } else {
    if (!common.token_slots)
      return invalid("token_slots: expected an array for a step that verifies "
                     "drafts, got null");
    std::copy_n(common.token_slots + row * common.token_slots_stride,
                arrays.numColumns, slots);
  }
  if (kind == GDNRT_VERIFY_TREE) {
    int32_t *parents = arrays.specParents + to * arrays.numColumns;
    if (empty) {
      std::fill_n(parents, arrays.numColumns, -1);
    } else {
      if (!common.parents)
        return invalid("parents: expected an array for a step that verifies "
                       "trees, got null");
      std::copy_n(common.parents + row * common.token_slots_stride,
                  arrays.numColumns, parents);
    }
  }
  return {};
}

void gdnrt::describeSpec(const StepArrays &arrays, int64_t rows,
                         GDNMetadata &m) {
  if (arrays.options.verify_states != GDNRT_VERIFY_LAZY)
    m.spec_state_indices = {arrays.specSlots, rows * arrays.numColumns};
  if (arrays.options.verify_states != GDNRT_VERIFY_SLOTS)
    m.spec_slots = {arrays.specRowSlots, rows};
  if (arrays.options.verify_states == GDNRT_VERIFY_TREE)
    m.spec_parents = {arrays.specParents, rows * arrays.numColumns};
  m.spec_query_start_loc = {arrays.specStarts, rows + 1};
  m.num_accepted_tokens = {arrays.specAccepted, rows};
}

/// The sequences of the step whose tokens of the step before have to be
/// committed; no run where there is none. Pending tokens of verified sequences
/// are not among them: verify takes them in. `spec` says whether the step
/// verifies sequences.
Status gdnrt::addCommit(StepArrays &arrays, const CommonMetadata &common,
                        bool spec, GDNMetadata &m) {
  if (!arrays.hasCommits())
    return {};
  const bool isBuffer = arrays.options.verify_states == GDNRT_VERIFY_BUFFER;
  bool any = false;
  int64_t count = 0;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    int64_t tokens =
        common.query_start_loc[row + 1] - common.query_start_loc[row];
    int32_t accepted =
        common.num_accepted_tokens ? common.num_accepted_tokens[row] : 0;
    // A sequence without tokens keeps what waits. One without tokens before it,
    // or whose count is none, has nothing.
    if (tokens == 0)
      continue;
    bool commits = common.seq_lens[row] > tokens && accepted > 0 &&
                   arrays.isCount(accepted);
    if (spec && !isBuffer && common.num_decode_draft_tokens[row] >= 0)
      commits = false;
    const int64_t to = count++;
    arrays.commitSlots[to] =
        commits ? arrays.stateColumns(common, row)[0] : arrays.options.pad_slot;
    arrays.commitAccepted[to] = commits ? accepted : 0;
    any |= commits;
    if (!isBuffer)
      continue;
    int32_t *slots = arrays.commitTokenSlots + to * arrays.numColumns;
    if (!commits) {
      std::fill_n(slots, arrays.numColumns, arrays.options.pad_slot);
      continue;
    }
    if (!common.token_slots)
      return invalid("token_slots: expected those of the step before, of which "
                     "row ",
                     row, " has ", accepted, " tokens to commit, got null");
    std::copy_n(common.token_slots + row * common.token_slots_stride,
                arrays.numColumns, slots);
  }
  arrays.used.commits = count;
  m.commit_slots = {arrays.commitSlots, count};
  m.commit_num_accepted = {arrays.commitAccepted, count};
  if (isBuffer)
    m.commit_token_slots = {arrays.commitTokenSlots, count * arrays.numColumns};
  if (any)
    arrays.addRun(m, GDNRT_RUN_COMMIT, 0, 0, 0, count);
  return {};
}
