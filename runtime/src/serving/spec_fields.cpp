// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where verified sequences keep what may be taken back, by the kind of the
// verify kernel, and the commit that a step begins with where tokens of the
// step before wait for one.

#include "gdnrt/metadata_builder.h"

#include <algorithm>

using namespace gdnrt;

/// Whether accepted tokens have to be put into the state of their sequence.
bool MetadataBuilder::hasCommits() const {
  return options_.num_speculative_tokens > 0 &&
         (options_.verify_states == GDNRT_VERIFY_LAZY ||
          options_.verify_states == GDNRT_VERIFY_BUFFER);
}

/// Whether so many tokens of a step can have been right. Trees have no count.
bool MetadataBuilder::isCount(int32_t accepted) const {
  return options_.verify_states == GDNRT_VERIFY_TREE ||
         (accepted >= (hasCommits() ? 0 : 1) && accepted <= numColumns_);
}

/// Sequences that go on from a state need to know how many tokens of the step
/// before were right: whatever is taken instead is wrong for some.
Status MetadataBuilder::checkCounts(const CommonMetadata &common) const {
  if (options_.num_speculative_tokens == 0 || common.num_accepted_tokens ||
      options_.verify_states == GDNRT_VERIFY_TREE)
    return {};
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    int64_t tokens =
        common.query_start_loc[row + 1] - common.query_start_loc[row];
    if (tokens > 0 && common.seq_lens[row] > tokens)
      return invalid("num_accepted_tokens: expected counts, for row ", row,
                     " goes on behind ", common.seq_lens[row] - tokens,
                     " tokens, got null");
  }
  return {};
}

/// Element `to` of the arrays of verified sequences.
Status MetadataBuilder::fillSpec(const CommonMetadata &common, int64_t row,
                                 int64_t to) {
  const int32_t kind = options_.verify_states;
  bool empty = common.query_start_loc[row] == common.query_start_loc[row + 1];
  int32_t accepted =
      kind == GDNRT_VERIFY_TREE ? 1 : common.num_accepted_tokens[row];
  int32_t *slots = specSlots_ + to * numColumns_;
  const int32_t *columns = stateColumns(common, row);
  specAccepted_[to] = accepted;
  if (kind == GDNRT_VERIFY_SLOTS) {
    if (empty)
      std::fill_n(slots, numColumns_, options_.pad_slot);
    else
      std::copy_n(columns, numColumns_, slots);
    return {};
  }
  specRowSlots_[to] = empty               ? options_.pad_slot
                      : isCount(accepted) ? columns[0]
                                          : GDNRT_PAD_SLOT_ID;
  if (kind == GDNRT_VERIFY_LAZY)
    return {};
  if (empty) {
    std::fill_n(slots, numColumns_, options_.pad_slot);
  } else {
    if (!common.token_slots)
      return invalid("token_slots: expected an array for a step that verifies "
                     "drafts, got null");
    std::copy_n(common.token_slots + row * common.token_slots_stride,
                numColumns_, slots);
  }
  if (kind == GDNRT_VERIFY_TREE) {
    int32_t *parents = specParents_ + to * numColumns_;
    if (empty) {
      std::fill_n(parents, numColumns_, -1);
    } else {
      if (!common.parents)
        return invalid("parents: expected an array for a step that verifies "
                       "trees, got null");
      std::copy_n(common.parents + row * common.token_slots_stride, numColumns_,
                  parents);
    }
  }
  return {};
}

/// The sequences of the step whose tokens of the step before have to be
/// committed; no run where there is none. Pending tokens of verified sequences
/// are not among them: verify takes them in. `spec` says whether the step
/// verifies sequences.
Status MetadataBuilder::addCommit(const CommonMetadata &common, bool spec,
                                  GDNMetadata &m) {
  if (!hasCommits())
    return {};
  const bool isBuffer = options_.verify_states == GDNRT_VERIFY_BUFFER;
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
    bool commits =
        common.seq_lens[row] > tokens && accepted > 0 && isCount(accepted);
    if (spec && !isBuffer && common.num_decode_draft_tokens[row] >= 0)
      commits = false;
    const int64_t to = count++;
    commitSlots_[to] =
        commits ? stateColumns(common, row)[0] : options_.pad_slot;
    commitAccepted_[to] = commits ? accepted : 0;
    any |= commits;
    if (!isBuffer)
      continue;
    int32_t *slots = commitTokenSlots_ + to * numColumns_;
    if (!commits) {
      std::fill_n(slots, numColumns_, options_.pad_slot);
      continue;
    }
    if (!common.token_slots)
      return invalid("token_slots: expected those of the step before, of which "
                     "row ",
                     row, " has ", accepted, " tokens to commit, got null");
    std::copy_n(common.token_slots + row * common.token_slots_stride,
                numColumns_, slots);
  }
  used_.commits = count;
  m.commit_slots = {commitSlots_, count};
  m.commit_num_accepted = {commitAccepted_, count};
  if (isBuffer)
    m.commit_token_slots = {commitTokenSlots_, count * numColumns_};
  if (any)
    addRun(m, GDNRT_RUN_COMMIT, 0, 0, 0, count);
  return {};
}
