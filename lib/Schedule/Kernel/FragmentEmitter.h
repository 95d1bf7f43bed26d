// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of a tile program as ops on fragments, for warps that all hold their
// tiles the same way.
#ifndef GDN_LIB_SCHEDULE_KERNEL_FRAGMENTEMITTER_H
#define GDN_LIB_SCHEDULE_KERNEL_FRAGMENTEMITTER_H

#include "Kernel/KernelFunction.h"

namespace gdn {

/// The layout of tiles of `columns` columns in one warp: as few columns per
/// lane as make a power of two.
gpu::RowsAttr getWarpRows(mlir::MLIRContext *context, int64_t columns);

/// Rows that ops are emitted for at once, such as tokens of a recurrence or
/// rows of a state: of the tiles named here, which have more of them, `count`
/// rows or elements, of which the first `valid` are read and written.
struct RowGroup {
  llvm::DenseSet<mlir::Value> tiles;
  int64_t count = 1;
  mlir::Value valid;
};

/// Emits tile ops for the warps of one role.
///
/// `scalars` maps the values of the tile program that are no tiles. A value of
/// floating point that it lacks is computed where it is first used.
class FragmentEmitter {
public:
  /// For one warp.
  FragmentEmitter(mlir::OpBuilder &b, const mlir::IRMapping &scalars)
      : b(b), scalars(scalars) {}
  /// For all warps of the block, matrices in the layout `rows`.
  FragmentEmitter(mlir::OpBuilder &b, const mlir::IRMapping &scalars,
                  gpu::RowsAttr rows)
      : b(b), scalars(scalars), rows(rows) {}

  /// From here on ops are those of a group of rows; null ends it.
  void setRowGroup(const RowGroup *rows) { group = rows; }

  /// Emits an op whose result is a tile; see makesTile.
  void emit(mlir::Operation *op);
  /// Asks for what `load` will read.
  void emitPrefetch(tile::LoadOp load);
  /// Whether a load may be begun ahead of it: whole, and by each thread its
  /// part.
  bool mayBegin(tile::LoadOp load) const;
  /// Begins to load what `load` asks for, to `buffer`; whoever emits the load
  /// says so with `setBegun`.
  void emitBegin(tile::LoadOp load, mlir::Value buffer);
  void setBegun(mlir::Value tile, mlir::Value buffer) { begun[tile] = buffer; }
  /// Emits a `gdn_tile.store`, or an `scf.if` around some. Before the last
  /// block of a group stores, all of the group hold what they loaded of the
  /// same view: `loads` names these loads.
  void emitStores(mlir::Operation *op, mlir::ArrayRef<mlir::Operation *> loads);

  /// Emits what `branch` does where it is taken: tiles and stores.
  void emitBranch(mlir::scf::IfOp branch,
                  mlir::ArrayRef<mlir::Operation *> loads = {});

  /// Asks who is the last of the group that `branch` waits for, long before
  /// `emitStores` of it; null if it waits for none. The answer is for
  /// `setTicket`.
  mlir::Value emitTicket(mlir::Operation *branch,
                         mlir::ArrayRef<mlir::Operation *> loads);
  void setTicket(mlir::Operation *branch, mlir::Value ticket) {
    tickets[branch] = ticket;
  }

  /// The fragment of a tile that was emitted or set.
  mlir::Value operator[](mlir::Value tile) const {
    return fragments.lookup(tile);
  }
  void set(mlir::Value tile, mlir::Value fragment) {
    fragments[tile] = fragment;
  }

  /// From here on `value`, which is no tile, is `here`.
  void mapScalar(mlir::Value value, mlir::Value here) {
    scalars.map(value, here);
  }
  /// A value that is no tile.
  mlir::Value scalar(mlir::Value value);
  /// The fragment type of a tile of the program.
  gpu::FragmentType typeOf(mlir::Value tile) const;

private:
  llvm::SmallVector<mlir::Value>
  getReads(mlir::Operation *branch, mlir::ArrayRef<mlir::Operation *> loads);
  void emitMap(tile::MapRowsOp map);
  bool isInGroup(mlir::Value tile) const {
    return group && group->tiles.contains(tile);
  }
  /// The tile's type, with as many rows as the group has.
  mlir::VectorType tileType(mlir::Value tile) const;
  mlir::Value inlineRow(mlir::Value tile,
                        llvm::DenseMap<mlir::Value, mlir::Value> &rowOf);
  llvm::SmallVector<mlir::Value> mapped(mlir::ValueRange values);

  mlir::OpBuilder &b;
  mlir::IRMapping scalars;
  gpu::RowsAttr rows; // null for one warp
  const RowGroup *group = nullptr;
  llvm::DenseMap<mlir::Value, mlir::Value> fragments;
  llvm::DenseMap<mlir::Value, mlir::Value> begun; // tiles' buffers
  llvm::DenseMap<mlir::Operation *, mlir::Value> tickets;
};

/// Whether lanes of a warp have no columns of a fragment of their own: they
/// hold those of others, and load them, too.
bool hasIdleLanes(mlir::Value fragment);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_FRAGMENTEMITTER_H
