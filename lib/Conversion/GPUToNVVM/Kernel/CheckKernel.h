// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a function has to be before it becomes a kernel.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_CHECKKERNEL_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_CHECKKERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// Checks what the lowering to a kernel takes for granted of `function`, so
/// that it cannot fail half way: its signature and the ops in it.
/// `hasBulkCopies`: so does the target.
mlir::LogicalResult checkKernel(mlir::func::FuncOp function,
                                bool hasBulkCopies);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_CHECKKERNEL_H
