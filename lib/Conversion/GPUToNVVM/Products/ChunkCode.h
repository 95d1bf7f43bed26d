// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops of a chunk with a decay per channel have in common: 32 tokens
// and 128 channels in panels of 128 bytes a row, of 64 channels of 16 bits or
// 32 of f32, in which the pieces of 16 bytes of a row are swizzled by the row's
// last three bits. Addresses are i32, so that those of the 16 channels of a
// slice are one XOR away from one another.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKCODE_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKCODE_H

#include "Products/WordMaths.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

class ChunkCode : protected WordMaths {
public:
  static constexpr int64_t rowBytes = 128;
  static constexpr int64_t blockTokens = 16, tokens = 32, channels = 128;
  static constexpr int64_t blockBytes = blockTokens * rowBytes;
  static constexpr int64_t panelBytes = tokens * rowBytes;
  /// Of 16 channels of 16 bits.
  static constexpr int64_t sliceBytes = 32;

protected:
  /// `values` has the pointers of tiles.
  ChunkCode(mlir::OpBuilder &b, mlir::Location loc, const BlockThreads &threads,
            const mlir::IRMapping &values);

  mlir::Value addressOf(mlir::Value tile);
  mlir::Value load(mlir::Type type, mlir::Value address, int64_t offset);
  /// The elements of a vector of f32.
  Numbers loadNumbers(mlir::Value address, int64_t offset, int64_t count);
  void store(mlir::Value value, mlir::Value address, int64_t offset);
  /// Four blocks of 8 x 8: rows 0-7 and 8-15 of the first eight columns, then
  /// of the next.
  Words loadBlocks(mlir::Value address, bool transpose = false);
  void storeBlocks(mlir::Value address, mlir::ValueRange words);

  /// 2^x, or 2^-x, where it stands: apart, they would be held in registers.
  mlir::Value exp2(mlir::Value x, bool isInverse = false);

  /// Where the lane's row of a 16 x 16 block begins that ldmatrix and stmatrix
  /// name, with the blocks of `Words` in their order, or of a right operand
  /// whose rows are columns of the product.
  mlir::Value rowOfBlocks(bool isRight = false);
  /// The same of scores of keys, in the logs: behind what `decay_within` has
  /// there.
  mlir::Value rowOfKeyScores();

  const mlir::IRMapping &values;
  mlir::Value lane, warp;
  /// Of an accumulator: the row and the first of two columns.
  mlir::Value row, column;
  /// For ldmatrix: the row in a block, and which block.
  mlir::Value rowIn, block;

private:
  mlir::Value pointerTo(mlir::Value address, int64_t offset = 0);
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKCODE_H
