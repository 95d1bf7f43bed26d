// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The commit that a step begins with: sequences whose tokens have to be in the
// state before anything else of the step reads it.

#include "step_fields.h"

#include <algorithm>

using namespace gdnrt;

namespace {

/// Which sequences of a step commit, and how many tokens.
class CommitRows {
public:
  CommitRows(const StepArrays &arrays, const CommonMetadata &common,
             const StepKinds &kinds)
      : arrays_(arrays), common_(common), kinds_(kinds) {}

  int64_t tokensOf(int64_t row) const {
    return common_.query_start_loc[row + 1] - common_.query_start_loc[row];
  }
  /// The accepted tokens of the sequence's step before. One without tokens
  /// before it has none.
  int32_t acceptedOf(int64_t row) const {
    return goesOn(row) && common_.num_accepted_tokens &&
                   arrays_.options.num_speculative_tokens > 0
               ? common_.num_accepted_tokens[row]
               : 0;
  }
  /// Pending tokens of verified sequences are not for a commit: verify takes
  /// them in.
  bool commits(int64_t row) const {
    const bool isBuffer = arrays_.options.verify_states == GDNRT_VERIFY_BUFFER;
    const int32_t accepted = acceptedOf(row);
    if ((isVerified(row) && !isBuffer) || !arrays_.isCount(accepted))
      return false;
    // The slot counts tokens that the host does not know.
    const bool counts = arrays_.options.deferred_writes && !decodes(row);
    return counts || accepted > 0;
  }

private:
  bool goesOn(int64_t row) const {
    return common_.seq_lens[row] > tokensOf(row);
  }
  bool isVerified(int64_t row) const {
    return kinds_.verifies && common_.num_decode_draft_tokens[row] >= 0;
  }
  bool decodes(int64_t row) const {
    return row < kinds_.decodes && goesOn(row);
  }

  const StepArrays &arrays_;
  const CommonMetadata &common_;
  const StepKinds &kinds_;
};

} // namespace

/// Says in `m` that `count` elements are filled, with a run if `any` of them
/// commits.
static void describeCommit(StepArrays &arrays, int64_t count, bool any,
                           GDNMetadata &m) {
  arrays.used.commits = count;
  m.commit_slots = {arrays.commitSlots, count};
  m.commit_num_accepted = {arrays.commitAccepted, count};
  if (arrays.options.verify_states == GDNRT_VERIFY_BUFFER)
    m.commit_token_slots = {arrays.commitTokenSlots, count * arrays.numColumns};
  if (any)
    arrays.addRun(m, GDNRT_RUN_COMMIT, 0, 0, 0, count);
}

Status gdnrt::addCommit(StepArrays &arrays, const CommonMetadata &common,
                        const StepKinds &kinds, GDNMetadata &m) {
  if (!arrays.hasCommits())
    return {};
  const bool isBuffer = arrays.options.verify_states == GDNRT_VERIFY_BUFFER;
  const CommitRows rows(arrays, common, kinds);
  bool any = false;
  int64_t count = 0;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    // A sequence without tokens keeps what waits.
    if (rows.tokensOf(row) == 0)
      continue;
    const bool commits = rows.commits(row);
    const int64_t to = count++;
    arrays.commitSlots[to] =
        commits ? arrays.stateColumns(common, row)[0] : arrays.options.pad_slot;
    arrays.commitAccepted[to] = commits ? rows.acceptedOf(row) : 0;
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
                     row, " has ", rows.acceptedOf(row),
                     " tokens to commit, got null");
    std::copy_n(common.token_slots + row * common.token_slots_stride,
                arrays.numColumns, slots);
  }
  describeCommit(arrays, count, any, m);
  return {};
}

/// Two sequences of a launch would put the same tokens into a slot. Uses the
/// array of counts, which is filled later.
static Status checkOnce(StepArrays &arrays, const int32_t *slots,
                        int64_t count) {
  int32_t *const sorted = arrays.commitAccepted;
  int32_t *const end =
      std::remove_copy_if(slots, slots + count, sorted, [&](int32_t slot) {
        return slot < 0 || slot == arrays.options.pad_slot;
      });
  std::sort(sorted, end);
  const int32_t *twice = std::adjacent_find(sorted, end);
  if (twice != end)
    return invalid("slots: expected each slot once, got ", *twice, " twice");
  return {};
}

Status gdnrt::buildCommit(StepArrays &arrays, const int32_t *slots,
                          const int32_t *accepted, int64_t count,
                          GDNMetadata &m) {
  if (Status s = checkOnce(arrays, slots, count); !s.isOk())
    return s;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t tokens = accepted ? accepted[i] : 0;
    if (!arrays.isCount(tokens))
      return invalid("num_accepted: expected 0 to ", arrays.numColumns,
                     " for slot ", slots[i], ", got ", tokens);
    arrays.commitSlots[i] = slots[i];
    arrays.commitAccepted[i] = tokens;
  }
  describeCommit(arrays, count, count > 0, m);
  return {};
}
