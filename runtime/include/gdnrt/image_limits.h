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
/// Stages, workspace regions and conditions of a variant.
constexpr size_t kMaxStages = 16;
constexpr size_t kMaxRegions = 16;
constexpr size_t kMaxConditions = 16;
/// Boxes, tensor maps that is, of a launch.
constexpr size_t kMaxBoxes = 16;

} // namespace gdnrt

#endif // GDNRT_IMAGE_LIMITS_H
