// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores of a program of products: tiles from and to memory, by way
// of shared memory or not.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_LOADSANDSTORES_H
#define GDN_LIB_SCHEDULE_PRODUCTS_LOADSANDSTORES_H

#include "Products/SharedTiles.h"

namespace gdn {

/// True for loads that go to shared memory as they are: of 16-bit matrices,
/// and of rows that no other op on tiles of rank 1 uses.
bool isCopied(tile::LoadOp load);

/// Has the caller promise that 16 bytes divide the address and the strides of
/// `view`.
void promiseAlignment(mlir::Value view);

/// Begins to copy what `load` reads, at the values that `at` gives it, `rows`
/// of it if given. With `isPinned`, its buffer serves nothing else: another
/// copy to it comes before the program asks for the tile again. With
/// `perWarpgroup`, each warp copies the columns that it reads transposed.
gpu::BeginCopyOp beginCopy(SharedTiles &tiles, tile::LoadOp load,
                           const mlir::IRMapping &at, mlir::Value rows,
                           bool isPinned, bool perWarpgroup = false);

/// Has `copy` come as a box, if it can: of the argument that its view expands,
/// if it does.
void copyAsBox(mlir::OpBuilder &b, gpu::BeginCopyOp &copy);

/// Emits a load to registers; with `aligned`, the caller promises pieces of 16
/// bytes.
void emitLoad(SharedTiles &tiles, tile::LoadOp load, bool aligned = false);

/// Asks for what `load` reads, `ahead` rows further on.
void prefetchRows(SharedTiles &tiles, tile::LoadOp load, mlir::Value ahead);

/// Emits a store: 16 bits go to memory in whole pieces of rows, by way of
/// shared memory; not so a state, which is large and stored once. With
/// `perWarpgroup`, what is transposed goes by way of the columns per warpgroup
/// of a warp, which waits for no other.
void emitStore(SharedTiles &tiles, tile::StoreOp store, bool perWarpgroup);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_LOADSANDSTORES_H
