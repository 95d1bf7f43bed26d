// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn to code for a CPU; see CpuPipeline.h.
#include "gdn/Pipelines/CpuPipeline.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gdn;

namespace {
/// Replaces functions of math by polynomials.
struct ApproximateMath final
    : PassWrapper<ApproximateMath, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ApproximateMath)
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns,
                                                [](StringRef) { return true; });
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
  }
};
} // namespace

void gdn::buildTilePipeline(OpPassManager &passes,
                            const CpuPipelineOptions &options) {
  ConvertGDNToTileOptions toTile;
  toTile.tokens = options.tokens;
  passes.addPass(createConvertGDNToTile(toTile));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createFuseTileRows());
}

void gdn::buildTileToLlvmPipeline(OpPassManager &passes,
                                  const TargetModel &target) {
  ConvertTileToCPUOptions toCpu;
  toCpu.lanes = target.getF32Lanes();
  passes.addPass(createConvertTileToCPU(toCpu));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addNestedPass<func::FuncOp>(std::make_unique<ApproximateMath>());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  passes.addPass(arith::createArithExpandOpsPass(expand));
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

void gdn::buildCpuPipeline(OpPassManager &passes, const TargetModel &target,
                           const CpuPipelineOptions &options) {
  buildTilePipeline(passes, options);
  buildTileToLlvmPipeline(passes, target);
}
