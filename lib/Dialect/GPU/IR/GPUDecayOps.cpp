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

//===----------------------------------------------------------------------===//
// One chunk by roles
//===----------------------------------------------------------------------===//

/// Checks the type of the operand `name`.
static LogicalResult verifyTileOf(Operation *op, StringRef name, Value tile,
                                  ArrayRef<int64_t> shape, bool isNarrow) {
  auto type = cast<SharedType>(tile.getType());
  Builder b(op->getContext());
  auto expected =
      SharedType::get(VectorType::get(shape, isNarrow ? Type(b.getF16Type())
                                                      : Type(b.getF32Type())),
                      /*swizzled=*/shape.size() == 2 && shape[0] > 2);
  if (type == expected)
    return success();
  return op->emitOpError("expects '")
         << name << "' to be " << expected << ", but got " << type;
}

/// Checks that `count` warps run `op`.
static LogicalResult verifyWarpsOf(Operation *op, int64_t count) {
  if (op->getParentOfType<EachWarpOp>()) {
    WarpsOp role = getRole(op);
    return role && role.getInTurns() && count == 1 ? success()
                                                   : verifyOutsideWarps(op);
  }
  std::optional<int64_t> warps = countWarps(op);
  if (auto around = op->getParentOfType<WarpsOp>())
    if (IntegerAttr inner = around.getCountAttr())
      warps = inner.getInt();
  if (warps == count)
    return success();
  return op->emitOpError("expects to be run by ")
         << count << (count == 1 ? " warp" : " warps") << ", but got "
         << warps.value_or(0);
}

constexpr int64_t chunk = DecayWithinOp::tokens,
                  channels = DecayWithinOp::channels;

template <typename OpTy> static LogicalResult verifyLogs(OpTy op) {
  return verifyTileOf(op, "log_decay", op.getLogDecay(), {chunk, channels},
                      /*isNarrow=*/false);
}
template <typename OpTy> static LogicalResult verifyFirstKeys(OpTy op) {
  return verifyTileOf(op, "first_keys", op.getFirstKeys(),
                      {DecayWithinOp::block, channels}, /*isNarrow=*/true);
}
template <typename OpTy> static LogicalResult verifyDecays(OpTy op) {
  return verifyTileOf(op, "decays", op.getDecays(),
                      {chunk / DecayWithinOp::block, channels},
                      /*isNarrow=*/false);
}
template <typename OpTy> static LogicalResult verifyProducts(OpTy op) {
  return verifyTileOf(op, "products", op.getProducts(), {chunk, 2 * chunk},
                      /*isNarrow=*/true);
}

LogicalResult DecayWithinOp::verify() {
  // decay_within_c1
  SharedType query = getQuery().getType();
  if (query.getShape() != ArrayRef({chunk, channels}) || !query.getSwizzled() ||
      !(query.getElementType().isF16() || query.getElementType().isBF16()))
    return emitOpError("expects 'query' to be a swizzled tile of ")
           << chunk << " x " << channels << " elements of f16 or bf16, but got "
           << query;
  if (failed(verifyLogs(*this)) || failed(verifyFirstKeys(*this)))
    return failure();
  // decay_within_c2
  if (failed(verifyDecays(*this)))
    return failure();
  // decay_within_c3
  return verifyWarpsOf(*this, 4);
}

LogicalResult DecayBetweenOp::verify() {
  // decay_between_c1
  if (failed(verifyTileOf(*this, "query", getQuery(), {chunk, channels},
                          /*isNarrow=*/true)) ||
      failed(verifyLogs(*this)) || failed(verifyFirstKeys(*this)))
    return failure();
  // decay_between_c2
  if (failed(verifyDecays(*this)) || failed(verifyProducts(*this)) ||
      failed(verifyTileOf(*this, "end", getEnd(), {channels},
                          /*isNarrow=*/false)))
    return failure();
  // decay_between_c3
  return verifyWarpsOf(*this, 2);
}

LogicalResult BlockInversesOp::verify() {
  // block_inverses_c1
  if (failed(verifyLogs(*this)) || failed(verifyProducts(*this)))
    return failure();
  // block_inverses_c2
  auto rows = RowsAttr::get(getContext(), /*warps=*/1, /*lanes=*/1,
                            /*vector=*/1);
  auto beta = FragmentType::get(
      VectorType::get({chunk}, Float32Type::get(getContext())),
      PerRowAttr::get(getContext(), rows));
  if (getBeta().getType() != beta)
    return emitOpError("expects 'beta' to be ")
           << beta << ", but got " << getBeta().getType();
  // block_inverses_c3
  return verifyWarpsOf(*this, 1);
}

LogicalResult JoinInversesOp::verify() {
  // join_inverses_c1
  if (failed(verifyLogs(*this)) || failed(verifyProducts(*this)))
    return failure();
  // join_inverses_c2
  return verifyWarpsOf(*this, 1);
}
