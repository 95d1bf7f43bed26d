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

  ChannelChunkTiles intraChunk(const Chunk &chunk, bool apart);
  ChunkResult emit(Value state, const Chunk &given);

private:
  Value inner(Value tile) { return castTile(b, loc, tile, types.inner); }

  const ChunkTypes &types;
};
} // namespace

ChannelChunkTiles RoundedChannels::intraChunk(const Chunk &chunk, bool apart) {
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
  ChannelChunkTiles tiles;
  tiles.query = made.getFromQuery();
  tiles.key = made.getFromKey();
  tiles.end = made.getEnd();
  if (apart) {
    Value wide = castTile(b, loc, solve, b.getF32Type());
    tiles.solve = inner(mapRows(
        b, loc, wide, {square}, [&](OpBuilder &, ValueRange in) -> Rows {
          return {arith::MulFOp::create(b, loc, in[0], chunk.beta)};
        })[0]);
    tiles.toOutput = inner(scaleTile(b, loc, made.getQueryScores(),
                                     chunk.scale / types.valueScale));
    tiles.toState = made.getToEnd();
    return tiles;
  }
  Value ofScores = lowerLhs(matmul(inner(made.getQueryScores()), solve));
  tiles.toState = inner(matmul(solve, made.getToEnd(), {},
                               /*transposeLhs=*/true));
  tiles.toOutput =
      inner(scaleTile(b, loc, ofScores, chunk.scale / types.valueScale));
  return tiles;
}

ChunkResult RoundedChannels::emit(Value state, const Chunk &given) {
  Chunk chunk = maskChunk(b, loc, given);
  ChannelChunkTiles made = intraChunk(chunk, /*apart=*/false);
  Value held = roundTile(b, loc, state, types.key);
  Value known = matmul(made.key, held);
  Value error = mapRows(
      b, loc,
      {scaleTile(b, loc, chunk.value, types.valueScale), known, chunk.beta},
      {known.getType()}, [&](OpBuilder &b, ValueRange in) -> Rows {
        Value left = arith::SubFOp::create(b, loc, in[0], in[1]);
        Value strength =
            vector::BroadcastOp::create(b, loc, left.getType(), in[2]);
        return {arith::MulFOp::create(b, loc, left, strength)};
      })[0];
  error = inner(error);
  Value fromState = scaleTile(b, loc, matmul(made.query, held),
                              chunk.scale / types.valueScale);
  Value output = lowerLhs(matmul(made.toOutput, error, fromState));
  Value decayed = scaleRows(state, made.end);
  Value next = matmul(made.toState, error, decayed,
                      /*transposeLhs=*/true);
  return {next, output};
}

ChannelChunkTiles gdn::emitRoundedChannelIntraChunk(OpBuilder &builder,
                                                    Location loc,
                                                    const Chunk &chunk,
                                                    const ChunkTypes &types,
                                                    bool apart) {
  return RoundedChannels(builder, loc, types).intraChunk(chunk, apart);
}

ChunkResult gdn::emitRoundedChannelChunk(OpBuilder &builder, Location loc,
                                         Value state, const Chunk &chunk,
                                         const ChunkTypes &types) {
  return RoundedChannels(builder, loc, types).emit(state, chunk);
}
