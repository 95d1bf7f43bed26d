// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small vocabulary for loops over matrices in memory.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_MATRIXLOOPS_H
#define GDN_LIB_CONVERSION_TILETOCPU_MATRIXLOOPS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace gdn {

/// Loops and accesses at one location.
struct MatrixLoops {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  mlir::Value add(mlir::Value x, int64_t y) {
    return y ? mlir::arith::AddIOp::create(b, loc, x, index(y)).getResult() : x;
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  /// Enters a loop: the builder then stands in its body.
  mlir::scf::ForOp enter(mlir::Value from, mlir::Value to, int64_t step,
                         mlir::ValueRange inits = {}) {
    auto loop = mlir::scf::ForOp::create(b, loc, from, to, index(step), inits);
    b.setInsertionPointToStart(loop.getBody());
    return loop;
  }
  /// Runs `body` with the variable of a loop.
  void forEach(mlir::Value from, mlir::Value to, int64_t step,
               llvm::function_ref<void(mlir::Value)> body) {
    mlir::OpBuilder::InsertionGuard guard(b);
    body(enter(from, to, step).getInductionVar());
  }
  mlir::Value read(mlir::VectorType type, mlir::Value buffer, mlir::Value row,
                   mlir::Value column) {
    return mlir::vector::LoadOp::create(b, loc, type, buffer,
                                        mlir::ValueRange{row, column});
  }
  void write(mlir::Value value, mlir::Value buffer, mlir::Value row,
             mlir::Value column) {
    mlir::vector::StoreOp::create(b, loc, value, buffer,
                                  mlir::ValueRange{row, column});
  }
  mlir::Value element(mlir::Value buffer, mlir::Value row, mlir::Value column) {
    return mlir::memref::LoadOp::create(b, loc, buffer,
                                        mlir::ValueRange{row, column});
  }
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_MATRIXLOOPS_H
