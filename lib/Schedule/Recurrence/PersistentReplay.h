// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The persistent kernel of a decode with pending tokens. One more warp copies
// these ahead; the warps of the scan multiply states with key and query and do
// not wait for anything else, unless a state receives its pending tokens; the
// warp of the output sums up.
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_PERSISTENTREPLAY_H
#define GDN_LIB_SCHEDULE_RECURRENCE_PERSISTENTREPLAY_H

#include "Kernel/ReplayStep.h"
#include "Recurrence/PersistentKernel.h"

namespace gdn {

class PersistentReplay final : public PersistentKernel {
public:
  PersistentReplay(mlir::func::FuncOp source, tile::DeltaReplayOp replay)
      : PersistentKernel(source, replay), replay(replay) {}

private:
  llvm::SmallVector<Role> getOtherRoles() override;
  bool takeStore(mlir::Operation *op) override;
  int64_t getMoreBytes() override;
  llvm::SmallVector<mlir::Value> getChannelled() override;
  void createMoreChannels() override;
  Ops beginOps(Ops ops) override;
  void beginUnit(mlir::Block &block) override;
  void emitScan() override;
  void emitFactors(llvm::ArrayRef<ScanRole> made,
                   FragmentEmitter &warp) override;
  void emitOutputOf(FragmentEmitter &warp) override;
  void emitPending() override;

  void setPending(ReplayPending &pending);
  gpu::SharedType getOne(mlir::Type element);
  gpu::FragmentType getOneRow(mlir::Type element);
  void releasePending();

  tile::DeltaReplayOp replay;
  void findUnitValues();
  void sendUnit();

  /// Numbers that one role computes for all: coordinates of a unit and what
  /// comes of them by division, and last its slot, -1 for one that is not live.
  llvm::SmallVector<mlir::Value> unitValues, unitRings;
  mlir::Value isLive;
  mlir::memref::LoadOp countLoad;
  /// Keys, deltas, what remains of them and of the state.
  llvm::SmallVector<mlir::Value> pendingRings;
  mlir::Value countRing, productRing;
  mlir::Value decays, keyPairs, queryPairs; // of one role
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_PERSISTENTREPLAY_H
