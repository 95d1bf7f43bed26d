// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn_gpu to the LLVM dialect; see GpuToLlvm.h.
#include "gdn/Pipelines/GpuToLlvm.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gdn;

void gdn::buildGPUToLlvmPipeline(OpPassManager &passes,
                                 const ConvertGPUToNVVMOptions &kernels) {
  passes.addPass(createConvertGPUToNVVM(kernels));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createExpandGPUMath());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
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
        buildGPUToLlvmPipeline(passes, kernels);
      });
}
