// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form of gated linear attention with a decay per head: nothing that
// is written depends on the state, so there is no triangle to solve. With the
// names of ChunkForm.cpp, and S the state before the chunk (dk x dv):
//
//   P = scale (E . Q K^T)                      j <= i, else 0
//   O = scale e^G (Q S) + P V
//   S <- e^(G_last) S + K^T (e^(G_last - G) V)
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

  ChunkResult emit(Value state, const Chunk &chunk);
};
} // namespace

ChunkResult LinearChunkEmitter::emit(Value state, const Chunk &chunk) {
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

ChunkResult gdn::emitLinearChunk(OpBuilder &builder, Location loc, Value state,
                                 const Chunk &chunk) {
  return LinearChunkEmitter(builder, loc)
      .emit(state, maskChunk(builder, loc, chunk));
}
