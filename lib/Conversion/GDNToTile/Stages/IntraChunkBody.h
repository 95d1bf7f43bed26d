// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a chunk needs no state for: for the stage that leaves it in the
// workspace, and for the recurrence of the variant "fused", which prepares
// chunks where it needs them.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_INTRACHUNKBODY_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_INTRACHUNKBODY_H

#include "Chunks/ChunkForm.h"
#include "Program/SequenceProgram.h"

namespace gdn {

/// What is known of the chunk of `valid` tokens from `t` on before the state
/// is: all but what a product takes as it lies in memory. `known` has f32 tiles
/// of some of its inputs, the others are computed. Queries and keys in parts
/// are operands instead.
StoredChunk emitIntraChunk(SequenceProgram &p, Chunk known, mlir::Value t,
                           mlir::Value valid, const Operand &query = {},
                           const Operand &key = {});
/// Adds that to `chunk`, which has keys and values, and queries if outputs are
/// asked for. Tiles of gates are those given, if they are.
void addIntraChunk(SequenceProgram &p, StoredChunk &chunk, mlir::Value t,
                   mlir::Value valid, mlir::Value logDecay = {},
                   mlir::Value strength = {});

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_INTRACHUNKBODY_H
