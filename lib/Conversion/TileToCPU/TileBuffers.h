// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where each tile of a program lives. A tile is a value and never changes; a
// buffer is memory that several tiles may use one after another.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_TILEBUFFERS_H
#define GDN_LIB_CONVERSION_TILETOCPU_TILEBUFFERS_H

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

/// Memory of a tile: a memref of the tile's shape and element type.
struct Buffer {
  enum Kind {
    Scratch,    ///< its own bytes of the scratch block, at `offset`
    LoadedView, ///< the view that a gdn_tile.load reads, in place of a copy
    StoredView  ///< the view that a gdn_tile.store writes, in place of a copy
  };
  Kind kind = Scratch;
  mlir::VectorType type;
  int64_t offset = 0;                // bytes, Scratch
  mlir::Operation *access = nullptr; // the load or store, for the views
};

/// Assigns a buffer to every tile of `function`.
///
/// A result takes over the place of an operand that nothing uses later and that
/// is updated row by row: the state of a scan, the window of a convolution, the
/// rows of a map. A loop-carried tile keeps one buffer across iterations.
class TileBuffers {
public:
  /// Needs a function that checkTileProgram accepts.
  static TileBuffers assign(mlir::func::FuncOp function);

  /// Adds scratch for a tile of `type` and returns the number of its buffer.
  unsigned addScratch(mlir::VectorType type);

  /// Index of the buffer of `tile` in `buffers`.
  unsigned operator[](mlir::Value tile) const { return of.lookup(tile); }
  bool has(mlir::Value tile) const { return of.contains(tile); }

  llvm::SmallVector<Buffer> buffers;
  int64_t scratchBytes = 0;
  int64_t numInPlace = 0;

private:
  void assignLoad(tile::LoadOp load);
  void assignScan(tile::DeltaScanOp scan);
  void assignReplay(tile::DeltaReplayOp replay);
  void assignState(mlir::Operation *op, mlir::Value next, mlir::Value state);
  bool assignInPlace(mlir::Operation *op, mlir::Value next);
  void assignMap(tile::MapRowsOp map);
  void assignLoop(mlir::scf::ForOp loop);
  bool moveToCarried(mlir::Value result);
  bool takeOver(mlir::Value result, mlir::Value operand);

  llvm::DenseMap<mlir::Value, unsigned> of;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_TILEBUFFERS_H
