// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values that a function has computed so far, and the size checks that all
// ops share. A tensor in an environment has the rank and the static sizes of
// its type, so that ops need not check those again.
#ifndef GDN_LIB_REFERENCE_ENVIRONMENT_H
#define GDN_LIB_REFERENCE_ENVIRONMENT_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Reference/Tensor.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

#include <map>
#include <string>

namespace gdn::reference {

class Environment {
public:
  /// The value must have been defined, and with this kind.
  const Tensor &tensor(mlir::Value value) const {
    return std::get<Tensor>(lookup(value));
  }
  Pool &pool(mlir::Value value) const {
    return *std::get<Pool *>(lookup(value));
  }
  int64_t index(mlir::Value value) const {
    return std::get<int64_t>(lookup(value));
  }
  /// Null where the op was given no such operand.
  const Tensor *optional(mlir::Value value) const {
    return value ? &tensor(value) : nullptr;
  }
  const Argument &lookup(mlir::Value value) const {
    return values.at(value.getAsOpaquePointer());
  }

  /// Defines `value` without a check. References to other values stay valid.
  void define(mlir::Value value, Argument contents) {
    values[value.getAsOpaquePointer()] = std::move(contents);
  }

  /// Defines a result of an op; fails with a diagnostic at the op if the sizes
  /// are not those of the result's type.
  mlir::LogicalResult defineResult(mlir::OpResult result, Tensor contents);

private:
  std::map<void *, Argument> values; // nodes do not move
};

/// `4 x ? x 128`; a negative size prints as `?`.
std::string printShape(llvm::ArrayRef<int64_t> shape);

/// Empty if `shape` and `data` fit `type` (ranked tensor or pool), else what
/// was expected and found.
std::string mismatch(const Tensor &tensor, mlir::Type type);

/// Fails at `op` unless `got` equals `want`, where a negative size in `want`
/// agrees with all. `name` is the operand's name in the op's documentation.
mlir::LogicalResult expectShape(mlir::Operation *op, llvm::StringRef name,
                                llvm::ArrayRef<int64_t> got,
                                llvm::ArrayRef<int64_t> want);

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_ENVIRONMENT_H
