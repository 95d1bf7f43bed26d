// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matrix of 16 x 16 tokens is the left operand of a product with their logs.
#include "Products/TokenDecays.h"

#include "Fragments/SharedMatrix.h"
#include "Products/ProductFamily.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

/// A word of a matrix: ones where `isOne` of the lane's row and of a column
/// says so.
Value TokenDecays::wordOfOnes(function_ref<Value(Value)> isOne, int32_t one) {
  Value word;
  for (int32_t e = 0; e < 2; ++e) {
    Value part =
        arith::SelectOp::create(b, loc, isOne(a.add(ownColumn, a.i32(e))),
                                a.i32(one << 16 * e), a.i32(0));
    word = word ? arith::OrIOp::create(b, loc, word, part) : part;
  }
  return word;
}

void TokenDecays::makeMatrices() {
  constexpr int32_t one = 0x3c00, minusOne = 0xbc00; // of f16
  auto isBehind = [&](Value column) { return a.isLess(ownRow, column); };
  auto isUpTo = [&](Value column) {
    return a.isLess(column, a.add(ownRow, a.i32(1)));
  };
  Value behind = wordOfOnes(isBehind, one), upTo = wordOfOnes(isUpTo, one);
  Value none = a.i32(0), ones = a.i32(one << 16 | one);
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
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  for (size_t i = 0; i < logs.size(); i += 2)
    llvm::append_range(sums,
                       emitMma(b, loc, b.getF16Type(), matrix, logs.slice(i, 2),
                               SmallVector<Value, 4>(4, zero)));
  return sums;
}

TokenDecays::Numbers TokenDecays::exp2(ArrayRef<Value> sums) {
  return llvm::map_to_vector<8>(sums, [&](Value sum) -> Value {
    return math::Exp2Op::create(b, loc, sum, arith::FastMathFlags::afn);
  });
}

std::array<TokenDecays::Numbers, 2> TokenDecays::ofBlock(ArrayRef<Value> logs) {
  return {exp2(sumsOf(logs, fromFirst)), exp2(sumsOf(logs, toLast))};
}

std::array<TokenDecays::Numbers, 2>
TokenDecays::aroundMiddle(ArrayRef<Value> logs) {
  auto pair = VectorType::get({2}, b.getF16Type());
  Value least = arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(
          pair,
          b.getF16FloatAttr(gdn::gpu::DecayOperandsOp::leastLogOfScores)));
  SmallVector<Value, 4> bounded;
  for (Value word : logs) {
    Value both = arith::MaximumFOp::create(
        b, loc, fromWords(b, loc, word, b.getF16Type()), least);
    bounded.push_back(getWords(b, loc, both).front());
  }
  Numbers sums = sumsOf(bounded, fromMiddle), negative;
  for (Value sum : sums)
    negative.push_back(arith::NegFOp::create(b, loc, sum));
  return {exp2(sums), exp2(negative)};
}
