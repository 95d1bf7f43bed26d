// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage of the variant "staged" whose blocks have a chunk each.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSTAGE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSTAGE_H

#include "Stages/KernelStage.h"

namespace gdn {

class ChunkStage : public KernelStage {
public:
  using KernelStage::KernelStage;

protected:
  void emitBlock(mlir::Value chunkSlot) override;
  /// The program of a chunk slot; there is nothing to do where it has no owner.
  void emitSlot(mlir::Value chunkSlot);
  /// The program of a chunk that has an owner: tokens `begin` to
  /// `begin + valid`; `isFirst` says whether it is the first of its sequence.
  virtual void emitChunkSlot(mlir::Value chunkSlot, mlir::Value isFirst,
                             mlir::Value valid) = 0;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_CHUNKSTAGE_H
