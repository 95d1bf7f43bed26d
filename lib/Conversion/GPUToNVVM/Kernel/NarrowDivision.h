// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divisions of indices in 32 bits where that is enough.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_NARROWDIVISION_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_NARROWDIVISION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace gdn {

/// Knows which indices of a program are below 2^31. A division of 64 bits is a
/// hundred instructions and a branch that nothing moves across; one of 32 bits
/// is twenty, which the loads around it hide.
class NarrowDivision {
public:
  /// Symbols that are axes of the grid are small, since there are fewer than
  /// 2^31 units, and so is what divides them by `multiples`.
  explicit NarrowDivision(mlir::func::FuncOp program);

  /// True if `op` is a division or remainder of small indices. If so, writes
  /// its code and maps its result.
  bool emit(mlir::OpBuilder &b, mlir::Operation &op, mlir::IRMapping &values);

private:
  bool isSmall(mlir::Value value) const;

  llvm::DenseSet<mlir::Value> small;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_NARROWDIVISION_H
