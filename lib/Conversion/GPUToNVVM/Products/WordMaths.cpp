// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs of numbers as vectors of two elements, and as words.
#include "Products/WordMaths.h"

#include "Fragments/SharedMatrix.h"
#include "Products/ProductFamily.h"

using namespace mlir;
using namespace gdn;

Value WordMaths::roundedPair(Value x, Value y) const {
  auto pair = VectorType::get({2}, b.getF16Type());
  return arith::TruncFOp::create(b, loc, pair, vectorOf({x, y}));
}

Value WordMaths::roundPair(Value x, Value y) const {
  return getWords(b, loc, roundedPair(x, y)).front();
}

Value WordMaths::atLeast(Value pair, FloatAttr least) const {
  auto splat = DenseElementsAttr::get(cast<VectorType>(pair.getType()), least);
  Value bound = arith::ConstantOp::create(b, loc, splat);
  return getWords(b, loc, larger(pair, bound)).front();
}

Value WordMaths::exp2(Value x) const {
  return math::Exp2Op::create(b, loc, x, arith::FastMathFlags::afn);
}

WordMaths::Words WordMaths::roundPairs(ValueRange numbers) const {
  Words words;
  for (size_t i = 0; i < numbers.size(); i += 2)
    words.push_back(roundPair(numbers[i], numbers[i + 1]));
  return words;
}

Value WordMaths::timesWords(Value x, Value y) const {
  Type f16 = b.getF16Type();
  return getWords(b, loc,
                  times(fromWords(b, loc, x, f16), fromWords(b, loc, y, f16)))
      .front();
}

WordMaths::Words WordMaths::timesWords(ValueRange x, ValueRange y) const {
  Words words;
  for (auto [word, factor] : llvm::zip_equal(x, y))
    words.push_back(timesWords(word, factor));
  return words;
}

WordMaths::Numbers WordMaths::widen(Value word, Type element) const {
  auto pair = VectorType::get({2}, b.getF32Type());
  return Numbers(elementsOf(
      arith::ExtFOp::create(b, loc, pair, fromWords(b, loc, word, element))));
}

WordMaths::Numbers WordMaths::addProduct(ValueRange left, ValueRange right,
                                         ValueRange sums) const {
  return emitMma(b, loc, b.getF16Type(), left, right, sums);
}

WordMaths::Numbers WordMaths::addTf32(ValueRange left, ValueRange right,
                                      ValueRange sums) const {
  auto words = [&](ValueRange numbers) {
    return llvm::map_to_vector<4>(numbers,
                                  [&](Value number) { return asBits(number); });
  };
  return emitTf32Mma(b, loc, words(left), words(right), sums);
}
