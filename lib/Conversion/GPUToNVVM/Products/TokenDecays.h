// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decays between tokens of a block of 16, a block for a warp, as exponentials
// of sums of logs.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_TOKENDECAYS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_TOKENDECAYS_H

#include "Products/WordMaths.h"

#include <array>

namespace gdn {

/// Sums of logs are products of these, f16 to base 2, with matrices of zeros
/// and ones of 16 x 16 tokens. Logs of a slice are four words of two tokens, as
/// a right operand has them: words 0 and 2 of the first eight tokens, 1 and 3
/// of the others. Decays are two numbers for each word, of channels that lie
/// side by side: words 0 and 2 of the token `ownRow`, 1 and 3 of the one eight
/// further on.
class TokenDecays : WordMaths {
public:
  using Numbers = llvm::SmallVector<mlir::Value, 8>;

  TokenDecays(mlir::OpBuilder &b, mlir::Location loc, mlir::Value ownRow,
              mlir::Value ownColumn)
      : WordMaths(b, loc), ownRow(ownRow), ownColumn(ownColumn) {}

  /// Ahead of all else: the lane's words of the matrices.
  void makeMatrices();
  /// From the first token on, with that of the token; and behind the token, to
  /// the last one.
  std::array<Numbers, 2> ofBlock(llvm::ArrayRef<mlir::Value> logs);
  /// From the middle of the 16 tokens to behind the token, and its inverse: the
  /// product of one of a token and the inverse of one before is the decay
  /// between. No log counts as less than `leastLogOfScores`, so both are
  /// finite.
  std::array<Numbers, 2> aroundMiddle(llvm::ArrayRef<mlir::Value> logs);

private:
  mlir::Value wordOfOnes(llvm::function_ref<mlir::Value(mlir::Value)> isOne,
                         int32_t one);
  Numbers sumsOf(llvm::ArrayRef<mlir::Value> logs,
                 llvm::ArrayRef<mlir::Value> matrix);
  Numbers decaysOf(llvm::ArrayRef<mlir::Value> sums);

  mlir::Value ownRow, ownColumn;
  std::array<mlir::Value, 4> fromFirst, toLast, fromMiddle;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_TOKENDECAYS_H
