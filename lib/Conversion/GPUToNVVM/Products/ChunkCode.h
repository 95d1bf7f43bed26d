// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops of a chunk with a decay per channel have in common: 32 tokens
// and 128 channels in panels of 128 bytes a row, of 64 channels of 16 bits or
// 32 of f32, in which the pieces of 16 bytes of a row are swizzled by the row's
// last three bits. Addresses are i32, so that those of the 16 channels of a
// slice are one XOR away from one another.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKCODE_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKCODE_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

class ChunkCode {
public:
  static constexpr int64_t rowBytes = 128;
  static constexpr int64_t blockTokens = 16, tokens = 32, channels = 128;
  static constexpr int64_t blockBytes = blockTokens * rowBytes;
  static constexpr int64_t panelBytes = tokens * rowBytes;
  /// Of 16 channels of 16 bits.
  static constexpr int64_t sliceBytes = 32;

protected:
  /// Four blocks of 8 x 8, two elements of each in a word: rows 0-7 and 8-15
  /// of the first eight columns, then of the next.
  using Words = llvm::SmallVector<mlir::Value, 4>;
  using Numbers = llvm::SmallVector<mlir::Value, 4>;

  ChunkCode(mlir::OpBuilder &b, mlir::Location loc,
            const BlockThreads &threads);

  mlir::Value address(mlir::Value pointer);
  mlir::Value add(mlir::Value x, int64_t constant);
  mlir::Value add(mlir::Value x, mlir::Value y) { return a.add(x, y); }
  mlir::Value flip(mlir::Value x, int64_t bits);
  mlir::Value flip(mlir::Value x, mlir::Value y);
  mlir::Value bits(mlir::Value x, int64_t mask);
  mlir::Value left(mlir::Value x, int64_t count);
  mlir::Value right(mlir::Value x, int64_t count);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

  mlir::Value load(mlir::Type type, mlir::Value address, int64_t offset);
  /// The elements of a vector of f32.
  Numbers loadNumbers(mlir::Value address, int64_t offset, int64_t count);
  void store(mlir::Value value, mlir::Value address, int64_t offset);
  void storeNumbers(mlir::ValueRange numbers, mlir::Value address,
                    int64_t offset);
  Words loadBlocks(mlir::Value address, bool transpose = false);
  void storeBlocks(mlir::Value address, mlir::ValueRange words);
  void syncWarp();

  mlir::Value f32(float value);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value negate(mlir::Value x);
  /// 2^x, or 2^-x, where it stands: apart, they would be held in registers.
  mlir::Value exp2(mlir::Value x, bool isInverse = false);
  mlir::Value roundPair(mlir::Value x, mlir::Value y);
  /// Words of f16, two by two.
  mlir::Value mulWords(mlir::Value x, mlir::Value y);
  /// The two numbers of a word of bf16 or f16.
  std::array<mlir::Value, 2> widen(mlir::Value word, mlir::Type element);
  Numbers addProduct(mlir::ValueRange left, mlir::ValueRange right,
                     mlir::ValueRange sums);
  Numbers addTf32(mlir::ValueRange left, mlir::ValueRange right,
                  mlir::ValueRange sums);
  Numbers zeros() { return Numbers(4, f32(0)); }

  /// Where the lane's row of a 16 x 16 block begins that ldmatrix and stmatrix
  /// name, with the blocks of `Words` in their order, or of a right operand
  /// whose rows are columns of the product.
  mlir::Value rowOfBlocks(bool isRight = false);
  /// The same of scores of keys, in the logs: behind what `decay_within` has
  /// there.
  mlir::Value rowOfKeyScores();

  mlir::OpBuilder &b;
  mlir::Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  mlir::Value lane;
  /// Of an accumulator: the row and the first of two columns.
  mlir::Value row, column;
  /// For ldmatrix: the row in a block, and which block.
  mlir::Value rowIn, block;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKCODE_H
