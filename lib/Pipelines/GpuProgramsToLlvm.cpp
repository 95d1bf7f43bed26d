// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn_gpu programs to kernels, as a target wants them; see
// GpuPipeline.h.
#include "gdn/Conversion/Passes.h"
#include "gdn/Pipelines/GpuPipeline.h"
#include "gdn/Pipelines/GpuToLlvm.h"

#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Transforms/LocationSnapshot.h"

using namespace mlir;
using namespace gdn;

void gdn::buildGpuProgramsToLlvmPipeline(OpPassManager &passes,
                                         const TargetModel &target,
                                         const GpuPipelineOptions &options) {
  if (!options.lineInfo.empty()) {
    LocationSnapshotOptions snapshot;
    snapshot.fileName =
        (options.lineInfo + "." + target.getName() + ".gpu.mlir").str();
    passes.addPass(createLocationSnapshot(snapshot));
  }
  ConvertGPUToNVVMOptions kernels;
  kernels.dependentLaunch = target.hasDependentLaunch();
  kernels.bulkCopies = target.hasTma();
  kernels.everyThreadArrives = options.everyThreadArrives;
  ExpandGPUMathOptions math;
  math.bytesRegisters = target.getBytesRegisters();
  math.numbersRegisters = target.getNumbersRegisters();
  buildGPUToLlvmPipeline(passes, kernels, math);
  if (!options.lineInfo.empty()) {
    // Of debug information the code generator writes .file and .loc alone.
    LLVM::DIScopeForLLVMFuncOpPassOptions scopes;
    scopes.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
    passes.addPass(LLVM::createDIScopeForLLVMFuncOpPass(scopes));
  }
}
