// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn_gpu to the LLVM dialect; see GpuToLlvm.h.
#include "gdn/Pipelines/GpuToLlvm.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gdn;

void gdn::buildGPUToLlvmPipeline(OpPassManager &passes,
                                 const ConvertGPUToNVVMOptions &kernels,
                                 const ExpandGPUMathOptions &math) {
  passes.addPass(createConvertGPUToNVVM(kernels));
  // Kernels beside each other, but where a pass takes modules alone.
  auto eachKernel = [&]() -> OpPassManager & {
    return passes.nest<LLVM::LLVMFuncOp>();
  };
  GreedyRewriteConfig config; // LLVM's optimiser tidies up blocks
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  OpPassManager &loops = eachKernel();
  loops.addPass(createCanonicalizerPass(config));
  loops.addPass(createCSEPass());
  loops.addPass(createExpandGPUMath(math));
  loops.addPass(memref::createExpandStridedMetadataPass());
  loops.addPass(createLowerAffinePass());
  loops.addPass(createSCFToControlFlowPass());
  loops.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  OpPassManager &values = eachKernel();
  values.addPass(createArithToLLVMConversionPass());
  values.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  OpPassManager &blocks = eachKernel();
  blocks.addPass(createReconcileUnrealizedCastsPass());
  blocks.addPass(createCanonicalizerPass(config));
  blocks.addPass(createCSEPass());
}

namespace {
struct GPUToLlvmOptions : PassPipelineOptions<GPUToLlvmOptions> {
  Option<bool> dependentLaunch{
      *this, "dependent-launch",
      llvm::cl::desc("The target has programmatic dependent launch"),
      llvm::cl::init(true)};
  Option<bool> bulkCopies{*this, "bulk-copies",
                          llvm::cl::desc("The target has bulk copies"),
                          llvm::cl::init(true)};
};
} // namespace

void gdn::registerGPUToLlvmPipeline() {
  PassPipelineRegistration<GPUToLlvmOptions>(
      "gdn-gpu-to-llvm", "GPU programs to kernels in the LLVM dialect",
      [](OpPassManager &passes, const GPUToLlvmOptions &options) {
        ConvertGPUToNVVMOptions kernels;
        kernels.dependentLaunch = options.dependentLaunch;
        kernels.bulkCopies = options.bulkCopies;
        buildGPUToLlvmPipeline(passes, kernels, ExpandGPUMathOptions());
      });
}
