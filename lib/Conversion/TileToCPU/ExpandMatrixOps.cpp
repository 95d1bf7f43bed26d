// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the chunk form needs beside products: transposes, running sums, and
// inverses of triangles.
#include "ExpandMatrixOps.h"
#include "MatrixLoops.h"

using namespace mlir;
using namespace gdn;

void gdn::expandTranspose(OpBuilder &b, Location loc, Value from, Value to,
                          int64_t lanes) {
  OpBuilder::InsertionGuard guard(b);
  MatrixLoops l{b, loc};
  auto type = cast<MemRefType>(from.getType());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  // Blocks of 8 x 8 or 16 x 16 stay in registers.
  int64_t side = lanes == 16 ? 16 : 8;
  if (rows % side != 0 || columns % side != 0)
    side = rows % 8 == 0 && columns % 8 == 0 ? 8 : 1;
  // Rows of `to` are written from end to end: a cache line that is written in
  // two halves at different times costs more than one that is read so.
  Value j = l.enter(l.index(0), l.index(columns), side).getInductionVar();
  Value i = l.enter(l.index(0), l.index(rows), side).getInductionVar();
  if (side == 1) {
    Value x = l.element(from, i, j);
    memref::StoreOp::create(b, loc, x, to, ValueRange{j, i});
    return;
  }
  // log2(side) rounds of exchanging halves of row pairs: after round `step`,
  // rows r and r + step have exchanged their off-diagonal blocks.
  auto vector = VectorType::get({side}, type.getElementType());
  SmallVector<Value> block;
  for (int64_t r = 0; r < side; ++r)
    block.push_back(l.read(vector, from, l.add(i, r), j));
  for (int64_t step = side / 2; step >= 1; step /= 2) {
    SmallVector<int64_t> upper, lower;
    for (int64_t c = 0; c < side; ++c) {
      bool high = c & step;
      upper.push_back(high ? side + (c ^ step) : c);
      lower.push_back(high ? side + c : (c ^ step));
    }
    for (int64_t r = 0; r < side; ++r) {
      if (r & step)
        continue;
      Value x = block[r], y = block[r + step];
      block[r] = vector::ShuffleOp::create(b, loc, vector, x, y, upper);
      block[r + step] = vector::ShuffleOp::create(b, loc, vector, x, y, lower);
    }
  }
  for (int64_t r = 0; r < side; ++r)
    l.write(block[r], to, l.add(j, r), i);
}

void gdn::expandTriInverse(OpBuilder &b, Location loc, Value matrix,
                           Value result, int64_t lanes) {
  // Row i of the inverse is e_i - sum_{j < i} matrix[i, j] * row j.
  OpBuilder::InsertionGuard guard(b);
  MatrixLoops l{b, loc};
  int64_t size = cast<MemRefType>(matrix.getType()).getDimSize(0);
  while (size % lanes != 0)
    lanes /= 2;
  auto vector = VectorType::get({lanes}, b.getF32Type());
  int64_t chunks = size / lanes;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  Value i = l.enter(l.index(0), l.index(size), 1).getInductionVar();
  scf::ForOp loop = l.enter(l.index(0), i, 1, SmallVector<Value>(chunks, zero));
  Value j = loop.getInductionVar();
  Value factor = vector::BroadcastOp::create(
      b, loc, vector,
      arith::NegFOp::create(b, loc, l.element(matrix, i, j)).getResult());
  SmallVector<Value> next(loop.getRegionIterArgs());
  for (int64_t c = 0; c < chunks; ++c)
    next[c] = vector::FMAOp::create(
        b, loc, factor, l.read(vector, result, j, l.index(c * lanes)), next[c]);
  scf::YieldOp::create(b, loc, next);
  b.setInsertionPointAfter(loop);
  for (int64_t c = 0; c < chunks; ++c)
    l.write(loop.getResult(c), result, i, l.index(c * lanes));
  Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1.0f));
  memref::StoreOp::create(b, loc, one, result, ValueRange{i, i});
}
