// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form with a decay per channel for products with rounded operands.
// ChunkFormPerChannel.cpp has the form itself, ChunkFormRounded.cpp says why
// products are bracketed like this. With Qf, Kf, Ke, P and L as
// gdn_tile.decay_operands defines them, per value head:
//
//   T = (1 + tril(beta L, -1))^-1
//   Y = T^T Ke            Z = scale P T
//   W = beta (V - Kf S)
//   O = scale (Qf S) + Z W
//   S <- e^(G_last) S + Y^T W
//
// Decay is no similarity of the triangle here, so T has it.
//
// Where a block prepares the chunks of its recurrence, T is apart, and has the
// strengths of its columns' tokens:
//
//   X = T diag(beta) (V - Kf S)
//   O = scale (Qf S) + scale P X
//   S <- e^(G_last) S + Ke^T X
#include "Chunks/ChunkForm.h"
#include "Chunks/ChunkProducts.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

namespace {
class RoundedChannels : private ChunkProducts {
public:
  RoundedChannels(OpBuilder &b, Location loc, const ChunkTypes &types)
      : ChunkProducts(b, loc), types(types) {}

  StoredChunk emit(const Chunk &chunk, bool apart);

private:
  Value inner(Value tile) { return castTile(b, loc, tile, types.inner); }

  const ChunkTypes &types;
};
} // namespace

StoredChunk RoundedChannels::emit(const Chunk &chunk, bool apart) {
  auto log = cast<VectorType>(chunk.logDecay.getType());
  const int64_t tokens = log.getDimSize(0), channels = log.getDimSize(1);
  // As they lie in memory, if they do.
  Value query = narrowTile(b, loc, chunk.query, types.key);
  Value key = narrowTile(b, loc, chunk.key, types.key);
  if (query.getType() != key.getType()) {
    query = castTile(b, loc, chunk.query, types.key);
    key = castTile(b, loc, chunk.key, types.key);
  }
  auto faded = VectorType::get({tokens, channels}, types.key);
  auto square = VectorType::get({tokens, tokens}, b.getF32Type());
  auto row = VectorType::get({channels}, b.getF32Type());
  auto made =
      tile::DecayOperandsOp::create(b, loc, square, square, faded, faded, faded,
                                    row, query, key, chunk.logDecay);
  Value solve = tile::TriInverseOp::create(
      b, loc, inner(scaleRows(made.getKeyScores(), chunk.beta)));
  StoredChunk stored;
  stored.query = {made.getFromQuery()};
  stored.key = {made.getFromKey()};
  stored.end = made.getEnd();
  stored.scale = chunk.scale;
  const double outputScale = chunk.scale / types.valueScale;
  if (apart) {
    Value wide = castTile(b, loc, solve, b.getF32Type());
    Value own = inner(mapRows(
        b, loc, wide, {square}, [&](OpBuilder &, ValueRange in) -> Rows {
          return {arith::MulFOp::create(b, loc, in[0], chunk.beta)};
        })[0]);
    Value scores = inner(scaleTile(b, loc, made.getQueryScores(), outputScale));
    stored.toState = {made.getToEnd()};
    stored.solve = transposeTile(b, loc, own);
    stored.toOutput = {transposeTile(b, loc, scores)};
    return stored;
  }
  Value ofScores = lowerLhs(matmul(inner(made.getQueryScores()), solve));
  stored.toState = {inner(matmul(solve, made.getToEnd(), {},
                                 /*transposeLhs=*/true))};
  stored.toOutput = {inner(scaleTile(b, loc, ofScores, outputScale))};
  stored.strength = scaleTile(b, loc, chunk.beta, types.valueScale);
  return stored;
}

StoredChunk gdn::emitRoundedChannelIntraChunk(OpBuilder &builder, Location loc,
                                              const Chunk &chunk,
                                              const ChunkTypes &types,
                                              bool apart) {
  return RoundedChannels(builder, loc, types).emit(chunk, apart);
}

ChunkResult gdn::emitRoundedChannelChunk(OpBuilder &b, Location loc,
                                         Value state, const Chunk &given,
                                         const ChunkTypes &types) {
  Chunk chunk = maskChunk(b, loc, given);
  StoredChunk stored =
      emitRoundedChannelIntraChunk(b, loc, chunk, types, /*apart=*/false);
  stored.value = {chunk.value};
  auto [next, output] =
      emitStateRowsChunk(b, loc, transposeTile(b, loc, state), stored, types);
  return {transposeTile(b, loc, next), output};
}
