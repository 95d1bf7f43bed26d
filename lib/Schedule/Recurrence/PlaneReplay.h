// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with states in planes that are written every W tokens. The planes stay
// bytes in registers, and tensor cores multiply them with key and query; a
// state that receives its pending tokens gives its products without them first,
// and becomes f32 some rows at a time.
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_PLANEREPLAY_H
#define GDN_LIB_SCHEDULE_RECURRENCE_PLANEREPLAY_H

#include "Recurrence/ResidentReplay.h"

namespace gdn {

class PlaneReplay final : public ResidentReplay {
public:
  /// `blocks` per multiprocessor are what registers must allow.
  PlaneReplay(mlir::func::FuncOp source, tile::DeltaReplayOp replay,
              int64_t threads, int64_t blocks)
      : ResidentReplay(source, replay, threads), blocks(blocks) {}

  /// How many planes of the state of `replay` its tokens see.
  static int64_t countSeenPlanes(tile::DeltaReplayOp replay);

  /// Whether the state of `replay` is made of planes of bytes that tensor cores
  /// take.
  static bool suits(tile::DeltaReplayOp replay, int64_t threads);

private:
  bool widensRows() const override { return true; }
  std::optional<int64_t> getOwnLanes() override;
  int64_t getOwnVector() override;
  void chooseWarps(int64_t &minBlocks) override;
  /// In blocks of four warps, of which launches have many. In an early step of
  /// one wave of blocks of eight, tokens come later by it.
  bool copiesInFewWarps() override { return numWarps <= 4; }
  mlir::LogicalResult check() override;
  bool sumsAheadOfFold() const override { return true; }
  llvm::SmallVector<tile::LoadOp> getStateLoads() override;
  void emitFactors(ScanRole role, FragmentEmitter &warp) override;
  void emitState(FragmentEmitter &all) override;

  void emitFold(mlir::Value commits);
  void emitFoldRows(const RowGroup &group, mlir::Value part,
                    mlir::ValueRange loaded, mlir::Value keyColumns);
  RowGroup getPart(int64_t numRows);
  gpu::RowsAttr getPartRows();
  llvm::SmallVector<mlir::Value> loadPart(const RowGroup &group,
                                          mlir::Value part);
  llvm::SmallVector<mlir::Value> atPart(const RowGroup &group, mlir::Value part,
                                        mlir::ValueRange indices, int64_t dim);

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

  int64_t blocks;
  /// What makes the state of its planes, and what is stored of it.
  tile::MapRowsOp widen;
  llvm::SmallVector<mlir::Operation *> roundings;
  llvm::SmallVector<tile::StoreOp> stores;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_PLANEREPLAY_H
