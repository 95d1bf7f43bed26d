// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn to code for a CPU; see CpuPipeline.h.
#include "gdn/Pipelines/CpuPipeline.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gdn;

void gdn::buildTilePipeline(OpPassManager &passes,
                            const CpuPipelineOptions &options) {
  passes.addPass(createCanonicalizerPass());
}

void gdn::buildTileToLlvmPipeline(OpPassManager &passes,
                                  const TargetModel &target) {
  passes.addPass(createCSEPass());
}

void gdn::buildCpuPipeline(OpPassManager &passes, const TargetModel &target,
                           const CpuPipelineOptions &options) {
  buildTilePipeline(passes, options);
  buildTileToLlvmPipeline(passes, target);
}
