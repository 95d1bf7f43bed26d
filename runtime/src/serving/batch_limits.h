// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many sequences, tokens and columns a batch may have.

#ifndef GDNRT_SERVING_BATCH_LIMITS_H
#define GDNRT_SERVING_BATCH_LIMITS_H

#include "gdnrt/status.h"

#include <cstdint>
#include <limits>

namespace gdnrt {

/// Of sequences, and of tokens.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 256;
/// Of the slots of a sequence that is verified.
constexpr int64_t kMostColumns = 64;

inline Status checkRange(const char *name, int64_t value, int64_t from,
                         int64_t to) {
  if (value < from || value > to)
    return invalid(name, ": expected ", from, " to ", to, ", got ", value);
  return {};
}

} // namespace gdnrt

#endif // GDNRT_SERVING_BATCH_LIMITS_H
