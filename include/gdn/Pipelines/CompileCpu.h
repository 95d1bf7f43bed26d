// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the CPU pipeline on a gdn module, up to any level.
#ifndef GDN_PIPELINES_COMPILECPU_H
#define GDN_PIPELINES_COMPILECPU_H

#include "gdn/Pipelines/CpuPipeline.h"
#include "gdn/Target/ImageWriter.h"

#include "mlir/IR/OwningOpRef.h"

namespace gdn {

/// Levels that a module passes through.
enum class Level { gdn, tile, llvm };

/// Prepares a pass manager before it runs: timing, printing, reproducers.
using ConfigurePasses =
    llvm::function_ref<mlir::LogicalResult(mlir::PassManager &)>;

/// A copy of `source`, which stays as it is, lowered to `level`.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
lowerForCpu(mlir::ModuleOp source, const TargetModel &target, Level level,
            const CpuPipelineOptions &options, ConfigurePasses configure);

/// The code of all entries of `source` for `target`; with a cache, what the
/// same compiler made of the same source.
mlir::FailureOr<TargetCode> compileForCpu(mlir::ModuleOp source,
                                          const TargetModel &target,
                                          const CpuPipelineOptions &options,
                                          ConfigurePasses configure,
                                          const ContentCache *cache = nullptr);

} // namespace gdn

#endif // GDN_PIPELINES_COMPILECPU_H
