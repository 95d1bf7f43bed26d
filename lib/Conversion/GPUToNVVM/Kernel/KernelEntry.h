// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The outside of a kernel: the words of a call as its one parameter, its units,
// and what a launch has to know.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_KERNELENTRY_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_KERNELENTRY_H

#include "Copies/TensorMapCopy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"

namespace gdn {

/// A kernel whose body is still to be written.
struct KernelEntry {
  mlir::LLVM::LLVMFuncOp kernel;
  mlir::IRMapping arguments;               // of the source function
  mlir::Value workspace;                   // i64, address of the workspace
  BlockThreads threads;                    // all threads of the block
  mlir::Value units;                       // i64, of the launch
  TensorMaps tensorMaps;                   // behind the words
  llvm::SmallVector<mlir::Value> blockIds; // index, one per axis of the grid
};

/// Creates the kernel of `source`, a checked GPU program, beside it; leaves `b`
/// where the work of one unit goes. `finishKernel` completes it.
KernelEntry beginKernel(mlir::OpBuilder &b, mlir::func::FuncOp source);

/// Creates the loop of a role over the units of the block, leaves `b` in it,
/// and returns the coordinates of the unit.
llvm::SmallVector<mlir::Value> beginUnits(mlir::OpBuilder &b,
                                          const KernelEntry &entry,
                                          mlir::func::FuncOp source,
                                          gpu::UnitsOp units);

/// Ends the kernel and sets its attributes; erases `source`. `sharedBytes` are
/// dynamic, beyond what the kernel declares.
void finishKernel(mlir::OpBuilder &b, KernelEntry &entry,
                  mlir::func::FuncOp source, int64_t sharedBytes,
                  bool isDependent);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_KERNELENTRY_H
