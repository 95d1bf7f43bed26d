// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-tile-opt: runs the passes of the tile level. It does not know the gdn
// dialect, so an op that leaks through convert-gdn-to-tile is a parse error.
#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"
#include "gdn/Support/OptimizerMain.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  gdn::registerTileTransformsPasses();
  gdn::registerConvertTileToCPUPass();
  gdn::registerExpandCPUMathPass();
  mlir::registerTransformsPasses();
  registry.insert<gdn::tile::TileDialect, mlir::LLVM::LLVMDialect,
                  mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                  mlir::vector::VectorDialect>();
  return gdn::runOptimizer(argc, argv, "gdn tile-level optimizer\n", registry);
}
