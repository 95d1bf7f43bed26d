// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops for products of tiles, on the buffers of their operands.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_EXPANDMATRIXOPS_H
#define GDN_LIB_CONVERSION_TILETOCPU_EXPANDMATRIXOPS_H

#include "gdn/Dialect/Tile/IR/Tile.h"

namespace gdn {

/// Buffers of a gdn_tile.matmul, all f32; `acc` may be null and may be the
/// place of `result`.
struct MatmulBuffers {
  mlir::Value lhs, rhs, acc, result;
};
void expandMatmul(mlir::OpBuilder &builder, tile::MatmulOp matmul,
                  const MatmulBuffers &buffers, int64_t lanes);

/// Columns of `from` become rows of `to`.
void expandTranspose(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value from, mlir::Value to, int64_t lanes);

/// Forward substitution, row by row; `matrix` and `result` are different
/// buffers.
void expandTriInverse(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value matrix, mlir::Value result, int64_t lanes);

/// Buffers of a gdn_tile.tri_inverse in f16: `from` and `result` in f16, and
/// f32 scratch of their size.
struct NarrowInverseBuffers {
  mlir::Value from, matrix, inverse, result;
};
void expandNarrowInverse(mlir::OpBuilder &builder, mlir::Location loc,
                         const NarrowInverseBuffers &buffers);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_EXPANDMATRIXOPS_H
