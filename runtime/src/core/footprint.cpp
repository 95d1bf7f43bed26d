// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interval and period arithmetic on strided arrays. An array nests if each
// stride reaches past all that smaller strides span; then no two elements
// share memory. Two arrays whose large strides are multiples of one period,
// and whose rest is shorter than the period, are compared on the circle.

#include "gdnrt/footprint.h"

#include <utility>

using namespace gdnrt;

std::optional<Footprint> Footprint::make(const void *data, int64_t elementBytes,
                                         int rank, const int64_t *sizes,
                                         const int64_t *strides) {
  Footprint result;
  result.elementBytes_ = elementBytes;
  for (int d = 0; d < rank; ++d)
    if (sizes[d] == 0)
      return result;

  // Offsets of the lowest and of the highest element, in bytes.
  int64_t lowest = 0, highest = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1)
      continue;
    int64_t stride, span;
    if (__builtin_mul_overflow(strides[d], elementBytes, &stride) ||
        stride == INT64_MIN ||
        __builtin_mul_overflow(stride, sizes[d] - 1, &span) ||
        __builtin_add_overflow(span < 0 ? lowest : highest, span,
                               span < 0 ? &lowest : &highest))
      return std::nullopt;
    result.dims_[result.numDims_++] = {sizes[d], stride < 0 ? -stride : stride,
                                       d};
  }
  uint64_t base = reinterpret_cast<uintptr_t>(data);
  uint64_t end;
  int64_t pastHighest, span;
  // 0 - lowest: the distance down, which fits for every int64.
  if (base < 0 - static_cast<uint64_t>(lowest) ||
      __builtin_add_overflow(highest, elementBytes, &pastHighest) ||
      __builtin_sub_overflow(pastHighest, lowest, &span) ||
      __builtin_add_overflow(base, static_cast<uint64_t>(pastHighest), &end))
    return std::nullopt;
  result.empty_ = false;
  result.begin_ = base + static_cast<uint64_t>(lowest);
  result.end_ = end;
  // By insertion: there are few, and std::stable_sort takes memory.
  for (int i = 1; i < result.numDims_; ++i)
    for (int j = i; j > 0; --j)
      if (result.dims_[j].stride < result.dims_[j - 1].stride)
        std::swap(result.dims_[j], result.dims_[j - 1]);
  return result;
}

std::optional<Footprint::SelfOverlap> Footprint::findSelfOverlap() const {
  if (empty_)
    return std::nullopt;
  // The sums stay below end_ - begin_, which fits (see make).
  int64_t innerBytes = elementBytes_;
  for (int i = 0; i < numDims_; ++i) {
    if (dims_[i].stride < innerBytes)
      return SelfOverlap{dims_[i].dim, dims_[i].stride, innerBytes};
    innerBytes += dims_[i].stride * (dims_[i].size - 1);
  }
  return std::nullopt;
}

/// Whether all strides of at least `period` are multiples of it; gives the
/// bytes that the other dimensions span.
bool Footprint::isPeriodic(int64_t period, int64_t &innerBytes) const {
  innerBytes = elementBytes_;
  for (int i = 0; i < numDims_; ++i) {
    if (dims_[i].stride < period)
      innerBytes += dims_[i].stride * (dims_[i].size - 1);
    else if (dims_[i].stride % period != 0)
      return false;
  }
  return innerBytes <= period;
}

bool Footprint::mayOverlap(const Footprint &a, const Footprint &b) {
  if (a.empty_ || b.empty_ || a.end_ <= b.begin_ || b.end_ <= a.begin_)
    return false;
  // Any common period that separates the two is proof enough.
  for (const Footprint *source : {&a, &b})
    for (int i = 0; i < source->numDims_; ++i) {
      int64_t period = source->dims_[i].stride, innerA, innerB;
      if (period == 0 || !a.isPeriodic(period, innerA) ||
          !b.isPeriodic(period, innerB))
        continue;
      // On a circle of `period` bytes, b starts `distance` after a: it must
      // start past a and end before a comes round again.
      uint64_t circle = static_cast<uint64_t>(period);
      uint64_t distance =
          (b.begin_ % circle + circle - a.begin_ % circle) % circle;
      if (distance >= static_cast<uint64_t>(innerA) &&
          distance + static_cast<uint64_t>(innerB) <= circle)
        return false;
    }
  return true;
}
