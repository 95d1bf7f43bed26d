// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rule over one chunk of tokens as products of tiles.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_CHUNKFORM_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_CHUNKFORM_H

#include "Program/OperandTypes.h"

#include "mlir/IR/Builders.h"

namespace gdn {

/// f32 tiles of one chunk of `C` tokens and one value head. Rows past the
/// valid ones may hold anything.
struct Chunk {
  mlir::Value query;    // C x dk
  mlir::Value key;      // C x dk
  mlir::Value value;    // C x dv
  mlir::Value logDecay; // C, or C x dk for a decay per channel
  mlir::Value beta;     // C, or null for a rule without a delta term
  mlir::Value valid;    // tokens that count
  double scale;         // of the queries
};

/// `tile` with zeros in the rows from `valid` on.
mlir::Value maskRows(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value tile, mlir::Value valid);

/// The chunk with zeros in the rows past the valid ones: they write nothing
/// and decay nothing.
Chunk maskChunk(mlir::OpBuilder &builder, mlir::Location loc,
                const Chunk &chunk);

/// The state after the chunk, and its output `C x dv`.
struct ChunkResult {
  mlir::Value state, output;
};

/// A tile as products take it: rounded, or in two parts, of which the second is
/// what rounding has left of it.
struct Operand {
  mlir::Value high = {};
  mlir::Value low = {}; // null: nothing

  explicit operator bool() const { return bool(high); }
};

/// `tile`, of f32, in two parts of the type `part`.
Operand toParts(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile,
                mlir::Type part);

/// Both parts with rows and columns exchanged.
Operand transposeParts(mlir::OpBuilder &builder, mlir::Location loc,
                       const Operand &operand);

/// lhs * rhs + acc in f32, a product for each pair of parts but the second
/// ones. The first part of `rhs` is done with first: a recurrence copies that
/// of the next chunk while the second one is used.
mlir::Value multiplyParts(mlir::OpBuilder &builder, mlir::Location loc,
                          const Operand &lhs, const Operand &rhs,
                          mlir::Value acc = {}, bool transposeLhs = false);

/// H and g' of the log decays of a chunk and their running sums: what is taken
/// out of products, down to e^-1, and what is left of each log decay.
std::pair<mlir::Value, mlir::Value> splitDecays(mlir::OpBuilder &builder,
                                                mlir::Location loc,
                                                mlir::Value logDecay,
                                                mlir::Value sums);

/// What is known of a chunk before the state is, with operands rounded: tiles
/// of ChunkFormRounded.cpp and ChunkFormInParts.cpp.
struct IntraChunkTiles {
  mlir::Value query, key; // Q and K, C x dk, in the type of keys
  mlir::Value solve;      // T^T, C x C, or null
  Operand toState;        // Y, C x dk; null where T is apart
  Operand toOutput;       // Z, C x C, zero above its diagonal, or P'^T
  mlir::Value sums;       // G
  mlir::Value outside;    // H
  mlir::Value toEnd;      // G'_last - G'
};

/// Emits all of the chunk form that does not depend on the state, for types
/// that round. Rows of `chunk` past the valid ones are zero; `value` is not
/// used. With `apart`, T is not multiplied with others.
IntraChunkTiles emitRoundedIntraChunk(mlir::OpBuilder &builder,
                                      mlir::Location loc, const Chunk &chunk,
                                      const ChunkTypes &types, bool apart);

/// The same with operands in two parts; queries may have one.
IntraChunkTiles emitIntraChunkInParts(mlir::OpBuilder &builder,
                                      mlir::Location loc, const Operand &query,
                                      const Operand &key, const Chunk &chunk,
                                      const ChunkTypes &types);

/// Emits the chunk form with operands rounded to `types`. `state` is the
/// transpose of the state, `dk x dv`, so that no product needs a packed
/// operand, times `types.valueScale`; so is the state of the result. The output
/// is as it is.
ChunkResult emitChunk(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value state, const Chunk &chunk,
                      const ChunkTypes &types);

/// The same for types that round, in the order of products that rounding asks
/// for.
ChunkResult emitRoundedChunk(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value state, const Chunk &chunk,
                             const ChunkTypes &types);

/// The same with a decay per channel: that of StoredChunk, transposed.
ChunkResult emitRoundedChannelChunk(mlir::OpBuilder &builder,
                                    mlir::Location loc, mlir::Value state,
                                    const Chunk &chunk,
                                    const ChunkTypes &types);

/// A chunk as a stage before left it, and as it lies in memory: tiles with
/// zeros in the rows of tokens past the valid ones.
struct StoredChunk {
  Operand query, key;   // Q and K, C x dk, in the type of keys
  Operand value;        // V, C x dv, in any type, or in as many parts as Q
  mlir::Value solve;    // T^T, C x C, if the others are without
  Operand toState;      // Y or K', C x dk; or K, if `fading` is apart
  Operand toOutput;     // Z or P'^T, C x C
  mlir::Value fading;   // what K' has beside K, C; null: nothing
  mlir::Value decay;    // e^G, C; null: keys and queries have it
  mlir::Value strength; // beta e^-H, C; null: T has it
  mlir::Value end;      // e^(G_last), C times, or dk with a decay per channel;
                        // null: it follows from `decay`
  double scale;         // of the queries
};

/// What is known of a chunk with a decay per channel, with operands rounded
/// (ChunkFormRoundedChannels.cpp); its values are left out. With `apart`, T is
/// not multiplied with others.
StoredChunk emitRoundedChannelIntraChunk(mlir::OpBuilder &builder,
                                         mlir::Location loc, const Chunk &chunk,
                                         const ChunkTypes &types, bool apart);

/// Emits what is left to do for a chunk: from the state, `dv x dk` times
/// `types.valueScale`, to the state after it, likewise, and the output; none if
/// the chunk has no queries.
ChunkResult emitStateRowsChunk(mlir::OpBuilder &builder, mlir::Location loc,
                               mlir::Value state, const StoredChunk &chunk,
                               const ChunkTypes &types);

/// The chunk form in f32 with a decay per channel, with or without a delta
/// term; state and output as with `emitChunk`.
ChunkResult emitChannelChunk(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value state, const Chunk &chunk);

/// The chunk form in f32 without a delta term, with a decay per head; state and
/// output as with `emitChunk`.
ChunkResult emitLinearChunk(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value state, const Chunk &chunk);

/// The form of these that the chunk's operands ask for.
ChunkResult emitChunkOfRule(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value state, const Chunk &chunk,
                            const ChunkTypes &types);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_CHUNKFORM_H
