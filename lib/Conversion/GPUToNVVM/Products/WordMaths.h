// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words of two numbers of 16 bits, as products of a warp take them.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_WORDMATHS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_WORDMATHS_H

#include "Products/ThreadMaths.h"

namespace gdn {

struct WordMaths : ThreadMaths {
  using ThreadMaths::ThreadMaths;

  using Words = llvm::SmallVector<mlir::Value, 4>;
  using Numbers = llvm::SmallVector<mlir::Value, 4>;

  /// Of f16: as a vector, as a word.
  mlir::Value roundedPair(mlir::Value x, mlir::Value y) const;
  mlir::Value roundPair(mlir::Value x, mlir::Value y) const;
  Words roundPairs(mlir::ValueRange numbers) const;
  mlir::Value timesWords(mlir::Value x, mlir::Value y) const;
  Words timesWords(mlir::ValueRange x, mlir::ValueRange y) const;
  /// As a word: two numbers of f16, of which none is less than `least`.
  mlir::Value atLeast(mlir::Value pair, mlir::FloatAttr least) const;
  mlir::Value negativeWord(mlir::Value word) const {
    return flip(word, int32_t(0x80008000));
  }
  /// The two numbers of a word of `element`.
  Numbers widen(mlir::Value word, mlir::Type element) const;

  /// sums + left * right, of words of f16, or of numbers of which tf32 drops
  /// the last bits.
  Numbers addProduct(mlir::ValueRange left, mlir::ValueRange right,
                     mlir::ValueRange sums) const;
  Numbers addTf32(mlir::ValueRange left, mlir::ValueRange right,
                  mlir::ValueRange sums) const;
  /// 2^x, as good as 16 bits ask.
  mlir::Value exp2(mlir::Value x) const;

  /// Sums of a product to begin with.
  Numbers zeros() const { return Numbers(4, f32(0)); }
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_WORDMATHS_H
