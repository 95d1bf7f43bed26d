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

private:
  gpu::FragmentType typeOf(mlir::Value tile) const;
  void emitOp(mlir::Operation *op);

  SharedTiles &tiles;
  llvm::DenseMap<mlir::Value, mlir::Value> vectors; // on one warp
  llvm::DenseSet<mlir::Operation *> ahead;          // emitted by emitLoads
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_GATEVECTORS_H
