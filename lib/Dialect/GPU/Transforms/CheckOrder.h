// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of `checkGPUProgram` on what is no order of shared tiles or
// channels, and what is asked of several functions together.
#ifndef GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKORDER_H
#define GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKORDER_H

#include "GlobalAccess.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace gdn {

/// What stands ahead of `gdn_gpu.await_launch`, and `gdn_gpu.release_launch`.
mlir::LogicalResult checkLaunches(mlir::FunctionOpInterface function);

/// What a program does ahead of its wait for the launches before it, on some
/// way; nothing where it has none, since it begins when these have ended.
struct AheadOfWait {
  llvm::SmallVector<GlobalAccess> accesses;
  mlir::Operation *release = nullptr; // the first one; null: behind the wait
};
AheadOfWait getAheadOfWait(mlir::FunctionOpInterface function);

/// Views that a block writes where other blocks read them.
mlir::LogicalResult checkLastReaders(mlir::FunctionOpInterface function);

/// Accesses of a block to the same elements of global memory.
mlir::LogicalResult checkGlobalAccesses(mlir::FunctionOpInterface function);

/// Shared tiles and elements of global memory of two roles.
mlir::LogicalResult checkRoles(mlir::FunctionOpInterface function);

/// How often roles hand tiles on, and in which turns.
mlir::LogicalResult checkHandedOn(mlir::FunctionOpInterface function);

/// Tiles that several roles have received, of which one writes them.
mlir::LogicalResult checkInPlace(mlir::FunctionOpInterface function);

/// Which number roles go on with where units are taken.
mlir::LogicalResult checkUnits(mlir::FunctionOpInterface function);

/// What is begun and has to be waited for.
mlir::LogicalResult checkPairs(mlir::FunctionOpInterface function);

/// Outside gdn_gpu.warps, layouts are over all warps of the block.
mlir::LogicalResult checkLayouts(mlir::FunctionOpInterface function);

/// Who stores into a tile that boxes are read from.
mlir::LogicalResult checkTensorMapStores(mlir::FunctionOpInterface function);

/// The stages of a variant of an entry, in the order of launches.
struct VariantStages {
  mlir::StringAttr entry, variant;
  llvm::SmallVector<mlir::func::FuncOp> stages;
};
llvm::SmallVector<VariantStages> getVariantStages(mlir::ModuleOp module);

/// What stages of an entry await of others; of no function by itself.
mlir::LogicalResult checkSignals(mlir::ModuleOp module);

/// What stages of an entry do while others still run; of no function by itself.
mlir::LogicalResult checkStages(mlir::ModuleOp module);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKORDER_H
