// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Against what LLVM computes ahead: it counts no registers.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_OPTIMIZATIONBARRIER_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_OPTIMIZATIONBARRIER_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

/// `value`, an integer or index, through assembly without an instruction, which
/// stays where it is: what is computed from it is not what was computed before.
mlir::Value optimizationBarrier(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value value);

/// Keeps LLVM from computing ahead of a loop what can be computed inside. ptxas
/// counts registers, and moves what there is room for.
void keepInside(mlir::Operation *loop);

/// Whether what `loop` need not compute in each turn can stay in registers all
/// the same: its role has many, and none are for results that go to memory
/// beside what it carries.
bool hasRoom(mlir::scf::ForOp loop);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_OPTIMIZATIONBARRIER_H
