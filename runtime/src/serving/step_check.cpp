// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence is known by its run and its place in the arrays of its kind.
// Verified sequences with slots write one after each token; all others write
// their own slot.

#include "gdnrt/step_check.h"

#include <unordered_map>

using namespace gdnrt;

int64_t gdnrt::sequenceOf(const gdnrt_gdn_metadata &m, const gdnrt_run &run,
                          int64_t row) {
  row += run.first_row;
  if (m.non_spec_rows.data)
    return m.non_spec_rows.data[row];
  if (!m.run_is_prefill.data || run.kind != GDNRT_RUN_PREFILL)
    return row;
  // The prefills ahead of it.
  int64_t left = 0;
  for (int64_t i = 0; i < row; ++i)
    left += m.non_spec_is_prefill.data[i];
  for (int64_t i = 0; i < m.run_is_prefill.size; ++i)
    if (m.run_is_prefill.data[i] && left-- == 0)
      return i;
  return row;
}

namespace {

struct Row {
  const char *kind;
  int64_t number;
  bool operator==(const Row &other) const {
    return kind == other.kind && number == other.number;
  }
};

class StepSlots {
public:
  StepSlots(const gdnrt_gdn_metadata &metadata, SlotRange range)
      : m_(metadata), range_(range) {}

  Status check() {
    for (int64_t r = 0; r < m_.num_runs; ++r)
      if (Status s = addWrites(m_.runs[r]); !s.isOk())
        return s;
    for (int64_t r = 0; r < m_.num_runs; ++r)
      if (Status s = checkReads(m_.runs[r]); !s.isOk())
        return s;
    return {};
  }

private:
  /// The tokens of a sequence for the kernel of the run: none if it is the
  /// other's of a mixed batch.
  int64_t tokensOf(const gdnrt_run &run, int64_t row) const {
    const uint8_t *isPrefill =
        isVerify(run) ? m_.run_is_prefill.data : m_.non_spec_is_prefill.data;
    if (isPrefill && run.kind != GDNRT_RUN_COMMIT &&
        (isPrefill[run.first_row + row] != 0) == isVerify(run))
      return 0;
    return run.query_start_loc
               ? run.query_start_loc[row + 1] - run.query_start_loc[row]
               : 1;
  }
  static bool isVerify(const gdnrt_run &run) {
    return run.kind == GDNRT_RUN_VERIFY;
  }
  Row name(const gdnrt_run &run, int64_t row) const {
    return {isVerify(run) ? "verified row " : "row ", sequenceOf(m_, run, row)};
  }

  Status add(int64_t slot, Row row) {
    if (!range_.isLive(slot))
      return {};
    auto [first, isNew] = writers_.emplace(slot, row);
    if (isNew || first->second == row)
      return {};
    return invalid("slots: ", first->second.kind, first->second.number, " and ",
                   row.kind, row.number, " of the step both write slot ", slot);
  }

  Status addWrites(const gdnrt_run &run) {
    // A commit is of sequences that the step has besides.
    if (run.kind == GDNRT_RUN_COMMIT)
      return {};
    for (int64_t row = 0; row < run.num_rows; ++row) {
      const int64_t at = run.first_row + row, tokens = tokensOf(run, row);
      if (tokens == 0)
        continue;
      if (!isVerify(run)) {
        if (range_.isLive(m_.non_spec_read_indices.data[at]))
          if (Status s =
                  add(m_.non_spec_state_indices.data[at], name(run, row));
              !s.isOk())
            return s;
        continue;
      }
      if (m_.verify_states != GDNRT_VERIFY_SLOTS) {
        if (Status s = add(m_.spec_slots.data[at], name(run, row)); !s.isOk())
          return s;
        continue;
      }
      for (int64_t t = 0; t < tokens; ++t)
        if (Status s =
                add(m_.spec_state_indices.data[at * m_.num_spec_columns + t],
                    name(run, row));
            !s.isOk())
          return s;
    }
    return {};
  }

  Status checkReads(const gdnrt_run &run) const {
    if (run.kind == GDNRT_RUN_COMMIT || isVerify(run))
      return {};
    for (int64_t row = 0; row < run.num_rows; ++row) {
      const int64_t slot = m_.non_spec_read_indices.data[run.first_row + row];
      if (tokensOf(run, row) == 0 || !range_.isLive(slot))
        continue;
      auto writer = writers_.find(slot);
      if (writer != writers_.end() && !(writer->second == name(run, row)))
        return invalid("slots: ", name(run, row).kind, name(run, row).number,
                       " of the step reads slot ", slot, ", which ",
                       writer->second.kind, writer->second.number, " writes");
    }
    return {};
  }

  const gdnrt_gdn_metadata &m_;
  SlotRange range_;
  std::unordered_map<int64_t, Row> writers_;
};

} // namespace

Status gdnrt::checkStepSlots(const gdnrt_gdn_metadata &metadata,
                             SlotRange range) {
  return StepSlots(metadata, range).check();
}
