// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where verified sequences keep what may be taken back, by the kind of the
// verify kernel.

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
