// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of a decode with pending tokens and the state in registers.
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_RESIDENTREPLAY_H
#define GDN_LIB_SCHEDULE_RECURRENCE_RESIDENTREPLAY_H

#include "Kernel/ReplayStep.h"
#include "Recurrence/ResidentKernel.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace gdn {

class ResidentReplay : public ResidentKernel {
public:
  ResidentReplay(mlir::func::FuncOp source, tile::DeltaReplayOp replay,
                 int64_t threads)
      : ResidentKernel(source, replay, threads), replay(replay) {}

protected:
  bool takesPasses() const override { return false; }
  void chooseWarps(int64_t &minBlocks) override;
  bool isLate(mlir::Operation *store) const override {
    return ResidentKernel::isLate(store) || storesPending(store);
  }
  bool asksEarly(mlir::Operation *store) const override {
    return !asksLate() && !storesPending(store);
  }
  /// Whether who is the last to have read what blocks share is asked behind the
  /// products, all of it.
  virtual bool asksLate() const { return false; }
  mlir::LogicalResult check() override;
  /// With pending tokens narrow states are, too: bf16, H200, one sequence 2.64
  /// us and 2.81, eight 5.24 and 5.47.
  bool suitsAligned() override {
    return ResidentKernel::suitsAligned() || !scan.isPerChannel();
  }
  void emitRootBlock(mlir::Block &block) override;
  void emitOutputOf(FragmentEmitter &warp) override;

  bool storesPending(mlir::Operation *op) const;
  /// Whether what a turn of a loop needs is made in the turn: one row of planes
  /// at a time takes registers for one.
  virtual bool keepsLoops() { return true; }
  /// Whether the warps that make no operand copy the pending tokens, alone.
  virtual bool copiesInFewWarps() { return false; }
  /// Whether the last warp makes what remains of pending tokens before they
  /// come, of log decays that it loads itself.
  virtual bool weighsEarly() { return !scan.isPerChannel(); }
  void findCount(mlir::Block &block);
  void beginCopies();
  void takeCount(FragmentEmitter &all);
  void emitTickets();
  void emitEarlyWeights();
  void emitWeights();
  void emitChannels();
  mlir::Value loadColumns(mlir::Value own, mlir::Value withDecay,
                          gpu::RowsAttr rows);
  mlir::Value emitFolded(FragmentEmitter &all);
  /// Whether the products are those of a state that has not received its
  /// pending tokens, if it is to receive them, too.
  virtual bool sumsAheadOfFold() const { return bool(replay.getSeen()); }
  /// What is loaded of the state ahead.
  virtual llvm::SmallVector<tile::LoadOp> getStateLoads() {
    return getLoads((*roles)[ScanRole::state].tiles);
  }
  virtual void emitStateLoads(FragmentEmitter &all) {
    for (tile::LoadOp load : getStateLoads())
      all.emit(load);
  }
  /// Products of the state with key and query, and the state with the pending
  /// tokens if it is to receive them.
  virtual void emitState(FragmentEmitter &all);
  /// Whether warps have work that the last one need not wait for, behind the
  /// sums over pending tokens of those that make them.
  virtual bool worksBehindSums() { return false; }
  virtual void emitBehindSums() {}
  bool awaitsArrivals() override { return worksBehindSums(); }
  gpu::RowsAttr getPairRows();
  void emitPairs();
  void emitProducts(mlir::Value state);
  void emitSums();
  ReplayTerms getTerms();
  /// A number that has a place in shared memory for itself.
  mlir::Value getNumber(mlir::Value buffer) {
    return gpu::LoadSharedElementOp::create(b, scan.getLoc(), b.getF32Type(),
                                            buffer, zero);
  }

  mutable tile::DeltaReplayOp replay;
  ReplayPending pending;
  mlir::Value decay;    // of the token, no logarithm; null: per channel
  ReplayRows tokenRows; // null: one decay for all channels
  /// The load of the count of pending tokens, and what follows from it.
  mlir::memref::LoadOp countLoad;
  llvm::SetVector<mlir::Operation *> counted;
  mlir::Value countBuffer; // in shared memory
  mlir::Value copied;      // tokens, an i32 of the warp that copies them alone
  // In shared memory: what remains of the state, factors of terms, products of
  // the state.
  mlir::Value decays, scales, kept, keyPairs, queryPairs, products;
  // Those and the terms of pending tokens, and the product of key and query.
  mlir::Value known, seen, meets;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_RESIDENTREPLAY_H
