// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decays between tokens of a block of 16, a block for a warp, as exponentials
// of sums of logs.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_TOKENDECAYS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_TOKENDECAYS_H

#include "Kernel/BlockThreads.h"

#include <array>

namespace gdn {

/// Sums of logs are products of these, f16 to base 2, with matrices of zeros
/// and ones of 8 x 8 tokens. Logs of a slice are four words of two channels, as
/// a right operand has them: words 0 and 2 of the first eight tokens, 1 and 3
/// of the others. Decays are two numbers for each word, of the token `ownRow`
/// of the eight.
class TokenDecays {
public:
  using Numbers = llvm::SmallVector<mlir::Value, 8>;

  TokenDecays(mlir::OpBuilder &b, mlir::Location loc, mlir::Value ownRow,
              mlir::Value ownColumn)
      : b(b), loc(loc), a{b, loc}, ownRow(ownRow), ownColumn(ownColumn) {}

  /// Ahead of all else: the lane's words of the matrices.
  void makeMatrices();
  /// With halves of one token, and of two: from the first token of a second
  /// half on, with that of the token; behind a token of a first half to its
  /// end.
  std::array<Numbers, 2> ofSmallHalves(llvm::ArrayRef<mlir::Value> logs);
  /// The same with halves of four tokens.
  Numbers ofFour(llvm::ArrayRef<mlir::Value> logs);
  /// Behind the token to the end of the eight; and from their first one on,
  /// with that of the token.
  std::array<Numbers, 2> ofEight(llvm::ArrayRef<mlir::Value> logs);

private:
  mlir::Value wordOfOnes(llvm::function_ref<mlir::Value(mlir::Value)> isOne);
  std::array<Numbers, 2> decaysOf(llvm::ArrayRef<mlir::Value> logs,
                                  mlir::Value first, mlir::Value second);

  mlir::OpBuilder &b;
  mlir::Location loc;
  Arithmetic a;
  mlir::Value ownRow, ownColumn;
  std::array<mlir::Value, 3> halves; // of one token, two and four
  mlir::Value behind, upTo;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_TOKENDECAYS_H
