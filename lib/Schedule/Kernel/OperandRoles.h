// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who does what around a scan: each op of a tile program helps to make one
// operand of the scan, or follows from its results.
#ifndef GDN_LIB_SCHEDULE_KERNEL_OPERANDROLES_H
#define GDN_LIB_SCHEDULE_KERNEL_OPERANDROLES_H

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "llvm/ADT/SetVector.h"

#include <array>

namespace gdn {

/// Roles in the order in which they come to an op that several could take.
enum class ScanRole { query, key, value, gates, state, output };

/// What one role does.
struct RoleWork {
  /// Where the scan stands in a loop: tiles from before it that `tiles` use, or
  /// that the loop begins with.
  llvm::SmallVector<mlir::Operation *> before;
  /// Ops whose results are tiles, in program order; loads and arithmetic.
  llvm::SmallVector<mlir::Operation *> tiles;
  /// `gdn_tile.store` ops, or an `scf.if` around some, beside the scan.
  llvm::SmallVector<mlir::Operation *> stores;
};

class ScanRoles {
public:
  /// The roles of the ops around `scan`, in its block. Fails with an error on
  /// an op that has none.
  static mlir::FailureOr<ScanRoles> analyse(tile::RuleOpInterface scan);

  const RoleWork &operator[](ScanRole role) const {
    return work[unsigned(role)];
  }

private:
  std::array<RoleWork, 6> work;
};

/// True for the ops of a tile program that make tiles.
bool makesTile(mlir::Operation *op);

/// The ops before the loop `loop` that the tile `value` is computed from, in
/// program order.
llvm::SmallVector<mlir::Operation *> getTilesBefore(mlir::Operation *loop,
                                                    mlir::Value value);

/// The op that puts pending tokens into the state with which `loop`, around
/// `scan`, begins: a `gdn_tile.delta_fold` or `gdn_tile.delta_catch_up`; null
/// if there is none.
mlir::Operation *getPendingOp(mlir::Operation *loop,
                              tile::RuleOpInterface scan);

/// For ops of a block.
inline bool inProgramOrder(mlir::Operation *x, mlir::Operation *y) {
  return x->isBeforeInBlock(y);
}

/// Ops of `block` that need one of `values`, directly or by way of others of
/// them; of these that are as `isOne` says, if given.
llvm::DenseSet<mlir::Operation *>
getFollowers(mlir::ValueRange values, mlir::Block *block,
             llvm::function_ref<bool(mlir::Operation *)> isOne = nullptr);

/// Tiles that `op` uses, also in its regions and those of ops in them.
llvm::SetVector<mlir::Value> getUsedTiles(mlir::Operation *op);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_OPERANDROLES_H
