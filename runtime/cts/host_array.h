// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A strided array of one parameter. Every byte that is no element (padding,
// gaps between slots) is 0xff, which is a NaN in all float types and -1 in
// integers; a kernel that reads it spoils its result, one that writes it is
// found out by paddingIsIntact().

#ifndef GDNRT_CTS_HOST_ARRAY_H
#define GDNRT_CTS_HOST_ARRAY_H

#include "gdn-c/runtime.h"

#include <cstdint>
#include <vector>

namespace gdnrt::cts {

using Bytes = std::vector<uint8_t>;
using Sizes = std::vector<int64_t>;

class HostArray {
public:
  /// Row-major, all bytes 0xff.
  HostArray(gdnrt_dtype dtype, Sizes sizes);

  const Sizes &sizes() const { return sizes_; }
  const Sizes &strides() const { return strides_; }
  int64_t count() const;

  /// Element `index` in row-major order, whatever the strides are.
  void setNumber(int64_t index, double value);
  void setInteger(int64_t index, int64_t value);
  void setNan(int64_t index);
  /// Adds `by` to every element; none is negative.
  void shiftIntegers(int64_t by);
  /// Element `index` of an array of floats.
  double number(int64_t index) const;
  /// Whether all bytes of the element are 0.
  bool isZero(int64_t index) const;
  /// Whether the element is neither NaN nor infinite.
  bool isFinite(int64_t index) const;

  /// Takes count() elements of an array of the same type, from `first` on.
  void copyFrom(const HostArray &other, int64_t first);

  /// Element `index` becomes element `from` of an array of the same type.
  void copyElement(int64_t index, const HostArray &other, int64_t from);

  /// Moves the elements to other strides (in elements, positive).
  void relayout(Sizes strides);

  /// The elements alone, in row-major order, for comparing across layouts.
  Bytes elements() const;
  /// Everything, padding included.
  const Bytes &bytes() const { return bytes_; }
  bool paddingIsIntact() const;

  gdnrt_arg arg() const;

  int64_t nullSlot = 0;

private:
  size_t offsetOf(int64_t index) const;

  gdnrt_dtype dtype_;
  size_t elementBytes_;
  Sizes sizes_, strides_;
  /// Whether the strides are row-major, without gaps.
  bool isDense_ = true;
  mutable Bytes bytes_;
};

} // namespace gdnrt::cts

#endif // GDNRT_CTS_HOST_ARRAY_H
