// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on tiles of rank 1: gates.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_GATEVECTORS_H
#define GDN_LIB_SCHEDULE_PRODUCTS_GATEVECTORS_H

#include "Products/SharedTiles.h"

namespace gdn {

/// True for an op on tiles of rank 1 alone, not by copies.
bool isVectorWork(mlir::Operation *op);

class GateVectors {
public:
  explicit GateVectors(SharedTiles &tiles) : tiles(tiles) {}

  /// Emits such ops, loads and stores among them, on one warp; their results
  /// are shared. The running sums of a decay matrix are such work, too.
  void emit(mlir::ArrayRef<mlir::Operation *> ops);
  /// Emits the loads among such ops, ahead of the others.
  void emitLoads(mlir::ArrayRef<mlir::Operation *> ops);
  /// Of a role of one warp: the same as emit, but shares the results only if
  /// `isWanted`, with what `behind` emits behind them.
  void emitIf(mlir::ArrayRef<mlir::Operation *> ops, mlir::Value isWanted,
              llvm::function_ref<void()> behind);
  /// What `loads` among such ops load, as the scalars are now.
  llvm::SmallVector<mlir::Value> load(mlir::ArrayRef<tile::LoadOp> loads);
  /// From here on, `loads` have given `loaded`.
  void take(mlir::ArrayRef<tile::LoadOp> loads, mlir::ValueRange loaded);
  gpu::FragmentType typeOf(mlir::Value tile) const;

private:
  void emitOp(mlir::Operation *op);
  void emitAll(mlir::ArrayRef<mlir::Operation *> ops);
  void giveBuffers(mlir::ArrayRef<mlir::Value> shared, mlir::Block *block);
  void share(mlir::ArrayRef<mlir::Value> shared, mlir::ValueRange fragments);

  SharedTiles &tiles;
  llvm::DenseMap<mlir::Value, mlir::Value> vectors; // on one warp
  llvm::DenseSet<mlir::Operation *> ahead;          // loads that were taken
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_GATEVECTORS_H
