// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn to kernels for a GPU; see GpuPipeline.h. None exists yet:
// a module of kernels passes through unchanged, and `lowerForGpu` refuses an
// entry for which no kernel came out.
#include "gdn/Pipelines/GpuPipeline.h"

using namespace mlir;
using namespace gdn;

void gdn::buildGdnToGpuPipeline(OpPassManager &passes,
                                const TargetModel &target,
                                const GpuPipelineOptions &options) {}

void gdn::buildGpuPipeline(OpPassManager &passes, const TargetModel &target,
                           const GpuPipelineOptions &options) {
  buildGdnToGpuPipeline(passes, target, options);
}
