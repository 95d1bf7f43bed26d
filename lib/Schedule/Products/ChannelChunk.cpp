// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of a chunk with a decay per channel that roles of their own make.
// They are found by the values that go from one to the next, and by what maps
// do with them: the roles make the same, by other ops.
#include "Products/ChannelChunk.h"

#include "Products/RowFactors.h"

using namespace mlir;
using namespace gdn;

/// The only user of `value`, if it is such an op.
template <typename Op> static Op getOnlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
}

/// Log decays as they are in memory; null if they are no tile of it.
static tile::LoadOp findLogs(Value logs) {
  auto map = logs.getDefiningOp<tile::MapRowsOp>();
  if (!map)
    return logs.getDefiningOp<tile::LoadOp>();
  auto factors = getFactors(map);
  const bool isNarrow = vectorType(map.getInputs()[0]).getElementType().isF16();
  if (!isNarrow || !factors ||
      getNumber(*factors) !=
          double(1 / tile::DecayOperandsOp::scaleOfNarrowLogs))
    return {};
  return map.getInputs()[0].getDefiningOp<tile::LoadOp>();
}

/// Queries or keys as they are in memory, and what their rows are multiplied
/// with, if they are; null if they are no tile of it.
static std::pair<tile::LoadOp, tile::LoadOp> findRows(Value rows) {
  auto map = rows.getDefiningOp<tile::MapRowsOp>();
  if (!map)
    return {rows.getDefiningOp<tile::LoadOp>(), {}};
  auto factors = getFactors(map);
  if (!factors || factors->size() != 1 || !factors->front().isPerRow ||
      !isRounded(map))
    return {};
  auto norm = factors->front().factor.getDefiningOp<tile::LoadOp>();
  if (!norm)
    return {};
  return {map.getInputs()[0].getDefiningOp<tile::LoadOp>(), norm};
}

/// Says that a chunk has no roles since `map` is not what they make.
static std::nullopt_t refuse(tile::MapRowsOp map, StringRef expected) {
  map.emitRemark() << "a chunk with a decay per channel has no roles: expects "
                   << expected << ", rounded once to f16";
  return std::nullopt;
}

std::optional<ChannelChunk> ChannelChunk::find(Block &body) {
  ChannelChunk chunk;
  for (auto operands : body.getOps<tile::DecayOperandsOp>()) {
    if (chunk.operands)
      return std::nullopt;
    chunk.operands = operands;
  }
  if (!chunk.operands)
    return std::nullopt;
  tile::DecayOperandsOp operands = chunk.operands;
  std::tie(chunk.query, chunk.queryNorm) = findRows(operands.getQuery());
  std::tie(chunk.key, chunk.keyNorm) = findRows(operands.getKey());
  chunk.logDecay = findLogs(operands.getLogDecay());
  VectorType logs = vectorType(operands.getLogDecay());
  auto triangle = getOnlyUser<tile::MapRowsOp>(operands.getKeyScores());
  if (!triangle || triangle.getNumResults() != 1 || !chunk.query ||
      !chunk.key || !chunk.logDecay || !chunk.queryNorm != !chunk.keyNorm ||
      logs.getShape() != ArrayRef<int64_t>{32, 128} ||
      !isNarrow(vectorType(operands.getKey())))
    return std::nullopt;
  chunk.inverse = getOnlyUser<tile::TriInverseOp>(triangle.getResult(0));
  if (!chunk.inverse)
    return std::nullopt;
  auto solve = getOnlyUser<tile::MapRowsOp>(chunk.inverse.getResult());
  auto scores = getOnlyUser<tile::MapRowsOp>(operands.getQueryScores());
  if (!solve || !scores)
    return std::nullopt;
  // Rows of scores times their strengths, the inverse, its columns times
  // theirs.
  auto factors = getFactors(triangle);
  if (!factors || !isRounded(triangle) || factors->size() != 1 ||
      !factors->front().isPerRow ||
      triangle.getInputs()[0] != operands.getKeyScores())
    return refuse(triangle, "rows of the scores of keys times strengths");
  Value strength = factors->front().factor;
  chunk.strength = strength.getDefiningOp<tile::LoadOp>();
  if (!chunk.strength)
    return std::nullopt;
  factors = getFactors(solve);
  if (!factors || !isRounded(solve) ||
      *factors != SmallVector<RowFactor, 1>{{strength, false}} ||
      solve.getInputs()[0] != chunk.inverse.getResult())
    return refuse(solve, "columns of the inverse times the same strengths");
  factors = getFactors(scores);
  auto scale = factors ? getNumber(*factors) : std::nullopt;
  if (!scale || !isRounded(scores) ||
      scores.getInputs()[0] != operands.getQueryScores())
    return refuse(scores, "scores of queries times a number");
  chunk.scale = *scale;
  chunk.solve = solve.getResult(0);
  chunk.scores = scores.getResult(0);
  return chunk;
}

bool ChannelChunk::contains(Operation *op) const {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return llvm::is_contained(
        {query, key, logDecay, strength, queryNorm, keyNorm}, load);
  for (Value value : op->getResults())
    if (value == solve || value == scores)
      return true;
  return op == operands || op == inverse ||
         llvm::is_contained(op->getUsers(), operands) ||
         llvm::is_contained(op->getUsers(), inverse);
}
