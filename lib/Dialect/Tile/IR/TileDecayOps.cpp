// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in TileDecayOps.td; (Cn) are that file's constraints.
#include "gdn/Dialect/Tile/IR/StageFields.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gdn::tile;

LogicalResult SumOfPairOp::verify() {
  // sum_of_pair_c1
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  if (function && StageFields(function).getSameChunks() == 2)
    return success();
  return emitOpError("expects a function with 'same_chunks' of "
                     "'gdn_tile.stage' of 2");
}

LogicalResult ExtractRowOp::verify() {
  VectorType type = getTile().getType();
  // extract_row_c1
  if (getRow() >= uint64_t(type.getDimSize(0)))
    return emitOpError("expects a row of 'tile' below ")
           << type.getDimSize(0) << ", the number of its rows, but got "
           << getRow();
  // extract_row_c2
  auto want = VectorType::get({type.getDimSize(1)}, type.getElementType());
  if (getResult().getType() != want)
    return emitOpError("expects the result to be ")
           << want << ", one row of 'tile', but got " << getResult().getType();
  return success();
}

/// One row and one column per row of `tile`.
static VectorType squareOf(VectorType tile) {
  int64_t tokens = tile.getDimSize(0);
  return VectorType::get({tokens, tokens}, tile.getElementType());
}

LogicalResult DecayMatrixOp::verify() {
  // decay_matrix_c1
  VectorType want = squareOf(getLogDecay().getType());
  if (getResult().getType() != want)
    return emitOpError("expects the result to be ")
           << want << ", set by 'log_decay', but got " << getResult().getType();
  return success();
}

LogicalResult DecayScoresOp::verify() {
  // decay_scores_c2
  VectorType want = squareOf(getKey().getType());
  if (getKeyScores().getType() != want)
    return emitOpError("expects the results to be ")
           << want << ", set by the rows of 'key', but got "
           << getKeyScores().getType();
  return success();
}

LogicalResult DecayOperandsOp::verify() {
  // decay_operands_c1
  VectorType type = getQuery().getType();
  if (type.getDimSize(0) % block != 0 || type.getDimSize(1) % block != 0)
    return emitOpError("expects 'query' to have a multiple of ")
           << block << " rows and columns, but got " << type;
  // decay_operands_c2
  Type f32 = getLogDecay().getType().getElementType();
  const int64_t tokens = type.getDimSize(0);
  auto square = VectorType::get({tokens, tokens}, f32);
  if (getKeyScores().getType() != square)
    return emitOpError("expects the scores to be ")
           << square << ", set by the rows of 'query', but got "
           << getKeyScores().getType();
  auto row = VectorType::get({type.getDimSize(1)}, f32);
  if (getEnd().getType() != row)
    return emitOpError("expects 'end' to be ")
           << row << ", one row of 'log_decay', but got " << getEnd().getType();
  return success();
}
