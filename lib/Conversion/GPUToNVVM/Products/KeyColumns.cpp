// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys of f16 are multiplied as they are: two neighbouring columns of four
// tokens are four words, which a lane of a product loads at once.
#include "Products/KeyColumns.h"

#include "Products/ThreadMaths.h"

using namespace mlir;
using namespace gdn;

namespace {
/// gdn_gpu.share_key_columns: a thread has two columns of four tokens at a
/// time.
class ColumnSharing : KeyColumns {
public:
  ColumnSharing(OpBuilder &b, gdn::gpu::ShareKeyColumnsOp op,
                const IRMapping &values)
      : b(b), loc(op.getLoc()), a(b, loc), from(values.lookup(op.getFrom())),
        to(values.lookup(op.getTo())),
        numTokens(op.getFrom().getType().getShape()[0]),
        columns(op.getFrom().getType().getShape()[1]), isLeft(op.getLeft()) {}
  void emit(const BlockThreads &threads);

private:
  static constexpr int64_t f16Bytes = 2, groups = blockColumns / vectorColumns,
                           shares = stepTokens / laneTokens;

  void emitItem(Value item);

  OpBuilder &b;
  Location loc;
  ThreadMaths a;
  Value from, to;
  int64_t numTokens, columns;
  bool isLeft;
};
} // namespace

void ColumnSharing::emitItem(Value item) {
  const int64_t blocks = columns / blockColumns;
  Value pair = a.remainder(item, pairs);
  Value group = a.remainder(a.divide(item, pairs), groups);
  Value share = a.remainder(a.divide(item, pairs * groups), shares);
  Value place = a.divide(item, pairs * groups * shares); // block and step
  Value column =
      a.add(a.mul(a.remainder(place, blocks), a.i32(blockColumns)),
            a.add(a.mul(group, a.i32(vectorColumns)), a.mul(pair, a.i32(2))));
  Value token = a.add(a.mul(a.divide(place, blocks), a.i32(stepTokens)),
                      a.mul(share, a.i32(laneTokens)));
  Value isToken;
  if (numTokens % stepTokens != 0) {
    isToken = a.isLess(token, a.i32(numTokens));
    token = a.select(isToken, token, a.i32(0));
  }
  const int64_t tokenBytes = f16Bytes * columns;
  Value pointer = a.advance(from, a.add(a.mul(token, a.i32(tokenBytes)),
                                        a.mul(column, a.i32(f16Bytes))));
  SmallVector<Value> two;
  for (int64_t i = 0; i < laneTokens; ++i) {
    Value both = a.load(b.getI32Type(), a.advance(pointer, i * tokenBytes), 4);
    two.push_back(isToken ? a.select(isToken, both, a.i32(0)) : both);
  }
  SmallVector<Value> words;
  for (uint32_t bytes : {0x5410, 0x7632})
    for (int64_t i = 0; i < laneTokens; i += 2)
      words.push_back(a.permute(two[i], two[i + 1], bytes));
  if (isLeft)
    std::swap(words[1], words[2]);
  Value row = a.add(a.mul(place, a.i32(pairs)), pair);
  Value inRow =
      a.add(a.mul(group, a.i32(pairBytes)), a.mul(share, a.i32(laneBytes)));
  auto four = VectorType::get({4}, b.getI32Type());
  LLVM::StoreOp::create(
      b, loc, vector::FromElementsOp::create(b, loc, four, words),
      a.advance(to, a.add(a.mul(row, a.i32(rowBytes)), inRow)), laneBytes);
}

void ColumnSharing::emit(const BlockThreads &threads) {
  const int64_t items = pairs * groups * shares * (columns / blockColumns) *
                        llvm::divideCeil(numTokens, stepTokens);
  Value thread =
      a.add(a.mul(threads.warp, a.i32(gdn::gpu::warpThreads)), threads.lane);
  for (int64_t first = 0; first < items; first += threads.numThreads) {
    Value item = a.add(thread, a.i32(first));
    if (first + threads.numThreads <= items)
      emitItem(item);
    else
      a.onlyIf(a.isLess(item, a.i32(items)), [&] { emitItem(item); });
  }
}

void gdn::emitShareKeyColumns(OpBuilder &b, const BlockThreads &threads,
                              gdn::gpu::ShareKeyColumnsOp op,
                              const IRMapping &values) {
  ColumnSharing(b, op, values).emit(threads);
}

Value gdn::emitTokenUnit(OpBuilder &b, const BlockThreads &threads,
                         gdn::gpu::TokenUnitOp op, const IRMapping &values) {
  const ThreadMaths a(b, op.getLoc());
  constexpr int64_t laneTokens = KeyColumns::laneTokens, f32Bytes = 4;
  const int64_t count = op.getWeights().getType().getShape().back();
  auto isCounted = [&](Value weight) -> Value {
    return arith::CmpFOp::create(b, a.loc, arith::CmpFPredicate::OLT, weight,
                                 a.f32(0x1p72f));
  };
  Value most = a.f32(0x1p-100f);
  for (int64_t first = 0; first < count; first += KeyColumns::stepTokens) {
    // Lanes behind the last token take the last ones.
    Value token = arith::MinUIOp::create(
        b, a.loc,
        a.add(a.mul(a.remainder(threads.lane, 4), a.i32(laneTokens)),
              a.i32(first)),
        a.i32(count - laneTokens));
    Value pointer = a.advance(values.lookup(op.getWeights()),
                              a.mul(token, a.i32(f32Bytes)));
    for (Value weight :
         a.loadAll(b.getF32Type(), laneTokens, pointer, laneTokens * f32Bytes))
      most = a.larger(most, a.select(isCounted(weight), weight, most));
  }
  for (int64_t distance : {1, 2})
    most =
        a.larger(most, a.shuffle(NVVM::ShflKind::bfly, most, a.i32(distance)));
  // 2^8 over its power of two, by the bits of both.
  constexpr int64_t bitsOf256 = 0x43800000, bitsOfOne = 0x3F800000,
                    exponentBits = 0x7F800000;
  return a.asFloat(a.minus(a.i32(bitsOf256 + bitsOfOne),
                           a.bitAnd(a.asBits(most), exponentBits)));
}
