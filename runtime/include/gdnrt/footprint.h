// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes that a strided array occupies, and whether two arrays share bytes.
// An exact answer is expensive in general. These answers are exact if the
// dimensions of the array nest, which they do in all practical layouts. For
// other layouts the answer may be that memory is shared when it is not.

#ifndef GDNRT_FOOTPRINT_H
#define GDNRT_FOOTPRINT_H

#include "gdnrt/entry_schema.h"

#include <optional>

namespace gdnrt {

/// A dimension with more than one element. The stride is in bytes and not
/// negative, because the base address is that of the lowest element.
struct FootprintDim {
  int64_t size;
  int64_t stride;
  /// The index of the dimension in the array.
  int dim;
};

class Footprint {
public:
  /// The footprint of an array whose strides are in elements. No value if its
  /// bytes do not fit in the address space. An array without elements has an
  /// empty footprint, whatever its address is.
  static std::optional<Footprint> make(const void *data, int64_t elementBytes,
                                       int rank, const int64_t *sizes,
                                       const int64_t *strides);

  bool isEmpty() const { return empty_; }

  /// Two elements of one array that may share memory: the outer dimension of
  /// the first such pair, its stride, and the bytes that the dimensions inside
  /// it span.
  struct SelfOverlap {
    int dim;
    int64_t stride;
    int64_t innerBytes;
  };
  std::optional<SelfOverlap> findSelfOverlap() const;

  /// Whether the two may share a byte. The result is false for arrays that
  /// alternate with the same period, such as pages that hold a window and then
  /// a state.
  static bool mayOverlap(const Footprint &a, const Footprint &b);

private:
  bool isPeriodic(int64_t period, int64_t &innerBytes) const;

  bool empty_ = true;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  int64_t elementBytes_ = 1;
  int numDims_ = 0;
  /// In order of ascending stride. Dimensions with stride 0 are included.
  FootprintDim dims_[kMaxRank];
};

} // namespace gdnrt

#endif // GDNRT_FOOTPRINT_H
