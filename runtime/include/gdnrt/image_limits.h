// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much of something an image may have: what the reader refuses, and who
// writes images says ahead of that. Far beyond real entries, to guard the work
// for each. Header only, so that a writer links nothing of the runtime.

#ifndef GDNRT_IMAGE_LIMITS_H
#define GDNRT_IMAGE_LIMITS_H

#include <cstddef>
#include <cstdint>

namespace gdnrt {

/// Variants of a code of an entry.
constexpr size_t kMaxVariants = 24;
/// Stages and workspace regions of a variant, and conditions that hold
/// together.
constexpr size_t kMaxStages = 16;
constexpr size_t kMaxRegions = 16;
constexpr size_t kMaxConditions = 16;
/// Alternatives of a variant; each has its conditions.
constexpr size_t kMaxAlternatives = 8;
/// Boxes, tensor maps that is, of a launch.
constexpr size_t kMaxTensorMaps = 16;
/// Dimensions of an array that has boxes, its columns, and rows of a box.
constexpr size_t kMaxMappedRank = 4;
constexpr int64_t kMaxMappedColumns = 256;
constexpr uint32_t kMaxBoxRows = 256;
/// The columns of a box lie in pieces of so many, one piece behind the other.
constexpr int64_t kBoxPieceColumns = 64;
/// Forms of the same thing: a grid, the sizes of an array, the factors of a
/// product.
constexpr size_t kMaxForms = 8;

} // namespace gdnrt

#endif // GDNRT_IMAGE_LIMITS_H
