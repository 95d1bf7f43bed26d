// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Order among the blocks of a launch and among launches.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_SYNC_LAUNCHORDER_H
#define GDN_LIB_CONVERSION_GPUTONVVM_SYNC_LAUNCHORDER_H

#include "Kernel/BlockThreads.h"

namespace gdn {

/// Counts the block among `count` (an index) that come by `counter`; an i32 in
/// lane 0, which need not be there yet. `after` are the thread's elements of
/// fragments whose loads must have returned.
mlir::Value emitTicket(mlir::OpBuilder &b, mlir::Location loc,
                       const BlockThreads &threads, mlir::Value workspace,
                       mlir::Value counter, mlir::Value count,
                       mlir::ArrayRef<mlir::Value> after);

/// The i32 that the first lane has, in all lanes of the warp.
mlir::Value emitOfFirstLane(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value number);

/// True, an i1, in all lanes of the warp whose `ticket` is the last of `count`.
mlir::Value emitIsLast(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value ticket, mlir::Value count);

/// The number, an index, of the next of `units` (an i64) that no block of the
/// launch has; by one warp.
mlir::Value emitTakeUnit(mlir::OpBuilder &b, mlir::Location loc,
                         const BlockThreads &threads, mlir::Value workspace,
                         mlir::Value units);

/// Adds `amount` to the counter at `address` in the first `count` lanes of each
/// warp (an index; null: in the first), behind all that it has stored.
void emitSignal(mlir::OpBuilder &b, mlir::Location loc,
                const BlockThreads &threads, mlir::Value address,
                int64_t amount, mlir::Value count);

/// Waits until the counter at `address` is `total`.
void emitAwaitSignals(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value address, int64_t total);

/// Waits for the launches before this one.
void emitAwaitLaunch(mlir::OpBuilder &b, mlir::Location loc);

/// Lets the next launch begin.
void emitReleaseLaunch(mlir::OpBuilder &b, mlir::Location loc);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_SYNC_LAUNCHORDER_H
