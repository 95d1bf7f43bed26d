// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-opt: runs gdn's passes on IR of every level.
#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  gdn::registerGDNConversionPasses();
  gdn::registerGDNPasses();
  mlir::registerTransformsPasses();
  registry.insert<gdn::GDNDialect, gdn::tile::TileDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect, mlir::memref::MemRefDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect, mlir::vector::VectorDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "gdn optimizer\n", registry));
}
