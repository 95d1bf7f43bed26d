// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block finds the sequence of its chunk slot by binary search, and ends where
// the slot has no owner.
#include "Stages/ChunkStage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

void ChunkStage::emitBlock(Value chunkSlot) { emitSlot(chunkSlot); }

void ChunkStage::emitSlot(Value chunkSlot) {
  n = findSequence(*this, chunkSlot, index(algorithm.chunk));
  Value live = emitBounds();
  Value length = sub(end, begin);
  Value chunks =
      arith::CeilDivUIOp::create(b, loc, length, index(algorithm.chunk));
  Value number = sub(chunkSlot, firstSlot(*this));
  // Unsigned: a slot before the first sequence's is past every end.
  live = both(live, compare(P::ult, number, chunks));
  OpBuilder::InsertionGuard guard(b);
  enterIf(live);
  begin = add(begin, mul(number, index(algorithm.chunk)));
  Value left = sub(end, begin);
  emitChunkSlot(chunkSlot, compare(P::eq, number, index(0)),
                minimum(left, index(algorithm.chunk)));
}
