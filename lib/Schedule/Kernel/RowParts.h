// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row of f32 as tensor cores multiply it with bytes.
#ifndef GDN_LIB_SCHEDULE_KERNEL_ROWPARTS_H
#define GDN_LIB_SCHEDULE_KERNEL_ROWPARTS_H

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/IR/Builders.h"

#include <array>

namespace gdn {

/// A row, 1 x d of f32, as the sum of two of f16 times a power of two: both,
/// and the power, per_row in f32. Elements may be lost of rows that are smaller
/// than 2^-100.
std::array<mlir::Value, 3> emitRowParts(mlir::OpBuilder &b, mlir::Location loc,
                                        mlir::Value row);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_ROWPARTS_H
