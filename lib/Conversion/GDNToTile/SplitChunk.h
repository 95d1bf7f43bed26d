// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage of the variant "split" whose blocks have a chunk each.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_SPLITCHUNK_H
#define GDN_LIB_CONVERSION_GDNTOTILE_SPLITCHUNK_H

#include "SplitStage.h"

namespace gdn {

class SplitChunkStage : public SplitStage {
public:
  using SplitStage::SplitStage;

protected:
  void emitBlock(mlir::Value chunkSlot) override;
  /// The program of a chunk that has an owner: tokens `begin` to
  /// `begin + valid`; `isFirst` says whether it is the first of its row.
  virtual void emitChunkSlot(mlir::Value chunkSlot, mlir::Value isFirst,
                             mlir::Value valid) = 0;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_SPLITCHUNK_H
