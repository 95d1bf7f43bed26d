// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lists of dialects and passes; see Registration.h.
#include "gdn/Pipelines/Registration.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/GPU/Transforms/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"
#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Transforms/Passes.h"

void gdn::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<GDNDialect, gpu::GPUDialect, tile::TileDialect>();
  registry.insert<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect,
                  mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                  mlir::tensor::TensorDialect, mlir::vector::VectorDialect>();
}

void gdn::registerAllPasses() {
  registerGDNTransformsPasses();
  registerTileTransformsPasses();
  registerGPUTransformsPasses();
  registerGDNConversionPasses();
  registerGDNSchedulePasses();
  mlir::registerTransformsPasses();
}
