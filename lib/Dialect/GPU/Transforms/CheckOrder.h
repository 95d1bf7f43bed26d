// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of `checkGPUProgram` on order outside of shared tiles and channels.
#ifndef GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKORDER_H
#define GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKORDER_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace gdn {

/// What stands ahead of `gdn_gpu.await_launch`, and `gdn_gpu.release_launch`.
mlir::LogicalResult checkLaunches(mlir::FunctionOpInterface function);

/// Views that a block writes where other blocks read them.
mlir::LogicalResult checkLastReaders(mlir::FunctionOpInterface function);

/// Accesses of a block to the same elements of global memory.
mlir::LogicalResult checkGlobalAccesses(mlir::FunctionOpInterface function);

/// Shared tiles and elements of global memory of two roles.
mlir::LogicalResult checkRoles(mlir::FunctionOpInterface function);

/// What is begun and has to be waited for.
mlir::LogicalResult checkPairs(mlir::FunctionOpInterface function);

/// The tile that `buffer` is, whatever shape it has here.
mlir::Value getSharedTile(mlir::Value buffer);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKORDER_H
