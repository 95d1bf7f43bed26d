// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What warps do of a tile program of products: its control flow, with the ops
// of each part in the order of the schedule.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_WARPPROGRAM_H
#define GDN_LIB_SCHEDULE_PRODUCTS_WARPPROGRAM_H

#include "Products/ProductEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

/// The program of all warps of a block; a role has a part of it.
class WarpProgram {
public:
  using Ops = llvm::SmallVector<mlir::Operation *>;

  /// See SharedTiles; the program has its own copy of `scalars`.
  WarpProgram(mlir::OpBuilder &b, const mlir::IRMapping &scalars,
              mlir::Block *entry, int64_t numWarps)
      : b(b), scalars(scalars), emitter(b, this->scalars, entry, numWarps) {}
  WarpProgram(const WarpProgram &) = delete;
  virtual ~WarpProgram() = default;

  /// Emits what these warps have of `block`.
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOps(mlir::ArrayRef<mlir::Operation *> ops);

  /// See ProductEmitter.
  void splitLoaded() { emitter.splitLoaded(); }
  void prefetchAhead(int64_t blocks) { emitter.prefetchAhead(blocks); }

  const mlir::IRMapping &getScalars() const { return scalars; }
  int64_t getNumWarps() const { return emitter.tiles.numWarps; }

protected:
  /// Whether these warps have something to do for `op`.
  virtual bool takes(mlir::Operation *op) const { return true; }
  /// What a loop carries of `tile`, at its beginning or end.
  virtual mlir::Value getCarried(mlir::Value tile) {
    return emitter.tiles.fragmentOf(tile);
  }
  /// Emits `loop` and what it carries.
  virtual mlir::LogicalResult emitLoop(mlir::scf::ForOp loop);
  /// Emits the body of `copy`, a loop like `loop` right ahead of the builder,
  /// and what goes ahead of it; all but the terminator.
  virtual mlir::LogicalResult emitLoopBody(mlir::scf::ForOp loop,
                                           mlir::scf::ForOp copy);

  /// Begins to copy what `loads`, of a loop, read in the turn `at`; if there is
  /// none, zeros, and nothing is read. See beginCopy.
  llvm::SmallVector<gpu::BeginCopyOp>
  readAhead(mlir::ArrayRef<tile::LoadOp> loads, mlir::Value at, mlir::Value end,
            bool perWarpgroup = false);

  mlir::OpBuilder &b;
  mlir::IRMapping scalars;
  ProductEmitter emitter;

private:
  mlir::LogicalResult emitRegions(mlir::Operation *op);
  mlir::LogicalResult emitReadingAhead(mlir::scf::ForOp loop,
                                       mlir::scf::ForOp copy);
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_WARPPROGRAM_H
