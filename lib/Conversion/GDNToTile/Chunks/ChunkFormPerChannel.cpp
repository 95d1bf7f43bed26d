// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form of the gated delta rule with a decay per channel of the key
// (KDA). With g the log decays (C x dk), G their running sums, and S the state
// before the chunk (dk x dv; channel d decays its row d), per value head:
//
//   e[i,j,d] = exp(g[j+1,d] + .. + g[i,d])     decay from token j to token i
//   P[i,j] = sum_d q[i,d] k[j,d] e[i,j,d]      j <= i, else 0
//   L[i,j] = beta_i sum_d k[i,d] k[j,d] e[i,j,d]
//   X = (1 + tril(L, -1))^-1 (beta (V - (K . e^G) S))
//   O = (Q . e^G) S + P X
//   S <- e^(G_last) S + (K . e^(G_last - G))^T X
//
// Without a delta term X = V. Here decay is no similarity of the triangle, so
// it is part of what is inverted. No factor exceeds 1: decays are taken from
// the start of the chunk, to its end, or between two of its tokens, always
// forward in time.
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
class ChannelChunkEmitter : private ChunkProducts {
public:
  using ChunkProducts::ChunkProducts;

  ChunkResult emit(Value state, const Chunk &chunk);
};
} // namespace

ChunkResult ChannelChunkEmitter::emit(Value state, const Chunk &chunk) {
  auto [rawQuery, key, value, logDecay, beta, valid, scale] =
      maskChunk(b, loc, chunk);
  Value query = scaleTile(b, loc, rawQuery, scale);
  Value sums = tile::PrefixSumOp::create(b, loc, logDecay);
  Value rest = tile::SuffixSumOp::create(b, loc, logDecay);
  const int64_t tokens = typeOf(sums).getDimSize(0);

  // Scores among the tokens of the chunk.
  auto square = VectorType::get({tokens, tokens}, b.getF32Type());
  auto scores =
      tile::DecayScoresOp::create(b, loc, square, square, query, key, logDecay);

  // What the tokens write, given what is left of the state.
  Rows faded = beta ? fade({query, key}, sums) : fade(query, sums);
  Value written = value;
  if (beta) {
    Value inverse = tile::TriInverseOp::create(
        b, loc, scaleRows(scores.getKeyScores(), beta));
    Value error =
        mapRows(b, loc, {value, matmul(faded[1], state), beta},
                {value.getType()}, [&](OpBuilder &b, ValueRange in) -> Rows {
                  Value rest = arith::SubFOp::create(b, loc, in[0], in[1]);
                  Value strength = vector::BroadcastOp::create(
                      b, loc, rest.getType(), in[2]);
                  return {arith::MulFOp::create(b, loc, rest, strength)};
                })[0];
    written = lowerLhs(matmul(inverse, error));
  }
  Value output = lowerLhs(
      matmul(scores.getQueryScores(), written, matmul(faded[0], state)));

  // The state after the chunk.
  Value total = lastRow(sums);
  Value toEnd = fade(key, rest)[0];
  Value next = matmul(toEnd, written, fade(state, total)[0],
                      /*transposeLhs=*/true);
  return {next, output};
}

ChunkResult gdn::emitChannelChunk(OpBuilder &builder, Location loc, Value state,
                                  const Chunk &chunk) {
  return ChannelChunkEmitter(builder, loc).emit(state, chunk);
}
