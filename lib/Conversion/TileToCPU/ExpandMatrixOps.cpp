// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products on the CPU. A block of the result lives in registers while one loop
// runs over the inner dimension: a few vectors of a row of `rhs`, times single
// elements of `lhs` that the multiplication broadcasts from memory. Tiles fit
// the second-level cache, so nothing is packed.
#include "ExpandMatrixOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

namespace {
/// Loops and accesses at one location.
struct Loops {
  OpBuilder &b;
  Location loc;

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, int64_t y) {
    return y ? arith::AddIOp::create(b, loc, x, index(y)).getResult() : x;
  }
  /// Enters a loop: the builder then stands in its body.
  scf::ForOp enter(Value from, Value to, int64_t step, ValueRange inits = {}) {
    auto loop = scf::ForOp::create(b, loc, from, to, index(step), inits);
    b.setInsertionPointToStart(loop.getBody());
    return loop;
  }
  Value read(VectorType type, Value place, Value row, Value column) {
    return vector::LoadOp::create(b, loc, type, place, ValueRange{row, column});
  }
  void write(Value value, Value place, Value row, Value column) {
    vector::StoreOp::create(b, loc, value, place, ValueRange{row, column});
  }
  Value element(Value place, Value row, Value column) {
    return memref::LoadOp::create(b, loc, place, ValueRange{row, column});
  }
};
} // namespace

/// The largest of `sizes` that divides `count`.
static int64_t divisor(int64_t count, ArrayRef<int64_t> sizes) {
  for (int64_t size : sizes)
    if (count % size == 0)
      return size;
  return 1;
}

void gdn::expandMatmul(OpBuilder &b, tile::MatmulOp matmul,
                       const MatmulPlaces &places, int64_t lanes) {
  OpBuilder::InsertionGuard guard(b);
  Loops l{b, matmul.getLoc()};
  VectorType type = matmul.getResult().getType();
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  int64_t inner = matmul.getRhs().getType().getDimSize(0);
  bool transposed = matmul.getTransposeLhs();
  while (columns % lanes != 0)
    lanes /= 2;
  // 16 registers (lanes of 8) hold 4 x 2 sums, 32 registers 8 x 3 at most.
  bool many = lanes == 16;
  int64_t blockRows = divisor(rows, many ? ArrayRef<int64_t>{8, 4, 2}
                                         : ArrayRef<int64_t>{4, 2});
  int64_t blockVectors =
      divisor(columns / lanes,
              many ? ArrayRef<int64_t>{3, 2} : ArrayRef<int64_t>{3, 2});
  auto vector = VectorType::get({lanes}, b.getF32Type());

  Value j = l.enter(l.index(0), l.index(columns), blockVectors * lanes)
                .getInductionVar();
  Value i = l.enter(l.index(0), l.index(rows), blockRows).getInductionVar();
  SmallVector<Value> sums;
  Value zero = arith::ConstantOp::create(b, l.loc, b.getZeroAttr(vector));
  for (int64_t r = 0; r < blockRows; ++r)
    for (int64_t v = 0; v < blockVectors; ++v)
      sums.push_back(places.acc ? l.read(vector, places.acc, l.add(i, r),
                                         l.add(j, v * lanes))
                                : zero);
  scf::ForOp loop = l.enter(l.index(0), l.index(inner), 1, sums);
  Value k = loop.getInductionVar();
  SmallVector<Value> right, next(loop.getRegionIterArgs());
  for (int64_t v = 0; v < blockVectors; ++v)
    right.push_back(l.read(vector, places.rhs, k, l.add(j, v * lanes)));
  for (int64_t r = 0; r < blockRows; ++r) {
    Value row = l.add(i, r);
    Value x = transposed ? l.element(places.lhs, k, row)
                         : l.element(places.lhs, row, k);
    Value left = vector::BroadcastOp::create(b, l.loc, vector, x);
    for (int64_t v = 0; v < blockVectors; ++v) {
      Value &sum = next[r * blockVectors + v];
      sum = vector::FMAOp::create(b, l.loc, left, right[v], sum);
    }
  }
  scf::YieldOp::create(b, l.loc, next);
  b.setInsertionPointAfter(loop);
  for (int64_t r = 0; r < blockRows; ++r)
    for (int64_t v = 0; v < blockVectors; ++v)
      l.write(loop.getResult(r * blockVectors + v), places.result, l.add(i, r),
              l.add(j, v * lanes));
}

void gdn::expandTranspose(OpBuilder &b, Location loc, Value from, Value to) {
  OpBuilder::InsertionGuard guard(b);
  Loops l{b, loc};
  auto type = cast<MemRefType>(from.getType());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  // Blocks of 8 x 8 stay in registers.
  int64_t side = rows % 8 == 0 && columns % 8 == 0 ? 8 : 1;
  Value i = l.enter(l.index(0), l.index(rows), side).getInductionVar();
  Value j = l.enter(l.index(0), l.index(columns), side).getInductionVar();
  if (side == 1) {
    Value x = l.element(from, i, j);
    memref::StoreOp::create(b, loc, x, to, ValueRange{j, i});
    return;
  }
  // log2(8) rounds of exchanging halves of row pairs: after round `step`,
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
  Loops l{b, loc};
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
