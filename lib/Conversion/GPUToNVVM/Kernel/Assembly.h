// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions that the nvvm dialect has no op for.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_ASSEMBLY_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_ASSEMBLY_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace gdn {

/// Assembly `text` on `operands`, `constraints` as LLVM writes them. Returns
/// its result, null if `result` is. With side effects it stays where it is;
/// whether memory changes is for the constraints to say.
mlir::Value emitAssembly(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Type result, mlir::ValueRange operands,
                         llvm::StringRef text, llvm::StringRef constraints,
                         bool hasSideEffects);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_ASSEMBLY_H
