// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops of GPUDecayOps.td; (Cn) are the constraints listed
// there.
#include "gdn/Dialect/GPU/IR/GPU.h"

using namespace mlir;
using namespace gdn::gpu;

SharedType DecayOperandsOp::getTileType(FragmentType logDecay) {
  auto element = Float16Type::get(logDecay.getContext());
  return SharedType::get(VectorType::get(logDecay.getShape(), element),
                         /*swizzled=*/true);
}

int64_t DecayOperandsOp::countSumRows(int64_t warps) {
  const int64_t narrow = 2 * warps + warps * (warps - 1) / 2;
  return warps + (narrow + 1) / 2;
}

SharedType DecayOperandsOp::getSumsType(FragmentType logDecay) {
  int64_t rows = countSumRows(logDecay.getRows().getWarps());
  return SharedType::get(VectorType::get({rows, logDecay.getDimSize(1)},
                                         logDecay.getElementType()),
                         /*swizzled=*/false);
}

FragmentType DecayOperandsOp::getScoresType(FragmentType logDecay) {
  int64_t tokens = logDecay.getDimSize(0);
  return FragmentType::get(
      VectorType::get({tokens, tokens}, logDecay.getElementType()),
      RowsAttr::get(logDecay.getContext(), logDecay.getRows().getWarps(),
                    /*lanes=*/4, /*vector=*/2));
}

RowsAttr DecayOperandsOp::getLogRows(VectorType logDecay, int64_t warps) {
  const int64_t pieces = logDecay.getDimSize(1) / 4;
  return RowsAttr::get(logDecay.getContext(), warps,
                       std::min(pieces & -pieces, warpThreads), /*vector=*/4);
}

LogicalResult DecayOperandsOp::verify() {
  // decay_operands_c1
  FragmentType decay = getLogDecay().getType();
  RowsAttr rows = decay.getRows();
  if (decay.getRank() != 2 || !decay.getElementType().isF32() ||
      decay.getDimSize(0) != block * rows.getWarps() ||
      decay.getDimSize(1) % block != 0 ||
      rows != getLogRows(decay.getTile(), rows.getWarps()))
    return emitOpError("expects 'log_decay' of f32 with 16 rows per warp and a "
                       "multiple of 16 columns, four side by side for a lane, "
                       "but got ")
           << decay;
  if (getQueryScores().getType() != getScoresType(decay))
    return emitOpError("expects the results to be ")
           << getScoresType(decay) << ", but got "
           << getQueryScores().getType();
  // decay_operands_c2
  SharedType tile = getTileType(decay), query = getQuery().getType();
  if (getToEnd().getType() != tile)
    return emitOpError("expects 'to_end' to be ")
           << tile << ", but got " << getToEnd().getType();
  if (query.getShape() != tile.getShape() || !query.getSwizzled() ||
      !(query.getElementType().isF16() || query.getElementType().isBF16()))
    return emitOpError("expects 'query' to be ")
           << tile << ", or of bf16, but got " << query;
  // decay_operands_c3
  if (getSums().getType() != getSumsType(decay))
    return emitOpError("expects 'sums' to be ")
           << getSumsType(decay) << ", but got " << getSums().getType();
  auto row = SharedType::get(
      VectorType::get({decay.getDimSize(1)}, decay.getElementType()),
      /*swizzled=*/false);
  if (getEnd().getType() != row)
    return emitOpError("expects 'end' to be ")
           << row << ", but got " << getEnd().getType();
  // decay_operands_c4
  return verifyOutsideWarps(*this);
}
