// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matrix of 16 x 16 tokens is the left operand of a product with their logs.
#include "Products/TokenDecays.h"

#include "Fragments/SharedMatrix.h"

using namespace mlir;
using namespace gdn;

/// A word of a matrix: ones where `isOne` of the lane's row and of a column
/// says so.
Value TokenDecays::wordOfOnes(function_ref<Value(Value)> isOne, int32_t one) {
  Value word;
  for (int32_t e = 0; e < 2; ++e) {
    Value part =
        select(isOne(add(ownColumn, i32(e))), i32(one << 16 * e), i32(0));
    word = word ? arith::OrIOp::create(b, loc, word, part) : part;
  }
  return word;
}

void TokenDecays::makeMatrices() {
  constexpr int32_t one = 0x3c00, minusOne = 0xbc00; // of f16
  auto isBehind = [&](Value column) { return isLess(ownRow, column); };
  auto isUpTo = [&](Value column) { return isLess(column, add(ownRow, 1)); };
  Value behind = wordOfOnes(isBehind, one), upTo = wordOfOnes(isUpTo, one);
  Value none = i32(0), ones = i32(one << 16 | one);
  // Words of a left operand: columns of the first eight tokens for rows of the
  // first eight and of the others, then columns of the others.
  fromFirst = {upTo, ones, none, upTo};
  toLast = {behind, none, ones, behind};
  fromMiddle = {wordOfOnes(isBehind, minusOne), none, none, upTo};
}

/// Sums of logs, in the order of the words.
TokenDecays::Numbers TokenDecays::sumsOf(ArrayRef<Value> logs,
                                         ArrayRef<Value> matrix) {
  Numbers sums;
  for (size_t i = 0; i < logs.size(); i += 2)
    llvm::append_range(sums, addProduct(matrix, logs.slice(i, 2), zeros()));
  return sums;
}

TokenDecays::Numbers TokenDecays::decaysOf(ArrayRef<Value> sums) {
  return llvm::map_to_vector<8>(sums, [&](Value sum) { return exp2(sum); });
}

std::array<TokenDecays::Numbers, 2> TokenDecays::ofBlock(ArrayRef<Value> logs) {
  return {decaysOf(sumsOf(logs, fromFirst)), decaysOf(sumsOf(logs, toLast))};
}

std::array<TokenDecays::Numbers, 2>
TokenDecays::aroundMiddle(ArrayRef<Value> logs) {
  auto least = b.getF16FloatAttr(gdn::gpu::DecayOperandsOp::leastLogOfScores);
  SmallVector<Value, 4> bounded;
  for (Value word : logs)
    bounded.push_back(atLeast(fromWords(b, loc, word, b.getF16Type()), least));
  Numbers sums = sumsOf(bounded, fromMiddle);
  Numbers inverse =
      llvm::map_to_vector<8>(sums, [&](Value sum) { return negative(sum); });
  return {decaysOf(sums), decaysOf(inverse)};
}
