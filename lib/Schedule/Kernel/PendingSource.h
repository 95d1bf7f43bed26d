// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where tiles of pending tokens are in memory.
#ifndef GDN_LIB_SCHEDULE_KERNEL_PENDINGSOURCE_H
#define GDN_LIB_SCHEDULE_KERNEL_PENDINGSOURCE_H

#include "gdn/Dialect/Tile/IR/Tile.h"

namespace gdn {

/// What a tile of pending tokens is loaded as: itself, or a tile of f16 that is
/// widened, with a factor for each row if there are `scales`.
struct PendingSource {
  tile::LoadOp load;   ///< null if the tile is made in any other way
  tile::LoadOp scales; ///< may be null

  explicit operator bool() const { return bool(load); }
};

PendingSource findPendingSource(mlir::Value tile);

/// The loads of keys, deltas and decays of the tokens that are pending in `op`,
/// and of scales.
llvm::SmallVector<tile::LoadOp, 4> getPendingLoads(tile::PendingOpInterface op);

/// Checks that keys, deltas and decays of `op` are loaded, those rows that
/// there are.
mlir::LogicalResult checkPendingSources(tile::PendingOpInterface op);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_PENDINGSOURCE_H
