// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block finds the sequence of its chunk slot by binary search, and ends where
// the slot has no owner.
#include "Stages/ChunkStage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

void ChunkStage::emitBlock(Value chunkSlot) {
  n = findSequence(chunkSlot, index(algorithm.chunk));
  Value live = emitBounds();
  Value length = arith::SubIOp::create(b, loc, end, begin);
  Value chunks =
      arith::CeilDivUIOp::create(b, loc, length, index(algorithm.chunk));
  Value number = arith::SubIOp::create(b, loc, chunkSlot, firstSlot(begin, n));
  // Unsigned: a slot before the first sequence's is past every end.
  live = arith::AndIOp::create(b, loc, live, compare(P::ult, number, chunks));
  auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  begin = add(begin, mul(number, index(algorithm.chunk)));
  Value left = arith::SubIOp::create(b, loc, end, begin);
  emitChunkSlot(chunkSlot, compare(P::eq, number, index(0)),
                arith::MinUIOp::create(b, loc, left, index(algorithm.chunk)));
}
