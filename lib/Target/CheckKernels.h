// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks before code generation whether a GPU has what its kernels use. LLVM's
// code generator ends the process on an instruction that it cannot select, so
// what a lowering of ours may emit is checked here, with a message.
#ifndef GDN_LIB_TARGET_CHECKKERNELS_H
#define GDN_LIB_TARGET_CHECKKERNELS_H

#include "gdn/Target/TargetModel.h"

#include "mlir/IR/BuiltinOps.h"

namespace gdn {

/// Checks operations, inline assembly, parameters and launches of all kernels
/// in `module`. Fails with an error on each that `target` cannot do.
mlir::LogicalResult checkKernels(mlir::ModuleOp module,
                                 const TargetModel &target);

} // namespace gdn

#endif // GDN_LIB_TARGET_CHECKKERNELS_H
