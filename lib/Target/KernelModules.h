// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that share nothing, each in a module of its own.
#ifndef GDN_LIB_TARGET_KERNELMODULES_H
#define GDN_LIB_TARGET_KERNELMODULES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace gdn {

/// A module for each kernel of `module`, in their order, with what this kernel
/// refers to. Empty where code for several kernels has to be made in one piece:
/// they share a function or memory, or have the lines of a source with them.
llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>
makeKernelModules(mlir::ModuleOp module);

} // namespace gdn

#endif // GDN_LIB_TARGET_KERNELMODULES_H
