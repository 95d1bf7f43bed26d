// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random operations on a state cache, compared with a naive model: two
// dictionaries of whole prefixes, of their last page and of their checkpoint.

#ifndef GDNRT_TEST_CACHE_MODEL_H
#define GDNRT_TEST_CACHE_MODEL_H

#include <cstdint>
#include <string>

namespace gdnrt::test {

/// What happened in traces, so that it can be seen that much did.
struct CacheCoverage {
  uint64_t steps = 0, inserted = 0, duplicates = 0, full = 0, hits = 0;
  uint64_t locks = 0, evictedPages = 0, evictedCheckpoints = 0, madeRoom = 0;
  uint64_t moved = 0, fetched = 0, leftHost = 0;
};

/// Plays trace number `seed`. Returns what was wrong, or nothing.
std::string playCacheTrace(uint64_t seed, CacheCoverage &coverage);

} // namespace gdnrt::test

#endif // GDNRT_TEST_CACHE_MODEL_H
