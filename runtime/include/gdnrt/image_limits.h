// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Limits of an image. The reader refuses an image beyond them, and writers
// check them first. They are far beyond real entries, and bound the work that
// the runtime does for each part. Header only, so that a writer links nothing
// of the runtime.

#ifndef GDNRT_IMAGE_LIMITS_H
#define GDNRT_IMAGE_LIMITS_H

#include <cstddef>
#include <cstdint>

namespace gdnrt {

/// Variants of one code of an entry.
constexpr size_t kMaxVariants = 24;
/// Stages and workspace regions of a variant, and conditions of a variant or of
/// one alternative.
constexpr size_t kMaxStages = 16;
constexpr size_t kMaxRegions = 16;
constexpr size_t kMaxConditions = 16;
/// Alternatives of a variant.
constexpr size_t kMaxAlternatives = 8;
/// Tensor maps of a launch.
constexpr size_t kMaxTensorMaps = 16;
/// Limits of an array with a tensor map: its dimensions, its columns, and the
/// rows of a box.
constexpr size_t kMaxMappedRank = 4;
constexpr int64_t kMaxMappedColumns = 256;
constexpr uint32_t kMaxBoxRows = 256;
/// The columns of one piece of a box. The pieces of a box lie one after
/// another.
constexpr int64_t kBoxPieceColumns = 64;
/// Linear forms of one grid, of the sizes of one array, or of one product.
constexpr size_t kMaxForms = 8;

} // namespace gdnrt

#endif // GDNRT_IMAGE_LIMITS_H
