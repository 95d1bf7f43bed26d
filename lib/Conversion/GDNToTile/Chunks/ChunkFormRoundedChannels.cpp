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
#include "Chunks/ChunkForm.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

using Rows = SmallVector<Value>;

static Value product(OpBuilder &b, Location loc, Value lhs, Value rhs,
                     Value acc = {}, bool transposeLhs = false) {
  auto left = cast<VectorType>(lhs.getType());
  auto right = cast<VectorType>(rhs.getType());
  auto type = VectorType::get(
      {left.getDimSize(transposeLhs ? 1 : 0), right.getDimSize(1)},
      b.getF32Type());
  return tile::MatmulOp::create(b, loc, type, lhs, rhs, acc, transposeLhs);
}

/// Each row of `tile` times its element of `factors`.
static Value scaleRows(OpBuilder &b, Location loc, Value tile, Value factors) {
  return mapRows(b, loc, {tile, factors}, {tile.getType()},
                 [&](OpBuilder &b, ValueRange in) -> Rows {
                   Value row = vector::BroadcastOp::create(
                       b, loc, in[0].getType(), in[1]);
                   return {arith::MulFOp::create(b, loc, in[0], row)};
                 })[0];
}

ChannelChunkTiles gdn::emitRoundedChannelIntraChunk(OpBuilder &b, Location loc,
                                                    const Chunk &chunk,
                                                    const ChunkTypes &types) {
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
  auto inner = [&](Value tile) { return castTile(b, loc, tile, types.inner); };
  Value solve = tile::TriInverseOp::create(
      b, loc, inner(scaleRows(b, loc, made.getKeyScores(), chunk.beta)));
  Value ofScores = product(b, loc, inner(made.getQueryScores()), solve);
  ofScores.getDefiningOp<tile::MatmulOp>().setLowerLhs(true);
  ChannelChunkTiles tiles;
  tiles.query = made.getFromQuery();
  tiles.key = made.getFromKey();
  tiles.toState = inner(product(b, loc, solve, made.getToEnd(), {},
                                /*transposeLhs=*/true));
  tiles.toOutput =
      inner(scaleTile(b, loc, ofScores, chunk.scale / types.valueScale));
  tiles.end = made.getEnd();
  return tiles;
}

ChunkResult gdn::emitRoundedChannelChunk(OpBuilder &b, Location loc,
                                         Value state, const Chunk &given,
                                         const ChunkTypes &types) {
  Chunk chunk = maskChunk(b, loc, given);
  ChannelChunkTiles made = emitRoundedChannelIntraChunk(b, loc, chunk, types);
  Value held = roundTile(b, loc, state, types.key);
  Value known = product(b, loc, made.key, held);
  Value error = mapRows(
      b, loc,
      {scaleTile(b, loc, chunk.value, types.valueScale), known, chunk.beta},
      {known.getType()}, [&](OpBuilder &b, ValueRange in) -> Rows {
        Value left = arith::SubFOp::create(b, loc, in[0], in[1]);
        Value strength =
            vector::BroadcastOp::create(b, loc, left.getType(), in[2]);
        return {arith::MulFOp::create(b, loc, left, strength)};
      })[0];
  error = castTile(b, loc, error, types.inner);
  Value fromState = scaleTile(b, loc, product(b, loc, made.query, held),
                              chunk.scale / types.valueScale);
  Value output = product(b, loc, made.toOutput, error, fromState);
  output.getDefiningOp<tile::MatmulOp>().setLowerLhs(true);
  Value decayed = scaleRows(b, loc, state, made.end);
  Value next = product(b, loc, made.toState, error, decayed,
                       /*transposeLhs=*/true);
  return {next, output};
}
