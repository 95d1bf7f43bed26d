// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products and decays of tiles that the chunk forms in f32 are made of.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_CHUNKPRODUCTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_CHUNKPRODUCTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace gdn {

class ChunkProducts {
public:
  ChunkProducts(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

protected:
  using Rows = llvm::SmallVector<mlir::Value>;

  static mlir::VectorType typeOf(mlir::Value tile) {
    return mlir::cast<mlir::VectorType>(tile.getType());
  }
  mlir::Value matmul(mlir::Value lhs, mlir::Value rhs, mlir::Value acc = {},
                     bool transposeLhs = false);
  /// A product of which only the lower triangle counts, of `lhs` or of the
  /// result.
  mlir::Value lowerLhs(mlir::Value product);
  mlir::Value lowerResult(mlir::Value product);

  /// Row i times x_i.
  mlir::Value scaleRows(mlir::Value tile, mlir::Value factors);
  /// A row times a number.
  mlir::Value times(mlir::OpBuilder &b, mlir::Value row, double factor);
  /// Row i times exp(x_i), x a tile of one value per row, and `factor`.
  mlir::Value scaleByExp(mlir::Value tile, mlir::Value exponents,
                         double factor = 1);
  /// Each tile times exp(exponents), element by element; with exponents of
  /// rank 1, row by row.
  Rows fade(mlir::ValueRange tiles, mlir::Value exponents);

  /// P = scale (E . products), E the decays; zeros above the diagonal, whatever
  /// stands there.
  mlir::Value decayScores(mlir::Value products, mlir::Value decay,
                          double scale);
  /// e^(G_last) S with one decay for the head.
  mlir::Value decayState(mlir::Value state, mlir::Value sums);
  /// G_last with a decay for each channel.
  mlir::Value lastRow(mlir::Value sums);

  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_CHUNKPRODUCTS_H
