// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with states in planes that are written every W tokens: tensor cores
// multiply the bytes.
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_PLANEREPLAY_H
#define GDN_LIB_SCHEDULE_RECURRENCE_PLANEREPLAY_H

#include "Recurrence/PartReplay.h"

namespace gdn {

class PlaneReplay final : public PartReplay {
public:
  /// `keeps`: see keepsState.
  PlaneReplay(mlir::func::FuncOp source, tile::DeltaReplayOp replay,
              int64_t threads, int64_t blocks, bool keeps)
      : PartReplay(source, replay, threads, blocks), isKept(keeps) {}

  /// How many planes the state of `replay` has, and how many its tokens see.
  static int64_t countPlanes(tile::DeltaReplayOp replay);
  static int64_t countSeenPlanes(tile::DeltaReplayOp replay);

  /// Whether the state of `replay` is made of planes of bytes that tensor cores
  /// take.
  static bool suits(tile::DeltaReplayOp replay, int64_t threads);

private:
  int64_t getOwnVector() override;
  llvm::SmallVector<tile::LoadOp> getStateLoads() override;
  void emitFactors(ScanRole role, FragmentEmitter &warp) override;
  void emitStateProducts(FragmentEmitter &all) override;
  /// Beside two planes that tokens see there are no registers for it where they
  /// become f32 ahead of their products.
  bool loadsAhead() override {
    return countSeenPlanes(replay) == 1 || foldsPlanes();
  }
  bool foldsTogether() override { return countSeenPlanes(replay) == 1; }
  bool foldsPlanes() override;
  /// Where tokens see eight bits of a state.
  bool roundsDeltas() override { return countSeenPlanes(replay) == 1; }
  bool weighsEarly() override {
    return !copiesInFewWarps() || countSeenPlanes(replay) == 1;
  }
  bool keepsState() override;
  /// With 80 registers, or 96, a thread that keeps what it has asked for beside
  /// its part of the state takes 3 to 6 % longer.
  bool asksForGates() override {
    return joinsGates() && countSeenPlanes(replay) == 2;
  }
  /// In 80 registers ptxas spills the answers beside the state, and its warp
  /// waits for each where it is spilled.
  bool asksLate() const override { return !isKept && replay.getSeen(); }

  bool isKept;
  /// A key, or a query, in shared memory as the bytes of integers, in three
  /// rows, and what they count.
  struct RowParts {
    mlir::Value rows, unit;
  };
  RowParts keyParts, queryParts;
  /// What tokens see of the state.
  static tile::MapRowsOp findSeen(tile::DeltaReplayOp replay) {
    mlir::Value seen = replay.getSeen();
    return (seen ? seen : replay.getState()).getDefiningOp<tile::MapRowsOp>();
  }
  tile::MapRowsOp getSeen() { return findSeen(replay); }
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_PLANEREPLAY_H
