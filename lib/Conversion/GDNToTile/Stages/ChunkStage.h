// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage of the variant "staged" whose blocks have a chunk each, or the chunks
// of so many tokens of a sequence.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSTAGE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSTAGE_H

#include "Stages/KernelStage.h"

namespace gdn {

class ChunkStage : public KernelStage {
public:
  explicit ChunkStage(const StageInputs &inputs)
      : KernelStage(inputs), slotTokens(algorithm.chunk) {}

protected:
  void emitBlock(mlir::Value slot) override;
  /// The program of a slot of `slotTokens`; there is nothing to do where it has
  /// no owner.
  void emitSlot(mlir::Value slot);
  /// The program of a slot that has an owner: tokens `begin` to
  /// `begin + valid`; `isFirst` says whether they are the first of their
  /// sequence, `chunkSlot` is the slot of their first chunk in the workspace.
  virtual void emitChunkSlot(mlir::Value chunkSlot, mlir::Value isFirst,
                             mlir::Value valid) = 0;

  int64_t slotTokens; // one chunk, or several
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSTAGE_H
