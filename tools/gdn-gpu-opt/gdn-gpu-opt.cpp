// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-opt: runs the passes of the GPU level. It knows neither gdn nor
// gdn_tile, so an op that leaks through the schedules is a parse error;
// attributes of gdn_tile on functions stay as they are.
#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/GPU/Transforms/Passes.h"
#include "gdn/Pipelines/GpuToLlvm.h"
#include "gdn/Support/OptimizerMain.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  gdn::registerGPUTransformsPasses();
  gdn::registerConvertGPUToNVVMPass();
  gdn::registerExpandGPUMathPass();
  gdn::registerGPUToLlvmPipeline();
  mlir::registerTransformsPasses();
  registry.insert<gdn::gpu::GPUDialect, mlir::LLVM::LLVMDialect,
                  mlir::NVVM::NVVMDialect, mlir::arith::ArithDialect,
                  mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, mlir::memref::MemRefDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  return gdn::runOptimizer(argc, argv, "gdn GPU-level optimizer\n", registry);
}
