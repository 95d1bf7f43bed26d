// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row of f32 as tensor cores multiply it with bytes, or with numbers of 16
// bits.
#ifndef GDN_LIB_SCHEDULE_KERNEL_ROWPARTS_H
#define GDN_LIB_SCHEDULE_KERNEL_ROWPARTS_H

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/IR/Builders.h"

#include <array>

namespace gdn {

/// A row, 1 x d of f32, as integers of 23 bits times a power of two: the
/// integers as sums of three bytes less 128 times 1, 256 and 65536, 1 x d of i8
/// each, and the power, per_row in f32. The power of a row with an element that
/// is not finite is NaN. Elements may be lost of rows that are smaller than
/// 2^-100.
std::array<mlir::Value, 4> emitRowParts(mlir::OpBuilder &b, mlir::Location loc,
                                        mlir::Value row);

/// A row, 1 x d of f32, as the sum of three of `element`, bf16 or f16; behind
/// them, of f16, the power of two that the sum counts, per_row in f32, with the
/// exceptions above.
llvm::SmallVector<mlir::Value> emitNarrowParts(mlir::OpBuilder &b,
                                               mlir::Location loc,
                                               mlir::Value row,
                                               mlir::Type element);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_ROWPARTS_H
