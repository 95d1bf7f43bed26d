// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a gdn module to an image with code for several targets.
#ifndef GDN_PIPELINES_COMPILEIMAGE_H
#define GDN_PIPELINES_COMPILEIMAGE_H

#include "gdn/Pipelines/CompileGpu.h"

namespace gdn {

/// What a caller may choose, for each kind of target.
struct CompileOptions {
  CpuPipelineOptions cpu;
  GpuCompileOptions gpu; // its cache serves CPUs, too
};

/// An image with the entries of `source` and code for each of `targets`. A
/// device takes the first code that it can run: CPUs from the most demanding
/// on, then the cubins of GPUs, the newest chip first, then PTX likewise.
mlir::FailureOr<std::vector<uint8_t>>
compileImage(mlir::ModuleOp source, llvm::ArrayRef<TargetModel> targets,
             const CompileOptions &options, ConfigurePasses configure);

} // namespace gdn

#endif // GDN_PIPELINES_COMPILEIMAGE_H
