// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies from global to shared memory that go on while threads work.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_COPIES_TILECOPY_H
#define GDN_LIB_CONVERSION_GPUTONVVM_COPIES_TILECOPY_H

#include "Copies/TensorMapCopy.h"
#include "Fragments/TileAccess.h"

namespace gdn {

/// Begins `copy` from the tile at `memory` to the pointer `buffer`, on all
/// `threads`. `rows` is an index, or null for all.
void emitCopy(mlir::OpBuilder &b, gpu::BeginCopyOp copy,
              const BlockThreads &threads, const TileMemory &memory,
              mlir::Value rows, mlir::Value buffer);
/// The same of rows that need not lie at multiples of 16 bytes.
void emitRowCopy(mlir::OpBuilder &b, gpu::BeginCopyOp copy,
                 const BlockThreads &threads, const TileMemory &memory,
                 mlir::Value rows, mlir::Value buffer);
/// Whether `copy` is by a tensor map but for the last tile, in a role that has
/// other work.
bool isRestBesideWork(gpu::BeginCopyOp copy);

/// The way back, each group its columns; as boxes of `maps` where the copy
/// goes by a tensor map, with its `indices` in the view.
void emitCopyOut(mlir::OpBuilder &b, gpu::CopyOutOp copy,
                 const BlockThreads &threads, const TileMemory &memory,
                 const mlir::IRMapping &values, const TensorMaps &maps,
                 mlir::LLVM::LLVMFuncOp kernel);
/// Ahead of `store`: until boxes that the group stores have been read from the
/// tile, if there are any.
void emitAwaitTensorMapStores(mlir::OpBuilder &b, gpu::StoreSharedOp store,
                              const BlockThreads &threads);

/// Behind the last piece that a thread begins to copy, and where it waits for
/// all that it began.
void emitEndOfCopies(mlir::OpBuilder &b, mlir::Location loc);
void emitAwaitCopies(mlir::OpBuilder &b, mlir::Location loc);

/// Ahead of a load, in a program with one way to each array: keeps loads before
/// and behind what ptxas would move them past, the copies that other loads
/// begin and the wait for these.
void emitLoadOrder(mlir::OpBuilder &b, gpu::LoadOp load);

/// Waits for what the thread began, and where groups copy columns per
/// warpgroup, for the others of its group.
void emitAwaitCopies(mlir::OpBuilder &b, gpu::AwaitCopiesOp await,
                     const BlockThreads &threads);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_COPIES_TILECOPY_H
