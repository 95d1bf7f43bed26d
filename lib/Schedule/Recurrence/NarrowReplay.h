// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with states of 16 bits that are written every W tokens: tensor cores
// multiply them as they are.
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_NARROWREPLAY_H
#define GDN_LIB_SCHEDULE_RECURRENCE_NARROWREPLAY_H

#include "Recurrence/PartReplay.h"

namespace gdn {

class NarrowReplay final : public PartReplay {
public:
  NarrowReplay(mlir::func::FuncOp source, tile::DeltaReplayOp replay,
               int64_t threads, int64_t blocks)
      : PartReplay(source, replay, threads, blocks) {}

  /// Whether the state of `replay` is one array of 16 bits that tensor cores
  /// take.
  static bool suits(tile::DeltaReplayOp replay, int64_t threads);

private:
  bool widensState() override { return false; }
  void emitRootBlock(mlir::Block &block) override;
  void emitFactors(ScanRole role, FragmentEmitter &warp) override;
  void emitStateProducts(FragmentEmitter &all) override;

  /// A key, or a query, in shared memory as the sum of three rows, and what
  /// they count; null for one.
  struct RowParts {
    mlir::Value rows, unit;
  };
  RowParts keyParts, queryParts;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_NARROWREPLAY_H
