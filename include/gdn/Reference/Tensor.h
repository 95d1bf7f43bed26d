// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values of the reference evaluator. Everything is float64; integers and flags
// are held as the doubles that equal them.
#ifndef GDN_REFERENCE_TENSOR_H
#define GDN_REFERENCE_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <variant>
#include <vector>

namespace gdn::reference {

/// A dense row-major tensor.
/// Invariant: `data.size()` is the product of `shape`.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;

  Tensor() = default;
  Tensor(llvm::ArrayRef<int64_t> shape, std::vector<double> data)
      : shape(shape), data(std::move(data)) {}

  /// All zeros; no size may be negative.
  static Tensor zeros(llvm::ArrayRef<int64_t> shape);

  /// The size of dimension `i`.
  int64_t dim(unsigned i) const { return shape[i]; }

  /// The elements at index `i` of dimension 0.
  llvm::ArrayRef<double> row(int64_t i) const {
    return llvm::ArrayRef(data).slice(i * rowSize(), rowSize());
  }
  llvm::MutableArrayRef<double> row(int64_t i) {
    return llvm::MutableArrayRef(data).slice(i * rowSize(), rowSize());
  }

  /// Product of all dimensions but the first.
  int64_t rowSize() const;
};

/// States of many sequences; `data.shape[0]` is the number P of slots. States
/// stay float64: unlike a pool in memory they are never rounded.
struct Pool {
  Tensor data;
  /// The slot that is skipped beside those out of range; -1 for none.
  int64_t nullSlot = -1;

  int64_t slots() const { return data.dim(0); }
  /// True if `id` names no slot that may be touched: negative, the null slot,
  /// or at least P.
  bool skips(double id) const {
    return id < 0 || id == double(nullSlot) || !(id < double(slots()));
  }
};

/// An argument: an index, a tensor, or a pool that evaluation updates in place.
using Argument = std::variant<int64_t, Tensor, Pool *>;

} // namespace gdn::reference

#endif // GDN_REFERENCE_TENSOR_H
