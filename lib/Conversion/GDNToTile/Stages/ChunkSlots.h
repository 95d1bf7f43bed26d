// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of chunks in the workspace, and of segments, where sequences are cut.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSLOTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSLOTS_H

#include "Program/SequenceProgram.h"

namespace gdn {

/// `x / y`, rounded down, of numbers of tokens. Sequence bounds have 32 bits,
/// and a GPU branches in a division of more unless `y` is a constant.
mlir::Value divideTokens(TileProgram &p, mlir::Value x, mlir::Value y);
/// The first slot of a sequence that begins at token `begin`, of its pieces of
/// `tokens` tokens: chunks or segments.
mlir::Value firstSlot(TileProgram &p, mlir::Value begin, mlir::Value sequence,
                      mlir::Value tokens);
/// The first slot of the block's sequence, of its chunks.
mlir::Value firstSlot(SequenceProgram &p);
/// The sequence that owns `slot` if any sequence does: the last one whose first
/// slot is not behind it. Sequence 0 if there are none.
mlir::Value findSequence(SequenceProgram &p, mlir::Value slot,
                         mlir::Value tokens);
/// Tokens of a segment: so many chunks that no more than `batchSegments`
/// segments are whole ones, or one less of the longer of two sequences, where
/// maps and first segments run at the same time.
mlir::Value segmentTokens(SequenceProgram &p);
/// The segments of the block's sequence, of `tokens` tokens each.
mlir::Value countSegments(SequenceProgram &p, mlir::Value tokens);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSLOTS_H
