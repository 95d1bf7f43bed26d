// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a schedule of products needs of a multiprocessor.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_REGISTERMODEL_H
#define GDN_LIB_SCHEDULE_PRODUCTS_REGISTERMODEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// Registers that a thread of a tile program of products will take, about, with
/// `numWarps` warps. If `together`, four warps may make a product together: its
/// left operand and its result are then in registers as a whole until it is
/// made.
int64_t countRegisters(mlir::func::FuncOp program, int64_t numWarps,
                       bool together);

/// Registers that a thread may have in blocks of `numWarps` warps of which a
/// multiprocessor holds `numBlocks`.
int64_t getMostRegisters(int64_t numWarps, int64_t numBlocks);

/// Bytes of the shared tiles of a `gdn_gpu` program.
int64_t countSharedBytes(mlir::func::FuncOp kernel);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_REGISTERMODEL_H
