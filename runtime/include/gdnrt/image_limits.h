// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much of something an image may have: what the reader refuses, and who
// writes images says ahead of that. Far beyond real entries, to guard the work
// for each. Header only, so that a writer links nothing of the runtime.

#ifndef GDNRT_IMAGE_LIMITS_H
#define GDNRT_IMAGE_LIMITS_H

#include <cstddef>

namespace gdnrt {

/// Variants of a code of an entry.
constexpr size_t kMaxVariants = 24;

} // namespace gdnrt

#endif // GDNRT_IMAGE_LIMITS_H
