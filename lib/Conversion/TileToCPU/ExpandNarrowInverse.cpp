// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The triangular inverse of an f16 matrix, by blocks of 16 as the op defines
// it: diagonal blocks by substitution in f32, the others by products whose
// operands are f16. The loops work on f32 copies; a value is rounded to f16 and
// widened again where the definition rounds it. Written to be exact, not fast.
#include "ExpandMatrixOps.h"
#include "MatrixLoops.h"

using namespace mlir;
using namespace gdn;

namespace {

/// Rows of 16 elements of a matrix; a block is 16 of them.
class BlockInverse : MatrixLoops {
public:
  BlockInverse(OpBuilder &b, Location loc, const NarrowInverseBuffers &buffers)
      : MatrixLoops{b, loc}, at(buffers),
        row(VectorType::get({tile::inverseBlock}, b.getF32Type())) {}
  void emit();

private:
  static constexpr int64_t side = tile::inverseBlock;

  Value read(Value buffer, Value i, Value j) {
    return MatrixLoops::read(row, buffer, i, j);
  }
  Value round(Value value) {
    Value narrow =
        arith::TruncFOp::create(b, loc, row.clone(b.getF16Type()), value);
    return arith::ExtFOp::create(b, loc, row, narrow);
  }
  Value zeros() {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(row));
  }
  /// `sum` of lhs[i, j] * rhs[j, column..], j from `from` to `to`, times sign.
  Value sumOfRows(Value lhs, Value i, Value from, Value to, Value rhs,
                  Value column, bool negative);
  void substitute(Value first);

  const NarrowInverseBuffers &at;
  VectorType row;
};

} // namespace

Value BlockInverse::sumOfRows(Value lhs, Value i, Value from, Value to,
                              Value rhs, Value column, bool negative) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(1), zeros());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value j = loop.getInductionVar();
  Value x = memref::LoadOp::create(b, loc, lhs, ValueRange{i, j});
  if (negative)
    x = arith::NegFOp::create(b, loc, x);
  Value factor = vector::BroadcastOp::create(b, loc, row, x);
  Value sum = vector::FMAOp::create(b, loc, factor, read(rhs, j, column),
                                    loop.getRegionIterArg(0));
  scf::YieldOp::create(b, loc, sum);
  return loop.getResult(0);
}

/// The inverse of the diagonal block at `first`, in f32, then rounded.
void BlockInverse::substitute(Value first) {
  Value end = add(first, index(side));
  Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
  forEach(first, end, 1, [&](Value i) {
    write(sumOfRows(at.matrix, i, first, i, at.inverse, first, true),
          at.inverse, i, first);
    memref::StoreOp::create(b, loc, one, at.inverse, ValueRange{i, i});
  });
  forEach(first, end, 1, [&](Value i) {
    write(round(read(at.inverse, i, first)), at.inverse, i, first);
  });
}

void BlockInverse::emit() {
  int64_t size = cast<MemRefType>(at.matrix.getType()).getDimSize(0);
  forEach(index(0), index(size), 1, [&](Value i) {
    forEach(index(0), index(size), side, [&](Value j) {
      auto narrow = row.clone(b.getF16Type());
      Value x = vector::LoadOp::create(b, loc, cast<VectorType>(narrow),
                                       at.from, ValueRange{i, j});
      write(arith::ExtFOp::create(b, loc, row, x), at.matrix, i, j);
      write(zeros(), at.inverse, i, j);
    });
  });
  forEach(index(0), index(size), side, [&](Value first) {
    substitute(first);
    // B = D L left of the block, in place: from the last row up, since row i
    // needs the rows of L up to its own.
    Value end = add(first, index(side));
    forEach(index(0), first, side, [&](Value column) {
      forEach(index(0), index(side), 1, [&](Value step) {
        Value i = arith::SubIOp::create(
            b, loc, arith::SubIOp::create(b, loc, end, index(1)), step);
        Value sum = sumOfRows(at.inverse, i, first, add(i, index(1)), at.matrix,
                              column, false);
        write(round(sum), at.matrix, i, column);
      });
    });
    // What is left of the diagonal: -B times the rows that are done.
    forEach(first, end, 1, [&](Value i) {
      forEach(index(0), first, side, [&](Value column) {
        Value sum =
            sumOfRows(at.matrix, i, index(0), first, at.inverse, column, true);
        write(round(sum), at.inverse, i, column);
      });
    });
  });
  forEach(index(0), index(size), 1, [&](Value i) {
    forEach(index(0), index(size), side, [&](Value j) {
      auto narrow = row.clone(b.getF16Type());
      write(arith::TruncFOp::create(b, loc, narrow, read(at.inverse, i, j)),
            at.result, i, j);
    });
  });
}

void gdn::expandNarrowInverse(OpBuilder &b, Location loc,
                              const NarrowInverseBuffers &buffers) {
  OpBuilder::InsertionGuard guard(b);
  BlockInverse(b, loc, buffers).emit();
}
