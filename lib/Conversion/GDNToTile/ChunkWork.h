// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gated delta rule over one chunk of tokens as products of tiles.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHUNKWORK_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHUNKWORK_H

#include "ChunkTypes.h"

#include "mlir/IR/Builders.h"

namespace gdn {

/// f32 tiles of one chunk of `C` tokens and one value head. Rows past the
/// valid ones may hold anything.
struct Chunk {
  mlir::Value query;    // C x dk
  mlir::Value key;      // C x dk
  mlir::Value value;    // C x dv
  mlir::Value logDecay; // C, or C x dk for a decay per channel
  mlir::Value beta;     // C
  mlir::Value valid;    // tokens that count
  double scale;         // of the queries
};

/// The chunk with zeros in the rows past the valid ones: they write nothing
/// and decay nothing.
Chunk maskChunk(mlir::OpBuilder &builder, mlir::Location loc,
                const Chunk &chunk);

/// The state after the chunk, and its output `C x dv`.
struct ChunkResult {
  mlir::Value state, output;
};

/// Emits the chunk form with operands rounded to `types`. `state` is the
/// transpose of the state, `dk x dv`, so that no product needs a packed
/// operand, times `types.valueScale`; so is the state of the result. The output
/// is as it is.
ChunkResult emitChunk(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value state, const Chunk &chunk,
                      const ChunkTypes &types);

/// The same with a decay per channel.
ChunkResult emitChannelChunk(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value state, const Chunk &chunk);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHUNKWORK_H
