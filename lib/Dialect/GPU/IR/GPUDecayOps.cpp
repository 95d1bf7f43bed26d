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

/// Checks the type of the operand `name`.
static LogicalResult verifyType(Operation *op, StringRef name, Value operand,
                                Type expected) {
  if (operand.getType() == expected)
    return success();
  return op->emitOpError("expects '")
         << name << "' to be " << expected << ", but got " << operand.getType();
}

/// Checks `query`, which may be of bf16, too.
static LogicalResult verifyInput(Operation *op, SharedType query,
                                 SharedType expected) {
  if (query.getShape() == expected.getShape() && query.getSwizzled() &&
      (query.getElementType().isF16() || query.getElementType().isBF16()))
    return success();
  return op->emitOpError("expects 'query' to be ")
         << expected << ", or of bf16, but got " << query;
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
  if (failed(verifyType(*this, "to_end", getToEnd(), getTileType(decay))) ||
      failed(verifyInput(*this, getQuery().getType(), getTileType(decay))))
    return failure();
  // decay_operands_c3
  auto row = SharedType::get(
      VectorType::get({decay.getDimSize(1)}, decay.getElementType()),
      /*swizzled=*/false);
  if (failed(verifyType(*this, "sums", getSums(), getSumsType(decay))) ||
      failed(verifyType(*this, "end", getEnd(), row)))
    return failure();
  // decay_operands_c4
  return verifyOutsideWarps(*this);
}

//===----------------------------------------------------------------------===//
// One chunk by roles
//===----------------------------------------------------------------------===//

namespace {
/// Types of tiles of a chunk, by their names.
struct ChunkTiles {
  explicit ChunkTiles(MLIRContext *context) : b(context) {}

  static constexpr int64_t chunk = DecayWithinOp::tokens,
                           channels = DecayWithinOp::channels;
  Builder b;
  Type f16 = b.getF16Type(), f32 = b.getF32Type();
  SharedType query = get({chunk, channels}, f16, true),
             logDecay = get({chunk, channels}, f32, true),
             narrowLogs = get({chunk, channels}, f16, true, /*apart=*/2),
             firstKeys = get({DecayWithinOp::block, channels}, f16, true),
             decays = get({chunk / DecayWithinOp::block, channels}, f32, false),
             norms = get({2, chunk}, f32, false),
             products = get({chunk, 2 * chunk}, f16, true),
             end = get({channels}, f32, false);
  FragmentType beta = FragmentType::get(
      VectorType::get({chunk}, f32),
      PerRowAttr::get(b.getContext(), RowsAttr::get(b.getContext(), 1, 1, 1)));

private:
  static SharedType get(ArrayRef<int64_t> shape, Type element, bool swizzled,
                        int64_t apart = 1) {
    return SharedType::get(VectorType::get(shape, element), swizzled, apart);
  }
};
} // namespace

/// Checks that `count` warps run `op`.
static LogicalResult verifyWarpsOf(Operation *op, int64_t count) {
  if (op->getParentOfType<EachWarpOp>()) {
    WarpsOp role = getRole(op);
    return role && role.getInTurns() > 1 && role.getTurnWarps() == count
               ? success()
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

LogicalResult DecayWithinOp::verify() {
  const ChunkTiles tiles(getContext());
  // decay_within_c1, decay_within_c2
  if (failed(verifyInput(*this, getQuery().getType(), tiles.query)))
    return failure();
  SharedType logs = getLogDecay().getType();
  if (logs != tiles.logDecay && logs != tiles.narrowLogs)
    return emitOpError("expects 'log_decay' to be ")
           << tiles.logDecay << " or " << tiles.narrowLogs << ", but got "
           << logs;
  if (failed(
          verifyType(*this, "first_keys", getFirstKeys(), tiles.firstKeys)) ||
      failed(verifyType(*this, "decays", getDecays(), tiles.decays)) ||
      (getNorms() &&
       failed(verifyType(*this, "norms", getNorms(), tiles.norms))))
    return failure();
  // decay_within_c3
  return verifyWarpsOf(*this, 4);
}

LogicalResult DecayBetweenOp::verify() {
  const ChunkTiles tiles(getContext());
  // decay_between_c1, decay_between_c2
  if (failed(verifyType(*this, "query", getQuery(), tiles.query)) ||
      failed(verifyType(*this, "log_decay", getLogDecay(), tiles.logDecay)) ||
      failed(
          verifyType(*this, "first_keys", getFirstKeys(), tiles.firstKeys)) ||
      failed(verifyType(*this, "decays", getDecays(), tiles.decays)) ||
      failed(verifyType(*this, "products", getProducts(), tiles.products)) ||
      failed(verifyType(*this, "end", getEnd(), tiles.end)))
    return failure();
  // decay_between_c3
  return verifyWarpsOf(*this, 2);
}

LogicalResult BlockInversesOp::verify() {
  const ChunkTiles tiles(getContext());
  // block_inverses_c1, block_inverses_c2
  if (failed(verifyType(*this, "log_decay", getLogDecay(), tiles.logDecay)) ||
      failed(verifyType(*this, "products", getProducts(), tiles.products)) ||
      failed(verifyType(*this, "beta", getBeta(), tiles.beta)))
    return failure();
  // block_inverses_c3
  return verifyWarpsOf(*this, 1);
}

LogicalResult JoinInversesOp::verify() {
  const ChunkTiles tiles(getContext());
  // join_inverses_c1
  if (failed(verifyType(*this, "log_decay", getLogDecay(), tiles.logDecay)) ||
      failed(verifyType(*this, "products", getProducts(), tiles.products)))
    return failure();
  // join_inverses_c2
  return verifyWarpsOf(*this, 1);
}
