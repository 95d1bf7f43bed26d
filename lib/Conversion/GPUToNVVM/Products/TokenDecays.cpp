// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two matrices are the rows of one product with the logs of eight tokens.
#include "Products/TokenDecays.h"

#include "Products/ProductFamily.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

/// A word of a matrix: ones where `isOne` of the lane's row and of a column
/// says so.
Value TokenDecays::wordOfOnes(function_ref<Value(Value)> isOne) {
  Value word;
  for (int32_t e = 0; e < 2; ++e) {
    const int32_t one = 0x3c00 << 16 * e; // of f16
    Value part = arith::SelectOp::create(
        b, loc, isOne(a.add(ownColumn, a.i32(e))), a.i32(one), a.i32(0));
    word = word ? arith::OrIOp::create(b, loc, word, part) : part;
  }
  return word;
}

void TokenDecays::makeMatrices() {
  auto isBehind = [&](Value column) { return a.isLess(ownRow, column); };
  auto isUpTo = [&](Value column) {
    return a.isLess(column, a.add(ownRow, a.i32(1)));
  };
  behind = wordOfOnes(isBehind);
  upTo = wordOfOnes(isUpTo);
  for (int64_t level = 0; level < 3; ++level) {
    const int64_t size = int64_t(1) << level;
    Value set = arith::AndIOp::create(b, loc, ownRow, a.i32(size));
    Value isSecond = a.isEqual(set, a.i32(size));
    halves[level] = wordOfOnes([&](Value column) {
      Value differs = arith::XOrIOp::create(b, loc, ownRow, column);
      Value isCounted = arith::SelectOp::create(
          b, loc, isSecond, isUpTo(column), isBehind(column));
      return a.both(a.isLess(differs, a.i32(size)), isCounted);
    });
  }
}

/// Decays of the sums that `first` makes, and of those of `second` if that is
/// another.
std::array<TokenDecays::Numbers, 2>
TokenDecays::decaysOf(ArrayRef<Value> logs, Value first, Value second) {
  std::array<Numbers, 2> decays;
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  for (Value word : logs) {
    SmallVector<Value, 4> sums =
        emitMma(b, loc, b.getF16Type(), {first, second}, word,
                SmallVector<Value, 4>(4, zero));
    for (size_t i = 0; i < (first == second ? 2 : 4); ++i)
      decays[i / 2].push_back(
          math::Exp2Op::create(b, loc, sums[i], arith::FastMathFlags::afn));
  }
  return decays;
}

std::array<TokenDecays::Numbers, 2>
TokenDecays::ofSmallHalves(ArrayRef<Value> logs) {
  return decaysOf(logs, halves[0], halves[1]);
}

TokenDecays::Numbers TokenDecays::ofFour(ArrayRef<Value> logs) {
  return decaysOf(logs, halves[2], halves[2])[0];
}

std::array<TokenDecays::Numbers, 2> TokenDecays::ofEight(ArrayRef<Value> logs) {
  return decaysOf(logs, behind, upTo);
}
