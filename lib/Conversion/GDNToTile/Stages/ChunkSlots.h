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
/// How sequences are cut, which each block finds out for itself.
struct SegmentCut {
  /// Tokens of a segment: so many chunks that no more than `batchSegments`
  /// segments are whole ones; or of two sequences
  /// - all of the longer one, if a V-split of that is faster than maps and a
  ///   scan;
  /// - one segment less of the longer one, if that is as good as to shift;
  /// - as many segments of each, as even as they can be, if neither is shorter
  ///   than a segment.
  mlir::Value tokens;
  /// The longer of two sequences, and the tokens that its first segment has
  /// less: the shorter one is computed behind it, beside the maps of the
  /// others. Null where first segments have no stage of their own.
  mlir::Value longer, shift;
};
SegmentCut cutSequences(SequenceProgram &p);
/// Where the first segment of the block's sequence would begin if it were as
/// long as the others.
mlir::Value segmentsBegin(SequenceProgram &p, const SegmentCut &cut);
/// The sequence of the block with the place `at`: the longer of two comes
/// first, since there may be fewer multiprocessors than blocks.
mlir::Value longestFirst(SequenceProgram &p, mlir::Value at,
                         const SegmentCut &cut);
/// The segments of the block's sequence.
mlir::Value countSegments(SequenceProgram &p, const SegmentCut &cut);
/// Makes the block's sequence that of the segment with the place `at` among all
/// that are not a first one, nor, with `lastToo`, a last one; gives its number
/// in the sequence. Behind the last such segment the sequence is the padding.
/// There are `batchSegments` of them at most, without as many as each sequence
/// leaves out, so nobody has to skip the slots of others.
mlir::Value findSegment(SequenceProgram &p, mlir::Value at,
                        const SegmentCut &cut, bool lastToo);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSLOTS_H
