// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.block_inverses and gdn_gpu.join_inverses. Of both blocks at the same
// time a lane has a column of the inverse, which is found by substitution: row
// by row what is known is taken off the rows below.
#include "Products/ChunkCode.h"
#include "Products/ChunkOps.h"

using namespace mlir;
using namespace gdn;

using gdn::gpu::BlockInversesOp;
using gdn::gpu::DecayWithinOp;
using gdn::gpu::JoinInversesOp;

namespace {

class BlockInverses : public ChunkCode {
public:
  BlockInverses(OpBuilder &b, const BlockThreads &threads, BlockInversesOp op,
                const IRMapping &values)
      : ChunkCode(b, op.getLoc(), threads, values),
        scores(add(addressOf(op.getLogDecay()), panelBytes)),
        products(addressOf(op.getProducts())),
        beta(vector::ExtractOp::create(b, loc, values.lookup(op.getBeta()), 0)),
        scale(times(values.lookup(op.getScale()),
                    f32(DecayWithinOp::scaleOfScores))) {}
  void emit();

private:
  /// From the sums of the first 64 channels to those of the others.
  static constexpr int64_t otherSums = 2 * panelBytes;
  /// A column of a block below the diagonal.
  static constexpr int64_t columnBytes = blockTokens * 4;

  void shareScores(int64_t block);
  SmallVector<Value> substitute(Value lower, Value unitRow);

  Value scores, products, beta, scale;
};

class JoinInverses : public ChunkCode {
public:
  JoinInverses(OpBuilder &b, const BlockThreads &threads, JoinInversesOp op,
               const IRMapping &values)
      : ChunkCode(b, op.getLoc(), threads, values),
        logDecay(addressOf(op.getLogDecay())),
        products(addressOf(op.getProducts())) {}
  void emit();

private:
  Words multiply(ArrayRef<Value> left, ArrayRef<Value> right);

  Value logDecay, products;
};

} // namespace

/// Both sums of the scores of a block: those of queries, and `beta` times those
/// of keys, by columns, in the place of what was read.
void BlockInverses::shareScores(int64_t number) {
  const int64_t at = number * blockBytes;
  Value from = add(add(scores, left(lane, 4)), at);
  std::array<Numbers, 3> sums;
  for (auto [i, sum] : llvm::enumerate(sums)) {
    sum = loadNumbers(from, i * 512, 4);
    Numbers other = loadNumbers(from, otherSums + i * 512, 4);
    for (auto [x, y] : llvm::zip_equal(sum, other))
      x = plus(x, y);
  }
  const auto &[first, below, second] = sums;
  Value scaleOfKeys[2];
  for (int64_t half = 0; half < 2; ++half) {
    Value token = add(row, number * blockTokens + half * 8);
    Value ofRow = shuffle(NVVM::ShflKind::idx, beta, token);
    scaleOfKeys[half] = times(ofRow, f32(DecayWithinOp::scaleOfScores));
  }
  syncWarp(); // all have loaded what is written below
  Value to =
      add(add(scores, add(mul(column, i32(columnBytes)), left(row, 2))), at);
  for (int64_t e = 0; e < 2; ++e) {
    const int64_t place = e * columnBytes;
    store(times(first[2 + e], scaleOfKeys[0]), to, place);
    store(times(below[2 + e], scaleOfKeys[1]), to, place + 32);
    store(times(second[2 + e], scaleOfKeys[1]), to,
          place + 8 * columnBytes + 32);
  }
  auto upToDiagonal = [&](const Numbers &sum) {
    Numbers kept;
    for (int64_t e = 0; e < 2; ++e)
      kept.push_back(
          select(isLess(row, add(column, e)), f32(0), times(sum[e], scale)));
    return roundPair(kept[0], kept[1]);
  };
  storeBlocks(add(add(products, flip(rowOfBlocks(), 64 + 32 * number)), at),
              {upToDiagonal(first),
               roundPair(times(below[0], scale), times(below[1], scale)),
               i32(0), upToDiagonal(second)});
}

/// The lane's column of the inverse of one plus `lower`, which lies by columns.
SmallVector<Value> BlockInverses::substitute(Value lower, Value unitRow) {
  SmallVector<Value> inverse;
  for (int64_t i = 0; i < blockTokens; ++i)
    inverse.push_back(select(isEqual(unitRow, i32(i)), f32(1), f32(0)));
  for (int64_t j = 0; j + 1 < blockTokens; ++j)
    for (int64_t i = (j + 1) / 4 * 4; i < blockTokens; i += 4) {
      Numbers ofColumn = loadNumbers(lower, j * columnBytes + i * 4, 4);
      for (int64_t e = 0; e < 4; ++e)
        if (i + e > j)
          inverse[i + e] =
              fma(negative(ofColumn[e]), inverse[j], inverse[i + e]);
    }
  return inverse;
}

void BlockInverses::emit() {
  for (int64_t block : {0, 1})
    shareScores(block);
  syncWarp();
  Value number = right(lane, 4), unitRow = bitAnd(lane, 15);
  Value ofBlock = left(number, 11);
  SmallVector<Value> inverse = substitute(add(scores, ofBlock), unitRow);
  Value piece = add(left(number, 1), right(unitRow, 3));
  Value to = add(add(products, ofBlock),
                 add(left(piece, 4), left(bitAnd(unitRow, 7), 1)));
  for (int64_t i = 0; i < blockTokens; ++i)
    store(arith::TruncFOp::create(b, loc, b.getF16Type(),
                                  times(inverse[i], beta)),
          flip(to, i % 8 * 16), i * rowBytes);
  syncWarp();
}

/// What is below the diagonal: minus the second inverse by scores of keys by
/// the first.
void JoinInverses::emit() {
  Value rows = rowOfBlocks(), first = add(products, rows);
  Words second = loadBlocks(add(add(products, flip(rows, 32)), blockBytes));
  Words ofFirst = loadBlocks(first, /*transpose=*/true);
  Words scores =
      loadBlocks(add(logDecay, rowOfKeyScores()), /*transpose=*/true);
  for (Value &word : second)
    word = negativeWord(word);
  storeBlocks(add(first, blockBytes),
              multiply(multiply(second, scores), ofFirst));
}

ChunkCode::Words JoinInverses::multiply(ArrayRef<Value> left,
                                        ArrayRef<Value> right) {
  Words result;
  for (int64_t half = 0; half < 2; ++half) {
    Numbers sums = addProduct(left, right.slice(2 * half, 2), zeros());
    llvm::append_range(result, roundPairs(sums));
  }
  return result;
}

void gdn::emitChunkOp(OpBuilder &b, const BlockThreads &threads,
                      JoinInversesOp op, const IRMapping &values) {
  JoinInverses(b, threads, op, values).emit();
}

void gdn::emitChunkOp(OpBuilder &b, const BlockThreads &threads,
                      BlockInversesOp op, const IRMapping &values) {
  BlockInverses(b, threads, op, values).emit();
}
