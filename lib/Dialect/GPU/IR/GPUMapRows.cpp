// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The body of gdn_gpu.map_rows, and its verifier; (Cn) are the constraints that
// GPUOps.td lists.
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/TileChecks.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn::gpu;

/// (C1): one layout, and one shape of the tiles in it.
static LogicalResult verifyShapes(MapRowsOp map) {
  if (map.getNumResults() == 0)
    return map.emitOpError("expects at least one result");
  RowsAttr rows = cast<FragmentType>(map.getResult(0).getType()).getRows();
  int64_t numRows =
      cast<FragmentType>(map.getResult(0).getType()).getDimSize(0);
  std::optional<int64_t> numColumns;
  for (Value value : llvm::concat<Value>(map.getResults(), map.getInputs())) {
    auto type = cast<FragmentType>(value.getType());
    if (type.getRows() != rows)
      return map.emitOpError("expects every layout to belong to ")
             << rows << ", the layout of the first result, but got "
             << type.getLayout();
    if (type.isPerColumn() && isa<OpResult>(value) &&
        value.getDefiningOp() == map)
      return map.emitOpError("expects no result to be 'per_column', which is "
                             "the same for every row, but got ")
             << type;
    if (!type.isPerColumn() && type.getDimSize(0) != numRows)
      return map.emitOpError("expects every input and result to have ")
             << numRows << " rows, set by the first result, but got "
             << type.getDimSize(0);
    if (type.isPerRow())
      continue;
    int64_t got = type.getShape().back();
    if (!numColumns)
      numColumns = got;
    if (got != *numColumns)
      return map.emitOpError("expects every input and result to have ")
             << *numColumns << " columns, but got " << got;
  }
  return success();
}

/// (C4): what `op`, in the body of `map`, may be.
static LogicalResult verifyRowOp(Operation &op, MapRowsOp map) {
  bool isArithmetic =
      isa<arith::ArithDialect, math::MathDialect>(op.getDialect());
  DenseElementsAttr elements;
  if (matchPattern(&op, m_Constant(&elements)) && !elements.isSplat())
    return op.emitOpError("expects one value in all elements of a vector of a "
                          "gdn_gpu.map_rows");
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op)) {
    if (isa<VectorType>(broadcast.getSourceType()))
      return op.emitOpError("expects to broadcast a scalar in a "
                            "gdn_gpu.map_rows, but got ")
             << broadcast.getSourceType();
  } else if (auto sum = dyn_cast<vector::ReductionOp>(op)) {
    if ((sum.getKind() != vector::CombiningKind::ADD &&
         sum.getKind() != vector::CombiningKind::MAXIMUMF) ||
        sum.getAcc() || !sum.getType().isF32())
      return op.emitOpError("expects a sum or the largest of f32 without 'acc' "
                            "in a gdn_gpu.map_rows");
  } else if (!isArithmetic && !isa<YieldOp, vector::StepOp>(op)) {
    return op.emitOpError("expects to be outside gdn_gpu.map_rows, whose body "
                          "has arith, math, vector.broadcast, vector.step and "
                          "vector.reduction only");
  }
  for (Value operand : op.getOperands()) {
    DenseElementsAttr constant;
    bool isSplat =
        matchPattern(operand, m_Constant(&constant)) && constant.isSplat();
    if (isa<VectorType>(operand.getType()) && !isSplat &&
        !map.getBody().isAncestor(operand.getParentRegion()))
      return op.emitOpError("expects vectors of the gdn_gpu.map_rows around it "
                            "or constants of one value, but got one from "
                            "outside");
  }
  return success();
}

Block *MapRowsOp::openBody(OpBuilder &builder) {
  SmallVector<Type> types = {builder.getIndexType()};
  for (Value input : getInputs())
    types.push_back(getRowType(cast<FragmentType>(input.getType())));
  return builder.createBlock(&getBody(), {}, types,
                             SmallVector<Location>(types.size(), getLoc()));
}

LogicalResult MapRowsOp::verifyRegions() {
  // map_rows_c1
  if (failed(verifyShapes(*this)))
    return failure();
  // map_rows_c2, map_rows_c3
  auto rowsOf = [](ValueRange tiles) {
    return llvm::map_to_vector(tiles, [](Value tile) {
      return getRowType(cast<FragmentType>(tile.getType()));
    });
  };
  Block &body = getBody().front();
  if (failed(gdn::verifyRowBody(*this, body, rowsOf(getInputs()),
                                rowsOf(getResults()), "what a row has")))
    return failure();
  // map_rows_c4
  for (Operation &op : body)
    if (failed(verifyRowOp(op, *this)))
      return failure();
  return success();
}
