// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which checkpoints a prefill should take, from what a prefix tree knows of a
// prompt.

#ifndef GDNRT_CHECKPOINT_POLICY_H
#define GDNRT_CHECKPOINT_POLICY_H

#include "gdnrt/prefix_tree.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>

namespace gdnrt {

/// Where prefill writes checkpoints; the values are the recommended ones.
struct StateCachePolicy {
  int64_t maxCheckpoints = 4;
  int64_t reserveSlots = 0;
  int64_t minGap = 64;
  int64_t blockTokens = 0;
  bool atEnd = true, atBranches = true;
};
constexpr int64_t kMaxCheckpoints = 64;

/// The part of a prompt that the next call of prefill computes.
struct CachePiece {
  int64_t done = 0, count = 0, taken = 0;
};

/// Writes the positions, of which there are at most `numSlots` and `capacity`,
/// and returns their number. See gdnrt_state_cache_checkpoints_to_take.
Result<size_t> chooseCheckpoints(const PrefixTree &tree,
                                 const CacheNamespace &space,
                                 const TokenSpan &tokens,
                                 const StateCachePolicy &policy,
                                 const CachePiece &piece, int64_t numSlots,
                                 int64_t *positions, size_t capacity);

} // namespace gdnrt

#endif // GDNRT_CHECKPOINT_POLICY_H
