// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes that a strided array touches, and whether two arrays touch the
// same ones. Exact answers are expensive in general; these are exact for
// layouts whose dimensions nest, which all real ones do, and otherwise err on
// the side of overlap.

#ifndef GDNRT_FOOTPRINT_H
#define GDNRT_FOOTPRINT_H

#include "gdnrt/entry_schema.h"

#include <optional>

namespace gdnrt {

/// A dimension with more than one element, in bytes; strides are positive
/// because the base address is that of the lowest element.
struct FootprintDim {
  int64_t size;
  int64_t stride;
  /// The dimension of the array that it is.
  int dim;
};

class Footprint {
public:
  /// The footprint of an array with strides in elements, or nothing if its
  /// bytes do not fit in the address space (whatever the address is, if an
  /// array is empty then so is its footprint).
  static std::optional<Footprint> make(const void *data, int64_t elementBytes,
                                       int rank, const int64_t *sizes,
                                       const int64_t *strides);

  bool isEmpty() const { return empty_; }

  /// The outer dimension and the bytes inside it of the first pair whose
  /// elements may share memory.
  struct SelfOverlap {
    int dim;
    int64_t stride;
    int64_t innerBytes;
  };
  std::optional<SelfOverlap> findSelfOverlap() const;

  /// Whether the two may share a byte. Arrays interleaved with one period (a
  /// page that holds a conv state and then a recurrent state) do not.
  static bool mayOverlap(const Footprint &a, const Footprint &b);

private:
  bool isPeriodic(int64_t period, int64_t &innerBytes) const;

  bool empty_ = true;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  int64_t elementBytes_ = 1;
  int numDims_ = 0;
  /// By ascending stride. Strides of 0 stay.
  FootprintDim dims_[kMaxRank];
};

} // namespace gdnrt

#endif // GDNRT_FOOTPRINT_H
