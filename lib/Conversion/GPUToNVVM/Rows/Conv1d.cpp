// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.conv1d: a lane has all tokens of its channels and their history, and
// picks the new window by how many tokens count.
#include "Rows/RowWork.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn;

SmallVector<Value> gdn::emitConv1d(OpBuilder &b, gdn::gpu::Conv1dOp conv,
                                   const IRMapping &values) {
  Location loc = conv.getLoc();
  Arithmetic a{b, loc};
  gdn::gpu::FragmentType input = conv.getInput().getType();
  int64_t tokens = input.getDimSize(0);
  int64_t width = conv.getWeight().getType().getDimSize(0);
  int64_t columns = input.getRows().getLocalColumns(input.getDimSize(1));
  auto slice = [&](Value tile, int64_t row) -> Value {
    return vector::ExtractStridedSliceOp::create(
        b, loc, values.lookup(tile), ArrayRef<int64_t>{row * columns},
        ArrayRef<int64_t>{columns}, ArrayRef<int64_t>{1});
  };
  auto stack = [&](ArrayRef<Value> rows) -> Value {
    auto type =
        VectorType::get({int64_t(rows.size()) * columns}, b.getF32Type());
    Value all = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
    for (auto [i, row] : llvm::enumerate(rows))
      all = vector::InsertStridedSliceOp::create(
          b, loc, row, all, ArrayRef<int64_t>{int64_t(i) * columns},
          ArrayRef<int64_t>{1});
    return all;
  };

  SmallVector<Value> history, weights, results, window;
  for (int64_t row = 0; row + 1 < width; ++row)
    history.push_back(slice(conv.getWindow(), row));
  for (int64_t row = 0; row < tokens; ++row)
    history.push_back(slice(conv.getInput(), row));
  for (int64_t row = 0; row < width; ++row)
    weights.push_back(slice(conv.getWeight(), row));

  for (int64_t t = 0; t < tokens; ++t) {
    Value sum;
    if (conv.getBias())
      sum = values.lookup(conv.getBias());
    for (int64_t j = 0; j < width; ++j)
      sum = sum ? math::FmaOp::create(b, loc, weights[j], history[t + j], sum)
                      .getResult()
                : arith::MulFOp::create(b, loc, weights[j], history[t + j])
                      .getResult();
    results.push_back(sum);
  }
  Value valid = values.lookupOrDefault(conv.getValid());
  APInt known;
  bool isKnown = matchPattern(valid, m_ConstantInt(&known));
  for (int64_t p = 0; p + 1 < width; ++p) {
    if (isKnown) {
      window.push_back(history[known.getSExtValue() + p]);
      continue;
    }
    Value row = history[p];
    for (int64_t v = 1; v <= tokens; ++v) {
      Value isHere = a.isEqual(a.toI64(valid), a.i64(v));
      row = arith::SelectOp::create(b, loc, isHere, history[v + p], row);
    }
    window.push_back(row);
  }
  return {stack(results), stack(window)};
}
