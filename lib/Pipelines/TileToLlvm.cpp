// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn_tile to the llvm dialect for a CPU; see CpuPipeline.h.
#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"
#include "gdn/Pipelines/CpuPipeline.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gdn;

void gdn::buildTileToLlvmPipeline(OpPassManager &passes,
                                  const TargetModel &target) {
  passes.addPass(createWidenTileOperands());
  passes.addPass(createFuseTileRows());
  passes.addPass(createCSEPass());
  ConvertTileToCPUOptions loops;
  loops.lanes = target.getF32Lanes();
  passes.addPass(createConvertTileToCPU(loops));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createExpandCPUMath());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}
