// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What holds of a whole GPU program and no verifier of one op can see.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_CHECKGPUPROGRAM_H
#define GDN_LIB_CONVERSION_GPUTONVVM_CHECKGPUPROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace gdn {

/// Checks the function's layouts outside `gdn_gpu.warps` and the order of its
/// accesses to shared tiles; emits an error on the first op that breaks a rule.
mlir::LogicalResult checkGPUProgram(mlir::FunctionOpInterface function);

/// Checks what the lowering to a kernel takes for granted of `function`, so
/// that it cannot fail half way: its signature and the ops in it.
/// `hasBulkCopies`: so does the target.
mlir::LogicalResult checkKernel(mlir::func::FuncOp function,
                                bool hasBulkCopies);

/// The part of `checkGPUProgram` on channels and units.
mlir::LogicalResult checkChannels(mlir::FunctionOpInterface function);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_CHECKGPUPROGRAM_H
