// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order in which a recurrence takes the sequences of a batch, in the region
// `order` of the workspace: by rank, the sequence.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_SEQUENCEORDER_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_SEQUENCEORDER_H

#include "Program/SequenceProgram.h"

namespace gdn {

/// In the block of the first value head and chunk slot `at`, below the number
/// of sequences: writes the rank of sequence `at`.
void storeOrder(SequenceProgram &p, mlir::Value order, mlir::Value at);
/// The sequence at rank `at`; behind all sequences, `at`.
mlir::Value loadOrder(SequenceProgram &p, mlir::Value order, mlir::Value at);

/// What the lengths of sequences decide for a block.
struct SequenceChoice {
  mlir::Value sequence; ///< the block's
  mlir::Value isWhole;  ///< whether a block has all values of a head
};

/// The sequence at rank `rank` where the longest comes first, and whether it is
/// too short for V-splits of its heads, as which chunks take less time each, of
/// twice as many blocks. With a decay per channel ranks are sequences, and the
/// choice is that of a kernel in which blocks prepare their chunks, or else
/// stages. From the sequence bounds, in each block.
SequenceChoice chooseByLengths(SequenceProgram &p, mlir::Value rank);

/// Whether a block goes on that is of whole heads, or else of the other way.
mlir::Value isChosen(SequenceProgram &p, const SequenceChoice &choice,
                     bool ofWhole);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_SEQUENCEORDER_H
