// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on fragments: map_rows, conv1d, sums, extract.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_ROWS_ROWWORK_H
#define GDN_LIB_CONVERSION_GPUTONVVM_ROWS_ROWWORK_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

/// The body of `map` once for each row that a thread holds; returns the
/// thread's elements of the results. `values` maps what the body uses from
/// outside. With `rowByRow` what stands behind the last sum is written row
/// after row, not op after op; with `isApart` all of it, and a narrow row is
/// widened here, whoever else has widened it.
llvm::SmallVector<mlir::Value>
emitMapRows(mlir::OpBuilder &b, const BlockThreads &threads, gpu::MapRowsOp map,
            const mlir::IRMapping &values, bool rowByRow, bool isApart);

/// Makes the thread's parts of a sum for each of its rows the sums over the
/// lanes of the rows, in a butterfly for each. With `share` the lanes share
/// them out: a row's sum is loaded from the lane that has it.
void emitLaneSums(mlir::OpBuilder &b, mlir::Location loc,
                  const BlockThreads &threads, gpu::RowsAttr layout,
                  llvm::MutableArrayRef<mlir::Value> parts, bool store);

/// The largest of what the lanes of a row have, NaN if one has it.
mlir::Value emitLargestOfLanes(mlir::OpBuilder &b, mlir::Location loc,
                               gpu::RowsAttr layout, mlir::Value value);

/// The thread's channels of `conv`; returns `result` and `new_window`.
llvm::SmallVector<mlir::Value> emitConv1d(mlir::OpBuilder &b,
                                          gpu::Conv1dOp conv,
                                          const mlir::IRMapping &values);

/// Convolves the thread's channels of a shared tile; returns its elements of
/// the next window.
mlir::Value emitConvColumns(mlir::OpBuilder &b, const BlockThreads &threads,
                            gpu::ConvColumnsOp conv,
                            const mlir::IRMapping &values);

/// Sums up to each of the thread's elements.
mlir::Value emitRunningSum(mlir::OpBuilder &b, const BlockThreads &threads,
                           gpu::RunningSumOp sum, mlir::Value local);

/// Sums of the columns of a tile, of which the thread has `local`; `scratch`
/// points at the shared tile.
mlir::Value emitColumnSum(mlir::OpBuilder &b, const BlockThreads &threads,
                          gpu::ColumnSumOp sum, mlir::Value local,
                          mlir::Value scratch);

/// The element, from the lane that holds it.
mlir::Value emitExtract(mlir::OpBuilder &b, gpu::ExtractOp extract,
                        mlir::Value local);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_ROWS_ROWWORK_H
