// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with states that are written every W tokens, on tensor cores. The
// state stays in registers as it lies in memory, and is multiplied so; one that
// receives its pending tokens gives its products without them first, and
// becomes f32 some rows at a time.
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_PARTREPLAY_H
#define GDN_LIB_SCHEDULE_RECURRENCE_PARTREPLAY_H

#include "Recurrence/ResidentReplay.h"

namespace gdn {

class PartReplay : public ResidentReplay {
protected:
  /// `blocks` per multiprocessor are what registers must allow.
  PartReplay(mlir::func::FuncOp source, tile::DeltaReplayOp replay,
             int64_t threads, int64_t blocks)
      : ResidentReplay(source, replay, threads), blocks(blocks) {}

  /// Lanes of a row, and rows of a warp at once.
  static constexpr int64_t partLanes = 4, warpRows = 8;

  bool widensRows() const override { return true; }
  std::optional<int64_t> getOwnLanes() override { return partLanes; }
  void chooseWarps(int64_t &minBlocks) override;
  /// In blocks of four warps, of which launches have many. In an early step of
  /// one wave of blocks of eight, tokens come later by it.
  bool copiesInFewWarps() override { return numWarps <= 4; }
  /// There the warp that copies comes last to the barrier ahead of the
  /// products.
  bool joinsGates() const override { return numWarps <= 4; }
  /// Whether threads keep what they have loaded of the state until a fold,
  /// which takes all rows at once, and what no token sees comes to shared
  /// memory: a fold waits for no memory. A thread has to have the registers.
  virtual bool keepsState() { return false; }
  void emitStateLoads(FragmentEmitter &all) override;
  mlir::LogicalResult check() override;
  bool sumsAheadOfFold() const override { return true; }
  void emitState(FragmentEmitter &all) override;
  /// Then the last warp goes on while others fold, once all have the sums.
  bool worksBehindSums() override { return keepsState(); }
  void emitBehindSums() override;
  /// The products of the state with key and query, to `products`.
  virtual void emitStateProducts(FragmentEmitter &all) = 0;
  /// Whether a fold loads the next rows ahead of its work.
  virtual bool loadsAhead() { return true; }
  /// Whether tensor cores take the state's planes and keys of pending tokens in
  /// f16 as they are, with sums that begin with the state.
  virtual bool foldsPlanes() { return false; }
  /// Whether it rounds weighted deltas to f16.
  virtual bool roundsDeltas() { return false; }
  /// A fold of planes in blocks of four warps leaves registers for it.
  bool keepsLoops() override { return numWarps > 4 || !foldsPlanes(); }
  /// Whether all warps of a fold take their next rows together.
  virtual bool foldsTogether() { return false; }

  /// What a thread has of a tile of the state.
  mlir::Value getState(FragmentEmitter &all, mlir::Value tile) {
    auto found = keptState.find(tile);
    return found != keptState.end() ? found->second : all[tile];
  }

private:
  void shareKeyColumns();
  void emitFold();
  void emitFoldRows(const RowGroup &group, mlir::Value part, mlir::Value unit,
                    mlir::ValueRange loaded);
  RowGroup getPart(int64_t numRows);
  mlir::Value getTokenUnit();
  void emitPlaneFold(FragmentEmitter &rows, mlir::Value deltas,
                     mlir::Value part, mlir::Value unit,
                     mlir::ValueRange loaded);
  void emitPartFold(FragmentEmitter &rows, mlir::Value deltas, mlir::Value part,
                    mlir::ValueRange loaded);
  gpu::RowsAttr getPartRows();
  /// What a fold loads of the state.
  llvm::SmallVector<mlir::Value> getFoldTiles();
  mlir::Value loadPart(const RowGroup &group, mlir::Value part,
                       mlir::Value tile);
  llvm::SmallVector<mlir::Value> loadPart(const RowGroup &group,
                                          mlir::Value part);
  void copyUnseen();
  void enterFold();
  /// Tiles of a state that is kept: in registers, and in shared memory what no
  /// token sees.
  llvm::DenseMap<mlir::Value, mlir::Value> keptState, unseen;
  mlir::Value keyColumns; // in shared memory, as parts or in f16
  llvm::SmallVector<mlir::Value> atPart(const RowGroup &group, mlir::Value part,
                                        mlir::ValueRange indices, int64_t dim);

  int64_t blocks;
  /// What makes the state of its planes, null where it is one array, and what
  /// is stored of it.
  tile::MapRowsOp widen;
  llvm::SmallVector<mlir::Operation *> roundings;
  llvm::SmallVector<tile::StoreOp> stores;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_PARTREPLAY_H
