// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of log decays, and scores with a decay per channel, on the CPU. A key
// stays in registers while the tokens behind it pass, and fades on its way:
//
//   decay = exp(log_decay)
//   for each token j:
//     w = key[j]
//     for each token i from j on:
//       if i > j: w = w * decay[i]             dk/lanes vectors
//       query_scores[i, j] = w . query[i]
//       key_scores[i, j]   = w . key[i]
//
// No exponential per pair of tokens, and no factor above 1. Products of 16 x 16
// blocks with a row of reference take as many instructions: such a block needs
// its operands scaled, and its sums run over the channels too.
#include "ExpandDecayOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

namespace {

/// Loops over the rows of buffers of one shape, vector by vector.
class RowLoops {
public:
  RowLoops(OpBuilder &b, Location loc, Value buffer, int64_t lanes)
      : b(b), loc(loc), lanes(lanes) {
    auto type = cast<MemRefType>(buffer.getType());
    rows = type.getDimSize(0);
    columns = type.getRank() == 2 ? type.getDimSize(1) : 1;
    while (columns % this->lanes != 0)
      this->lanes /= 2;
    vector = VectorType::get({this->lanes}, b.getF32Type());
  }

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// Enters a loop: the builder then stands in its body.
  scf::ForOp enter(Value from, Value to, int64_t step, ValueRange inits = {}) {
    auto loop = scf::ForOp::create(b, loc, from, to, index(step), inits);
    b.setInsertionPointToStart(loop.getBody());
    return loop;
  }
  /// A vector of a row; the element of a place of rank 1.
  Value read(Value buffer, Value row, Value column) {
    if (cast<MemRefType>(buffer.getType()).getRank() == 1)
      return memref::LoadOp::create(b, loc, buffer, row);
    return vector::LoadOp::create(b, loc, vector, buffer,
                                  ValueRange{row, column});
  }
  void write(Value value, Value buffer, Value row, Value column) {
    if (cast<MemRefType>(buffer.getType()).getRank() == 1)
      memref::StoreOp::create(b, loc, value, buffer, row);
    else
      vector::StoreOp::create(b, loc, value, buffer, ValueRange{row, column});
  }

  OpBuilder &b;
  Location loc;
  int64_t lanes, rows, columns;
  VectorType vector;
};

/// Scores of one key after another with the tokens behind it.
class ScoreLoops : RowLoops {
public:
  ScoreLoops(OpBuilder &b, Location loc, const DecayScoresBuffers &buffers,
             int64_t lanes)
      : RowLoops(b, loc, buffers.key, lanes), buffers(buffers) {}

  void emit();

private:
  using Vectors = SmallVector<Value>;

  Vectors readRow(Value buffer, Value row) {
    Vectors vectors;
    for (int64_t c = 0; c < columns; c += lanes)
      vectors.push_back(read(buffer, row, index(c)));
    return vectors;
  }
  void emitDecay();
  void emitZeros(Value buffer);
  /// Row `i` of both results in column `j`, for the key `faded`.
  void emitScores(ArrayRef<Value> faded, Value i, Value j);

  const DecayScoresBuffers &buffers;
};

} // namespace

/// Adds up rows; a row of `to` gets the sum with its own row, or before it.
static void expandSum(OpBuilder &b, Location loc, Value from, Value to,
                      int64_t lanes, bool fromEnd) {
  OpBuilder::InsertionGuard guard(b);
  RowLoops l(b, loc, from, lanes);
  Type type = cast<MemRefType>(from.getType()).getRank() == 1
                  ? Type(b.getF32Type())
                  : Type(l.vector);
  Value column =
      l.enter(l.index(0), l.index(l.columns), l.lanes).getInductionVar();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  scf::ForOp loop = l.enter(l.index(0), l.index(l.rows), 1, zero);
  Value i = loop.getInductionVar(), before = loop.getRegionIterArg(0);
  if (fromEnd)
    i = arith::SubIOp::create(b, loc, l.index(l.rows - 1), i);
  Value sum = arith::AddFOp::create(b, loc, before, l.read(from, i, column));
  l.write(fromEnd ? before : sum, to, i, column);
  scf::YieldOp::create(b, loc, sum);
}

void gdn::expandPrefixSum(OpBuilder &b, Location loc, Value from, Value to,
                          int64_t lanes) {
  expandSum(b, loc, from, to, lanes, /*fromEnd=*/false);
}

void gdn::expandSuffixSum(OpBuilder &b, Location loc, Value from, Value to,
                          int64_t lanes) {
  expandSum(b, loc, from, to, lanes, /*fromEnd=*/true);
}

void gdn::expandExtractRow(OpBuilder &b, Location loc, Value from, int64_t row,
                           Value to, int64_t lanes) {
  OpBuilder::InsertionGuard guard(b);
  RowLoops l(b, loc, from, lanes);
  Value column =
      l.enter(l.index(0), l.index(l.columns), l.lanes).getInductionVar();
  Value value = l.read(from, l.index(row), column);
  vector::StoreOp::create(b, loc, value, to, column);
}

void gdn::expandDecayMatrix(OpBuilder &b, Location loc, Value logDecay,
                            Value decay, Value to, int64_t lanes) {
  OpBuilder::InsertionGuard guard(b);
  RowLoops l(b, loc, to, lanes);
  auto numbers = VectorType::get({l.lanes}, b.getI32Type());
  {
    OpBuilder::InsertionGuard inner(b);
    Value i = l.enter(l.index(0), l.index(l.rows), l.lanes).getInductionVar();
    Value x = vector::LoadOp::create(b, loc, l.vector, logDecay, i);
    vector::StoreOp::create(b, loc, math::ExpOp::create(b, loc, x), decay, i);
  }
  // Row i is row i - 1 times the decay of token i, and 1 in column i. What has
  // not begun is 0 and stays so.
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(l.vector));
  Value one = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(l.vector, b.getF32FloatAttr(1.0f)));
  scf::ForOp loop = l.enter(l.index(0), l.index(l.rows), 1,
                            SmallVector<Value>(l.columns / l.lanes, zero));
  Value i = loop.getInductionVar();
  Value factor = vector::BroadcastOp::create(
      b, loc, l.vector, memref::LoadOp::create(b, loc, decay, i).getResult());
  Value own = vector::BroadcastOp::create(
      b, loc, numbers,
      arith::IndexCastOp::create(b, loc, b.getI32Type(), i).getResult());
  SmallVector<Value> next;
  for (auto [c, before] : llvm::enumerate(loop.getRegionIterArgs())) {
    SmallVector<int32_t> columns;
    for (int64_t lane = 0; lane < l.lanes; ++lane)
      columns.push_back(c * l.lanes + lane);
    Value column = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(numbers, ArrayRef<int32_t>(columns)));
    Value isOwn =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, column, own);
    Value faded = arith::MulFOp::create(b, loc, before, factor);
    next.push_back(arith::SelectOp::create(b, loc, isOwn, one, faded));
    l.write(next.back(), to, i, l.index(c * l.lanes));
  }
  scf::YieldOp::create(b, loc, next);
}

void ScoreLoops::emitDecay() {
  OpBuilder::InsertionGuard guard(b);
  Value i = enter(index(0), index(rows), 1).getInductionVar();
  Value column = enter(index(0), index(columns), lanes).getInductionVar();
  Value x = read(buffers.logDecay, i, column);
  write(math::ExpOp::create(b, loc, x), buffers.decay, i, column);
}

void ScoreLoops::emitZeros(Value buffer) {
  OpBuilder::InsertionGuard guard(b);
  int64_t width = lanes;
  while (rows % width != 0)
    width /= 2;
  auto type = VectorType::get({width}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value i = enter(index(0), index(rows), 1).getInductionVar();
  Value j = enter(index(0), index(rows), width).getInductionVar();
  write(zero, buffer, i, j);
}

void ScoreLoops::emitScores(ArrayRef<Value> faded, Value i, Value j) {
  for (auto [tile, scores] : {std::pair{buffers.query, buffers.queryScores},
                              std::pair{buffers.key, buffers.keyScores}}) {
    // Two chains, as in the recurrence: additions take four cycles.
    Vectors partial;
    for (auto [c, x] : llvm::enumerate(readRow(tile, i))) {
      if (c < 2)
        partial.push_back(arith::MulFOp::create(b, loc, x, faded[c]));
      else
        partial[c % 2] =
            vector::FMAOp::create(b, loc, x, faded[c], partial[c % 2]);
    }
    Value total = partial[0];
    if (partial.size() > 1)
      total = arith::AddFOp::create(b, loc, partial[0], partial[1]);
    Value sum =
        vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, total,
                                    arith::FastMathFlags::reassoc);
    memref::StoreOp::create(b, loc, sum, scores, ValueRange{i, j});
  }
}

void ScoreLoops::emit() {
  emitDecay();
  emitZeros(buffers.queryScores);
  emitZeros(buffers.keyScores);
  OpBuilder::InsertionGuard guard(b);
  Value j = enter(index(0), index(rows), 1).getInductionVar();
  Vectors key = readRow(buffers.key, j);
  emitScores(key, j, j);
  Value next = arith::AddIOp::create(b, loc, j, index(1));
  scf::ForOp loop = enter(next, index(rows), 1, key);
  Value i = loop.getInductionVar();
  Vectors faded;
  for (auto [w, decay] :
       llvm::zip(loop.getRegionIterArgs(), readRow(buffers.decay, i)))
    faded.push_back(arith::MulFOp::create(b, loc, w, decay));
  emitScores(faded, i, j);
  scf::YieldOp::create(b, loc, faded);
}

void gdn::expandDecayScores(OpBuilder &b, Location loc,
                            const DecayScoresBuffers &buffers, int64_t lanes) {
  ScoreLoops(b, loc, buffers, lanes).emit();
}
