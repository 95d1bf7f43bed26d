// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block finds the sequence of its chunk slot by binary search, and ends where
// the slot has no owner.
#include "Stages/ChunkStage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

void ChunkStage::emitBlock(Value slot) { emitSlot(slot); }

void ChunkStage::emitSlot(Value slot) {
  Value tokens = index(slotTokens);
  n = findSequence(*this, slot, tokens);
  Value live = emitBounds();
  Value length = sub(end, begin);
  Value slots = arith::CeilDivUIOp::create(b, loc, length, tokens);
  Value number = sub(slot, firstSlot(*this, begin, n, tokens));
  // Unsigned: a slot before the first sequence's is past every end.
  live = both(live, compare(P::ult, number, slots));
  OpBuilder::InsertionGuard guard(b);
  enterIf(live);
  if (slotTokens != algorithm.chunk)
    slot =
        add(firstSlot(*this), mul(number, index(slotTokens / algorithm.chunk)));
  begin = add(begin, mul(number, tokens));
  Value left = sub(end, begin);
  emitChunkSlot(slot, compare(P::eq, number, index(0)), minimum(left, tokens));
}
