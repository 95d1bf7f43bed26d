// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of a tile program of products on all warps of a block, or on those of
// a role.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTEMITTER_H
#define GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTEMITTER_H

#include "Products/GateVectors.h"

#include "gdn/Target/GpuFacts.h"

namespace gdn {

class ProductEmitter {
public:
  /// See SharedTiles.
  ProductEmitter(mlir::OpBuilder &b, mlir::IRMapping &scalars,
                 mlir::Block *entry, int64_t numWarps)
      : tiles(b, scalars, entry, numWarps), vectors(tiles) {}

  /// Emits ops without regions, and maps, in program order, but first what
  /// others wait for.
  mlir::LogicalResult emitInOrder(mlir::ArrayRef<mlir::Operation *> ops);
  /// Emits an op whose operands and results are tiles of rank 2, or a store.
  mlir::LogicalResult emit(mlir::Operation *op);
  /// From here on, what is stored transposed goes by way of the columns per
  /// warpgroup of a warp, which waits for no other.
  void storePerWarpgroup() { storesPerWarpgroup = true; }
  /// Right sides of products come from arrays in f32: they are shared as soon
  /// as they are rounded, and the caller promises that pieces of 16 bytes lie
  /// side by side.
  void splitLoaded() { splitsLoaded = true; }
  /// From here on, tiles of few rows that are stored to different places are
  /// the work of one warp after the other, not all of the first.
  void spreadLowTiles() { spreadsLowTiles = true; }
  /// How many blocks ahead tokens are prefetched.
  void prefetchAhead(int64_t blocks) { blocksAhead = blocks; }
  /// Another role makes the running sums of these decay matrices.
  void receiveSums(mlir::ArrayRef<mlir::Operation *> matrices) {
    receivedSums = matrices;
  }

  SharedTiles tiles;
  GateVectors vectors;

private:
  void emitLowTiles(mlir::ArrayRef<mlir::Operation *> ops);
  void emitLowTiles(mlir::ArrayRef<mlir::Operation *> ops, int64_t number);

  bool storesPerWarpgroup = false, splitsLoaded = false;
  bool spreadsLowTiles = false;
  int64_t lowWarp = 0; // the next of them
  int64_t blocksAhead = gpufacts::blocksAhead;
  mlir::ArrayRef<mlir::Operation *> receivedSums; // as matrices
};

/// Emits an inverse, of one chunk or of two at the same time, each with tiles
/// of its own.
void emitInverse(tile::TriInverseOp inverse,
                 mlir::ArrayRef<SharedTiles *> chunks);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTEMITTER_H
