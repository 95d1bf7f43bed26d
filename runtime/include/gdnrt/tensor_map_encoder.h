// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maps through which kernels copy boxes of arrays: what a binding asks of the
// device that will launch them.

#ifndef GDNRT_TENSOR_MAP_ENCODER_H
#define GDNRT_TENSOR_MAP_ENCODER_H

#include "gdnrt/image_limits.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace gdnrt {

/// 64-bit words of a map, and of what maps are aligned to in a launch.
constexpr size_t kMapWords = 16;
constexpr size_t kMapAlignmentWords = 8;

/// An array of 16-bit elements, and the boxes of it: `rows` in dimension
/// `rowsDim`, `pieces` of 64 of the innermost one (0: all), one of each other.
struct MappedArray {
  /// The name of the parameter, or null for region `region`.
  const std::string *param = nullptr;
  size_t region = 0;
  /// Null: no array is bound.
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
  /// Writes a map for each array; zeros if there is no array or it has no
  /// elements. Takes no memory unless it fails.
  virtual Status encode(const MappedArray *arrays, size_t count,
                        int64_t *maps) const = 0;
};

} // namespace gdnrt

#endif // GDNRT_TENSOR_MAP_ENCODER_H
