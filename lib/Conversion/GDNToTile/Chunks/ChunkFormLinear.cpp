// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form of gated linear attention: nothing that is written depends on
// the state, so there is no triangle to solve. With the names of ChunkForm.cpp,
// S the state before the chunk (dk x dv), and one decay for a head:
//
//   P = scale (E . Q K^T)                      j <= i, else 0
//   O = scale e^G (Q S) + P V
//   S <- e^(G_last) S + K^T (e^(G_last - G) V)
//
// and with a decay per channel, with e[i,j,d] of ChunkFormPerChannel.cpp:
//
//   P[i,j] = scale sum_d q[i,d] k[j,d] e[i,j,d]
//   O = (scale Q . e^G) S + P V
//   S <- e^(G_last) S + (K . e^(G_last - G))^T V
//
// All decays go forward in time, so no factor exceeds 1 and nothing is divided.
#include "Chunks/ChunkForm.h"
#include "Chunks/ChunkProducts.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace gdn;

namespace {
class LinearChunkEmitter : private ChunkProducts {
public:
  using ChunkProducts::ChunkProducts;

  ChunkResult emitPerHead(Value state, const Chunk &chunk);
  ChunkResult emitPerChannel(Value state, const Chunk &chunk);
};
} // namespace

ChunkResult LinearChunkEmitter::emitPerHead(Value state, const Chunk &chunk) {
  Value sums = tile::PrefixSumOp::create(b, loc, chunk.logDecay);
  const int64_t tokens = typeOf(sums).getDimSize(0);
  auto square = VectorType::get({tokens, tokens}, b.getF32Type());
  Value decay = tile::DecayMatrixOp::create(b, loc, square, chunk.logDecay);
  Value keyT = transposeTile(b, loc, chunk.key);
  Value products = lowerResult(matmul(chunk.query, keyT));
  Value scores = decayScores(products, decay, chunk.scale);
  Value fromState = scaleByExp(matmul(chunk.query, state), sums, chunk.scale);
  Value output = lowerLhs(matmul(scores, chunk.value, fromState));

  Value toEnd = tile::SuffixSumOp::create(b, loc, chunk.logDecay);
  Value written = scaleByExp(chunk.value, toEnd);
  Value next = matmul(chunk.key, written, decayState(state, sums),
                      /*transposeLhs=*/true);
  return {next, output};
}

ChunkResult LinearChunkEmitter::emitPerChannel(Value state,
                                               const Chunk &chunk) {
  Value query = scaleTile(b, loc, chunk.query, chunk.scale);
  Value sums = tile::PrefixSumOp::create(b, loc, chunk.logDecay);
  const int64_t tokens = typeOf(sums).getDimSize(0);
  auto square = VectorType::get({tokens, tokens}, b.getF32Type());
  // The scores of the keys are not used.
  auto scores = tile::DecayScoresOp::create(b, loc, square, square, query,
                                            chunk.key, chunk.logDecay);
  Value fromState = matmul(fade(query, sums)[0], state);
  Value output =
      lowerLhs(matmul(scores.getQueryScores(), chunk.value, fromState));

  Value rest = tile::SuffixSumOp::create(b, loc, chunk.logDecay);
  Value toEnd = fade(chunk.key, rest)[0];
  Value next = matmul(toEnd, chunk.value, fade(state, lastRow(sums))[0],
                      /*transposeLhs=*/true);
  return {next, output};
}

ChunkResult gdn::emitLinearChunk(OpBuilder &builder, Location loc, Value state,
                                 const Chunk &chunk) {
  Chunk masked = maskChunk(builder, loc, chunk);
  LinearChunkEmitter emitter(builder, loc);
  bool perChannel = cast<VectorType>(chunk.logDecay.getType()).getRank() == 2;
  return perChannel ? emitter.emitPerChannel(state, masked)
                    : emitter.emitPerHead(state, masked);
}
