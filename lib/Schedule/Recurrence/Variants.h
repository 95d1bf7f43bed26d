// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of a tile program that are scheduled in another way, and which
// launches take them.
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_VARIANTS_H
#define GDN_LIB_SCHEDULE_RECURRENCE_VARIANTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// A copy of a program, as a variant for launches of `least` to `most` units; 0
/// for one of them: without that bound.
mlir::func::FuncOp addVariant(mlir::func::FuncOp source,
                              llvm::StringRef variant, int64_t least,
                              int64_t most = 0);

/// Launches of `least` to `most` units take a variant, too, if they have so
/// many rows, or more; `most` is above what it has been for.
void addUnits(mlir::func::FuncOp variant, int64_t least, int64_t most,
              int64_t rows);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_VARIANTS_H
