// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface that makes tensor maps, with which kernels copy boxes of
// arrays. A binding calls it; the device that launches the kernels implements
// it.

#ifndef GDNRT_TENSOR_MAP_ENCODER_H
#define GDNRT_TENSOR_MAP_ENCODER_H

#include "gdnrt/image_limits.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace gdnrt {

/// The size of a tensor map and its alignment in a launch, in 64-bit words.
constexpr size_t kMapWords = 16;
constexpr size_t kMapAlignmentWords = 8;

/// An array of 16-bit elements and the shape of its boxes: `rows` in dimension
/// `rowsDim`, `pieces` pieces of 64 columns in the innermost dimension (0:
/// all), and 1 in each other dimension.
struct MappedArray {
  /// The name of the parameter. Null if the array is region `region` of the
  /// workspace.
  const std::string *param = nullptr;
  size_t region = 0;
  /// Null if no array is bound.
  void *data = nullptr;
  int rank = 0;
  /// Strides in elements.
  int64_t sizes[kMaxMappedRank] = {};
  int64_t strides[kMaxMappedRank] = {};
  int rowsDim = 0;
  uint32_t rows = 0;
  uint32_t pieces = 0;
};

class TensorMapEncoder {
public:
  virtual ~TensorMapEncoder() = default;
  /// Writes a tensor map for each array. Writes zeros if the array is absent or
  /// has no elements. Allocates nothing unless it fails.
  virtual Status encode(const MappedArray *arrays, size_t count,
                        int64_t *maps) const = 0;
};

} // namespace gdnrt

#endif // GDNRT_TENSOR_MAP_ENCODER_H
