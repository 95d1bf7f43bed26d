// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that ops of gdn_tile and of gdn_gpu have in common: of the grid, of
// what they ask of a view, and of the body of a map over rows.
#ifndef GDN_DIALECT_TILECHECKS_H
#define GDN_DIALECT_TILECHECKS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace gdn {

/// Fails, with a diagnostic, unless `grid`, that of the function around `op`,
/// or null, has the axis.
mlir::LogicalResult verifyAxis(mlir::Operation *op, mlir::ArrayAttr grid,
                               uint64_t axis);

/// Fails, with a diagnostic, unless there is an index for each dimension of
/// `view`, and `dims` names one of them for each of the `rank` dimensions of
/// `what`.
mlir::LogicalResult verifyViewDims(mlir::Operation *op, mlir::MemRefType view,
                                   size_t numIndices,
                                   llvm::ArrayRef<int64_t> dims, int64_t rank,
                                   llvm::StringRef what);

/// Fails, with a diagnostic, unless `view`, of f32 whose bits are numbers, has
/// a counter at so many indices.
mlir::LogicalResult verifyCounter(mlir::Operation *op, mlir::MemRefType view,
                                  size_t numIndices);

/// Fails, with a diagnostic, unless `what` has elements like `view`.
mlir::LogicalResult verifyViewElement(mlir::Operation *op,
                                      mlir::MemRefType view, mlir::Type element,
                                      llvm::StringRef what);

/// Fails, with a diagnostic, unless `yield` gives a value of each of `types`;
/// `what` says what they are.
mlir::LogicalResult verifyYield(mlir::Operation *yield, mlir::TypeRange types,
                                llvm::StringRef what);

/// Fails, with a diagnostic, unless `body` is that of a map over rows: its
/// arguments are the row's number and `inputs`, and it gives `results`; `what`
/// says what these are of an input or result.
mlir::LogicalResult verifyRowBody(mlir::Operation *op, mlir::Block &body,
                                  mlir::TypeRange inputs,
                                  mlir::TypeRange results,
                                  llvm::StringRef what);

} // namespace gdn

#endif // GDN_DIALECT_TILECHECKS_H
