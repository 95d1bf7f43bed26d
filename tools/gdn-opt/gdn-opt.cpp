// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-opt: runs gdn's passes on IR of every level.
#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<gdn::GDNDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::tensor::TensorDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "gdn optimizer\n", registry));
}
