// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn to kernels for a GPU; see GpuPipeline.h. None of
// them lowers gdn yet: `lowerForGpu` refuses an entry for which no kernel came
// out, and modules of kernels pass through.
#include "gdn/Pipelines/GpuPipeline.h"

#include "mlir/Conversion/Passes.h"

using namespace mlir;
using namespace gdn;

void gdn::buildGdnToGpuPipeline(OpPassManager &passes,
                                const TargetModel &target,
                                const GpuPipelineOptions &options) {}

void gdn::buildGpuPipeline(OpPassManager &passes, const TargetModel &target,
                           const GpuPipelineOptions &options) {
  buildGdnToGpuPipeline(passes, target, options);
  // Operations of nvvm that stand for a line of PTX become inline assembly.
  passes.addPass(createConvertNVVMToLLVMPass());
}
