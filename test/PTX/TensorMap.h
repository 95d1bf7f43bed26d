// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the driver here stores in the 128 bytes of a map of boxes (CUtensorMap).

#ifndef GDN_TEST_PTX_TENSORMAP_H
#define GDN_TEST_PTX_TENSORMAP_H

#include <cstdint>

namespace ptx {

/// Tiles of 2-byte elements, swizzled in pieces of 128 bytes, zeros outside.
struct TensorMap {
  static constexpr uint64_t kMagic = 0x70616d20726f7374;
  static constexpr uint32_t kMostRank = 5;
  static constexpr uint32_t kElementBytes = 2;
  static constexpr uint32_t kPieceBytes = 128;

  uint64_t magic = kMagic;
  uint64_t address = 0;
  uint64_t sizes[kMostRank] = {};
  /// Bytes; dimension 0 has none.
  uint64_t strides[kMostRank] = {};
  uint32_t box[kMostRank] = {};
  uint32_t rank = 0;
  uint64_t unused = 0;
};
static_assert(sizeof(TensorMap) == 128, "as many bytes as the driver's");

} // namespace ptx

#endif // GDN_TEST_PTX_TENSORMAP_H
