// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form of the gated delta rule. With G the running sum of the log
// decay within the chunk, M the state before it (S = M^T is what is kept), and
// everything below per value head:
//
//   A = (1 + tril(beta K K^T, -1))^-1          gate-free inverse
//   E[i,j] = exp(g_(j+1) + .. + g_i), j <= i   decay from token j to token i
//   T = (E . A) diag(beta)
//   W = V - e^G K S                            what the state does not know yet
//   X = T W                                    what each token really writes
//   O = scale e^G (Q S) + P X,   P = scale (E . Q K^T)
//   S <- e^(G_last) S + K^T (e^(G_last - G) X)
//
// The inverse without gates is exact: decay is a diagonal similarity of the
// triangle, so it is applied to the inverse afterwards. No factor exceeds 1,
// there is no division by a decay, and no decay comes from a difference of
// running sums, which is inexact once one token has forgotten nearly all.
// Rows past the valid ones have k = 0, beta = 0 and g = 0: they write nothing
// and G_last is the G of the last valid token.
//
// Where `ChunkTypes` rounds operands, ChunkFormRounded.cpp has the products in
// another order.
#include "Chunks/ChunkForm.h"
#include "Chunks/ChunkProducts.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

namespace {
class ChunkEmitter : private ChunkProducts {
public:
  using ChunkProducts::ChunkProducts;

  ChunkResult emit(Value state, const Chunk &chunk);
};
} // namespace

Value gdn::maskRows(OpBuilder &b, Location loc, Value tile, Value valid) {
  auto map = tile::MapRowsOp::create(b, loc, tile.getType(), tile);
  Type row = tile::getRowType(cast<VectorType>(tile.getType()));
  OpBuilder::InsertionGuard guard(b);
  Block *body =
      b.createBlock(&map.getBody(), {}, {b.getIndexType(), row}, {loc, loc});
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       body->getArgument(0), valid);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(row));
  Value kept =
      arith::SelectOp::create(b, loc, inside, body->getArgument(1), zero);
  tile::YieldOp::create(b, loc, kept);
  return map.getResult(0);
}

Chunk gdn::maskChunk(OpBuilder &b, Location loc, const Chunk &chunk) {
  auto mask = [&](Value tile) { return maskRows(b, loc, tile, chunk.valid); };
  return {mask(chunk.query),
          mask(chunk.key),
          mask(chunk.value),
          mask(chunk.logDecay),
          chunk.beta ? mask(chunk.beta) : Value(),
          chunk.valid,
          chunk.scale};
}

ChunkResult ChunkEmitter::emit(Value state, const Chunk &chunk) {
  auto [query, key, value, logDecay, beta, valid, scale] =
      maskChunk(b, loc, chunk);
  Value sums = tile::PrefixSumOp::create(b, loc, logDecay);
  int64_t last = typeOf(sums).getDimSize(0) - 1;

  // Scores among the tokens of the chunk.
  Value keyT = transposeTile(b, loc, key);
  auto square = VectorType::get({last + 1, last + 1}, b.getF32Type());
  Value decay = tile::DecayMatrixOp::create(b, loc, square, logDecay);
  Value keyScores = lowerResult(matmul(key, keyT));
  Value triangle = mapRows(b, loc, {keyScores, beta}, {keyScores.getType()},
                           [&](OpBuilder &b, ValueRange in) -> Rows {
                             Value row = vector::BroadcastOp::create(
                                 b, loc, in[0].getType(), in[1]);
                             return {arith::MulFOp::create(b, loc, in[0], row)};
                           })[0];
  Value inverse = tile::TriInverseOp::create(b, loc, triangle);
  // Column j carries the strength of token j.
  Value solve = mapRows(b, loc, {inverse, decay}, {decay.getType()},
                        [&](OpBuilder &b, ValueRange in) -> Rows {
                          Value decayed =
                              arith::MulFOp::create(b, loc, in[0], in[1]);
                          return {arith::MulFOp::create(b, loc, decayed, beta)};
                        })[0];
  Value queryScores = lowerResult(matmul(query, keyT));
  Value scores = decayScores(queryScores, decay, scale);

  // What the tokens write, given what the state already holds.
  Value error =
      mapRows(b, loc, {value, matmul(key, state), sums}, {value.getType()},
              [&](OpBuilder &b, ValueRange in) -> Rows {
                Value factor = vector::BroadcastOp::create(
                    b, loc, in[0].getType(),
                    math::ExpOp::create(b, loc, in[2]).getResult());
                Value decayed = arith::MulFOp::create(b, loc, in[1], factor);
                return {arith::SubFOp::create(b, loc, in[0], decayed)};
              })[0];
  Value written = lowerLhs(matmul(solve, error));

  Value fromState = scaleByExp(matmul(query, state), sums, scale);
  Value output = lowerLhs(matmul(scores, written, fromState));

  // The state after the chunk.
  Value toEnd = tile::SuffixSumOp::create(b, loc, logDecay);
  Value decayedState = decayState(state, sums);
  Value next = matmul(key, scaleByExp(written, toEnd), decayedState,
                      /*transposeLhs=*/true);
  return {next, output};
}

ChunkResult gdn::emitChunk(OpBuilder &builder, Location loc, Value state,
                           const Chunk &chunk, const ChunkTypes &types) {
  if (!types.isExact())
    return emitRoundedChunk(builder, loc, state, chunk, types);
  return ChunkEmitter(builder, loc).emit(state, chunk);
}

ChunkResult gdn::emitChunkOfRule(OpBuilder &builder, Location loc, Value state,
                                 const Chunk &chunk, const ChunkTypes &types) {
  if (cast<VectorType>(chunk.logDecay.getType()).getRank() == 2)
    return types.isExact() || !chunk.beta
               ? emitChannelChunk(builder, loc, state, chunk)
               : emitRoundedChannelChunk(builder, loc, state, chunk, types);
  if (!chunk.beta)
    return emitLinearChunk(builder, loc, state, chunk);
  return emitChunk(builder, loc, state, chunk, types);
}
