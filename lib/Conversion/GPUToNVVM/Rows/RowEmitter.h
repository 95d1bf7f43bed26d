// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.map_rows while it is written: op by op for all rows (RowWork.cpp), or
// row after row (RowsApart.cpp).
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_ROWS_ROWEMITTER_H
#define GDN_LIB_CONVERSION_GPUTONVVM_ROWS_ROWEMITTER_H

#include "Rows/RowWork.h"

#include "Kernel/Assembly.h"

namespace gdn {

class RowEmitter {
public:
  RowEmitter(mlir::OpBuilder &b, const BlockThreads &threads,
             gdn::gpu::MapRowsOp map, const mlir::IRMapping &values,
             bool rowByRow, bool isApart)
      : rowByRow(rowByRow), isApart(isApart), b(b), loc(map.getLoc()),
        a{b, loc}, threads(threads), map(map), body(map.getBody().front()),
        values(values) {}

  llvm::SmallVector<mlir::Value> emit();

private:
  void mapArguments();
  void findFusedProducts();
  mlir::arith::MulFOp getFusedProduct(mlir::Value operand);
  bool isSameForRows(mlir::Operation &op);
  void emitOp(mlir::Operation &op, int64_t first, int64_t last);
  mlir::Value emitInRow(mlir::Operation &op, mlir::IRMapping &row);
  mlir::Value emitFused(mlir::Operation &op, mlir::IRMapping &row);
  mlir::Value emitPart(mlir::vector::ReductionOp sum, mlir::IRMapping &row);
  mlir::Value emitLargest(mlir::vector::ReductionOp largest,
                          mlir::IRMapping &row);
  static bool isSum(mlir::Operation &op) {
    auto reduction = mlir::dyn_cast<mlir::vector::ReductionOp>(op);
    return reduction && reduction.getKind() == mlir::vector::CombiningKind::ADD;
  }
  void addLanes(llvm::MutableArrayRef<mlir::Value> parts) {
    emitLaneSums(b, loc, threads, layout, parts, map.getShareSums());
  }
  llvm::SmallVector<int64_t> columnsFromFirst() const;
  mlir::Value emitColumnNumbers(mlir::vector::StepOp step);
  mlir::Value emitDistance(mlir::arith::AddFOp op, mlir::IRMapping &row);
  bool isNumber(mlir::Value value);
  mlir::Value emitCompare(mlir::arith::CmpIOp compare, mlir::IRMapping &row);
  void separate(int64_t row, llvm::ArrayRef<mlir::Operation *> ops);
  void emitApart(llvm::ArrayRef<mlir::Operation *> ops);
  void emitApartResults(mlir::IRMapping &row);
  mlir::Value barrier(mlir::Value number);
  mlir::Value collect(unsigned result);

  mlir::Type localType(mlir::Type type) {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
      return mlir::VectorType::get({localColumns}, vector.getElementType());
    return type;
  }
  /// `value` in `row`; constants from outside come along.
  mlir::Value lookup(mlir::Value value, mlir::IRMapping &row);
  bool isRowInvariant(mlir::Value value) {
    return !map.getBody().isAncestor(value.getParentRegion()) ||
           invariant.contains(value);
  }

  bool rowByRow; // behind the last sum
  bool isApart;  // from the beginning on
  mlir::OpBuilder &b;
  mlir::Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  gdn::gpu::MapRowsOp map;
  mlir::Block &body;
  const mlir::IRMapping &values;

  gdn::gpu::RowsAttr layout;
  int64_t numRows = 1, numColumns = 1, localRows = 1, localColumns = 1;
  llvm::SmallVector<mlir::IRMapping> rows; // of each local row
  llvm::DenseSet<mlir::Value>
      invariant; // values of the body that all rows share
  llvm::DenseSet<mlir::Operation *>
      fused; // products that become part of their use
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_ROWS_ROWEMITTER_H
