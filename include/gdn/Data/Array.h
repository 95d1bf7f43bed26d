// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dense row-major array with its element type and shape: what a safetensors
// file holds and what a compiled entry is run on.
#ifndef GDN_DATA_ARRAY_H
#define GDN_DATA_ARRAY_H

#include "gdn/Data/DType.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace gdn::data {

/// Owns its bytes, which are aligned for every element type.
/// Invariant: `bytes.size()` is the product of `shape` times the element size.
struct Array {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<char> bytes;

  /// All elements zero. No dimension may be negative.
  static Array zeros(DType dtype, llvm::ArrayRef<int64_t> shape);

  /// Rounds every value once. For integer types a value is truncated and
  /// clamped to the type's range, NaN gives 0; for `i1` it is true unless 0.
  /// `values` must have as many elements as `shape`.
  static Array fromDoubles(DType dtype, llvm::ArrayRef<int64_t> shape,
                           llvm::ArrayRef<double> values);

  /// The values; exact but for `i64` past 2^53.
  std::vector<double> toDoubles() const;

  /// The same values in another element type, rounded as by `fromDoubles`.
  Array as(DType other) const;

  /// Number of elements.
  int64_t size() const;

  /// `bf16[3, 128]`.
  std::string typeString() const;
};

/// Number of elements of `shape`; nothing if a size is negative or the product
/// does not fit.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> shape);

/// `[3, 128]`.
std::string shapeString(llvm::ArrayRef<int64_t> shape);

} // namespace gdn::data

#endif // GDN_DATA_ARRAY_H
