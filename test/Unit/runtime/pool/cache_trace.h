// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A random trace of a state cache: what it works on, and its steps between
// slots and the host.

#ifndef GDNRT_TEST_CACHE_TRACE_H
#define GDNRT_TEST_CACHE_TRACE_H

#include "cache_dictionary.h"
#include "cache_model.h"

#include <random>

namespace gdnrt::test {

/// A checkpoint that left its slot, or the host if that is 0.
struct Gone {
  uint64_t node;
  int64_t tokens;
  int32_t slot;
  bool isMoved;
};

struct CacheTrace {
  CacheTrace(uint64_t seed, CacheCoverage &coverage)
      : random_(seed), coverage_(coverage) {}

  int64_t draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(
                       random_() % static_cast<uint64_t>(most - least + 1));
  }
  /// What a slot of the pool holds.
  float &valueOf(int32_t slot) {
    return static_cast<float *>(states_.data)[slot * states_.strides[0]];
  }

  /// The first `count` in their order left their slots, and what left the host
  /// meanwhile was the first there.
  void expectGone(size_t count);
  void expectLeavesHost(const Gone &gone);
  void copyAhead(int64_t count);
  void evictHost(int64_t count);
  /// Brings a checkpoint back, of a lock or of a new one.
  void fetch();

  std::mt19937_64 random_;
  CacheCoverage &coverage_;
  std::shared_ptr<StatePool> pool_;
  Argument states_;
  std::unique_ptr<HostTier> tier_;
  int64_t maxCopies_ = 0;
  StateCacheOptions options_;
  std::unique_ptr<StateCache> cache_;
  int64_t page_ = 1, numTokenKinds_ = 1, longest_ = 1, nextPage_ = 0;
  uint64_t use_ = 0;
  PrefixDictionary known_;
  std::vector<Gone> gone_;
  /// What is known of the prefix that is being inserted.
  Prefix inserting_;
};

} // namespace gdnrt::test

#endif // GDNRT_TEST_CACHE_TRACE_H
