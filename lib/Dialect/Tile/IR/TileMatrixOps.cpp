// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in TileMatrixOps.td; (Cn) are that file's constraints.
#include "gdn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace gdn::tile;

LogicalResult MatmulOp::verify() {
  VectorType lhs = getLhs().getType(), rhs = getRhs().getType();
  int64_t rows = lhs.getDimSize(getTransposeLhs() ? 1 : 0);
  int64_t inner = lhs.getDimSize(getTransposeLhs() ? 0 : 1);
  // matmul_c1
  if (rhs.getDimSize(0) != inner)
    return emitOpError("expects 'rhs' to have ")
           << inner << " rows, set by 'lhs', but got " << rhs.getDimSize(0);
  auto want = VectorType::get({rows, rhs.getDimSize(1)},
                              getResult().getType().getElementType());
  if (getResult().getType() != want)
    return emitOpError("expects the result to be ")
           << want << ", set by the operands, but got "
           << getResult().getType();
  if (getAcc() && getAcc().getType() != want)
    return emitOpError("expects 'acc' to be ")
           << want << ", the type of the result, but got "
           << getAcc().getType();
  // matmul_c2
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("expects 'rhs' to have the element type of 'lhs', ")
           << lhs.getElementType() << ", but got " << rhs.getElementType();
  return success();
}

LogicalResult TransposeOp::verify() {
  // transpose_c1
  VectorType type = getTile().getType();
  auto want = VectorType::get({type.getDimSize(1), type.getDimSize(0)},
                              type.getElementType());
  if (getResult().getType() != want)
    return emitOpError("expects the result to be ")
           << want << ", set by 'tile', but got " << getResult().getType();
  return success();
}

LogicalResult TriInverseOp::verify() {
  // tri_inverse_c1
  VectorType type = getMatrix().getType();
  if (type.getDimSize(0) != type.getDimSize(1))
    return emitOpError("expects 'matrix' to be square, but got ") << type;
  // tri_inverse_c2
  if (type.getElementType().isF16() && type.getDimSize(0) % inverseBlock != 0)
    return emitOpError("expects 'matrix' in f16 to have a multiple of ")
           << inverseBlock << " rows, but got " << type.getDimSize(0);
  return success();
}
