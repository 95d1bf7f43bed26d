// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block finds the row of its chunk slot by binary search, and ends where the
// slot has no owner.
#include "SplitChunk.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

/// The row that owns `slot` if any row does: the last one whose first slot is
/// not behind it. Row 0 if there are none.
Value SplitChunkStage::findRow(Value slot) {
  Value rows = rowCount();
  Type i64 = b.getI64Type();
  Value zeros = math::CountLeadingZerosOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, i64, rows));
  Value bits = arith::SubIOp::create(
      b, loc, index(64),
      arith::IndexCastOp::create(b, loc, b.getIndexType(), zeros));
  auto loop = scf::ForOp::create(b, loc, index(0), bits, index(1),
                                 ValueRange{index(0)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value found = loop.getRegionIterArg(0);
  Value bit = arith::SubIOp::create(
      b, loc, arith::SubIOp::create(b, loc, bits, index(1)),
      loop.getInductionVar());
  Value row = add(found, arith::ShLIOp::create(b, loc, index(1), bit));
  // One past the last row has a bound as well: that of its end.
  Value at = arith::MinUIOp::create(b, loc, row, rows);
  Value first = firstSlot(rowBound(at, index(0)), at);
  Value owns = arith::AndIOp::create(b, loc, compare(P::ult, row, rows),
                                     compare(P::ule, first, slot));
  scf::YieldOp::create(
      b, loc, ValueRange{arith::SelectOp::create(b, loc, owns, row, found)});
  return loop.getResult(0);
}

void SplitChunkStage::emitBlock(Value chunkSlot) {
  n = findRow(chunkSlot);
  Value live = emitBounds();
  Value length = arith::SubIOp::create(b, loc, end, begin);
  Value chunks =
      arith::CeilDivUIOp::create(b, loc, length, index(algorithm.chunk));
  Value number = arith::SubIOp::create(b, loc, chunkSlot, firstSlot(begin, n));
  // Unsigned: a slot before the first row's is past every end.
  live = arith::AndIOp::create(b, loc, live, compare(P::ult, number, chunks));
  auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  begin = add(begin, mul(number, index(algorithm.chunk)));
  Value left = arith::SubIOp::create(b, loc, end, begin);
  emitChunkSlot(chunkSlot, compare(P::eq, number, index(0)),
                arith::MinUIOp::create(b, loc, left, index(algorithm.chunk)));
}
