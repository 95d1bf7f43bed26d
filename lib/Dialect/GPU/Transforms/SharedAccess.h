// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ops of gdn_gpu use shared memory, and how.
#ifndef GDN_LIB_DIALECT_GPU_TRANSFORMS_SHAREDACCESS_H
#define GDN_LIB_DIALECT_GPU_TRANSFORMS_SHAREDACCESS_H

#include "gdn/Dialect/GPU/IR/GPU.h"

namespace gdn {

/// What an op does to a shared tile.
struct SharedAccess {
  mlir::Value buffer;
  bool writes = false, reads = false;
};

/// The accesses of an op that is no part of a channel.
llvm::SmallVector<SharedAccess, 4> getSharedAccesses(mlir::Operation *op);

/// The tile that `buffer` is, whatever shape it has here.
mlir::Value getSharedTile(mlir::Value buffer);

/// The same; until it is committed, what a role fills is known by the channel.
mlir::Value getFollowedTile(mlir::Value buffer);

/// True if each warp uses the columns of the tile that are its group's.
bool isPerWarpgroup(mlir::Operation *op);

/// True if two accesses to a tile need no barrier in between: the columns of
/// two warps are apart, and so are two rows of a tile that may be others.
bool areApart(mlir::Operation *op, mlir::Operation *other);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GPU_TRANSFORMS_SHAREDACCESS_H
