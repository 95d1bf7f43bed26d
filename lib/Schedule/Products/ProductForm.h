// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile program before its products are scheduled.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTFORM_H
#define GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTFORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// Rewrites of a tile program that change no bit: what is rounded to 16 bits is
/// transposed behind that, loads leave loops in which they are always the
/// same, and tiles of few rows go to the branch that uses them.
void bringIntoForm(mlir::func::FuncOp func);

/// True for what comes out transposed as easily: its transposes alone are
/// used.
bool isMadeTransposed(mlir::Value tile);

/// True for loads, stores and work on rows of tiles with too few rows for
/// matrix instructions.
bool isLowWork(mlir::Operation *op);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTFORM_H
