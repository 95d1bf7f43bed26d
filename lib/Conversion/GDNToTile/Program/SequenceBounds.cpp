// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tokens of a block's sequence, its slot, and whether it is live; in the
// block behind the last sequence, those of the padding.
#include "Program/SequenceProgram.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

Value SequenceProgram::sequenceBound(Value at, Value low) {
  return clampBound(elementAt(parts.cuSeqlens, at), low);
}

Value SequenceProgram::clampBound(Value raw, Value low) {
  Value tokens = memref::DimOp::create(
      b, loc, operandViews.lookup(views.results.front()), 0);
  Value high = arith::MinSIOp::create(b, loc, raw, tokens);
  return arith::MaxSIOp::create(b, loc, high, low);
}

Value SequenceProgram::endIfTaken(Value first, Value last) {
  TakenSlotsOp taken = parts.taken;
  if (!taken)
    return last;
  Value flag =
      memref::LoadOp::create(b, loc, views.tensors.lookup(taken.getFlags()), n);
  return taken.getNegated()
             ? arith::SelectOp::create(b, loc, flag, first, last)
             : arith::SelectOp::create(b, loc, flag, last, first);
}

/// Bounds, slot and count of a sequence that has few tokens, so that the way to
/// memory and back counts: all is asked for ahead of the first use. What
/// padding asks for has other indices, since a load of both ways would be one
/// ahead of them, and waited for there.
void SequenceProgram::emitShortBounds() {
  Value sequences = sequenceCount();
  Value tokens = memref::DimOp::create(
      b, loc, operandViews.lookup(views.results.front()), 0);
  Value isSequence = compare(arith::CmpIPredicate::ult, n, sequences);
  auto sequence = scf::IfOp::create(
      b, loc, SmallVector<Type>(5, b.getIndexType()), isSequence, true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(sequence.thenBlock());
    Value first = elementAt(parts.cuSeqlens, n);
    Value last = elementAt(parts.cuSeqlens, add(n, index(1)));
    Value count =
        parts.numAccepted ? elementAt(parts.numAccepted, n) : index(0);
    last = endIfTaken(first, last);
    SmallVector<Value> values = {first, last, slotOf(n), index(0), count};
    scf::YieldOp::create(b, loc, values);
    b.setInsertionPointToStart(sequence.elseBlock());
    first = elementAt(parts.cuSeqlens, sequences);
    Value before = elementAt(parts.cuSeqlens, index(0));
    values = {first, tokens, index(-1), before, index(0)};
    scf::YieldOp::create(b, loc, values);
  }
  begin = clampBound(sequence.getResult(0), index(0));
  end = clampBound(sequence.getResult(1), begin);
  slot = sequence.getResult(2);
  lead = clampBound(sequence.getResult(3), index(0));
  if (parts.numAccepted)
    accepted = sequence.getResult(4);
  Value length = sub(end, begin);
  Value isLong =
      compare(arith::CmpIPredicate::sgt, length, index(parts.maxTokens));
  slot = select(isLong, index(-1), slot);
}

Value SequenceProgram::emitBounds() {
  begin = n;
  end = add(n, index(1));
  if (!parts.slots)
    return Value();
  Value live;
  if (!parts.cuSeqlens) {
    slot = slotOf(n);
  } else if (parts.maxTokens) {
    emitShortBounds();
  } else {
    Value sequences = sequenceCount();
    Value tokens = memref::DimOp::create(
        b, loc, operandViews.lookup(views.results.front()), 0);
    Value isSequence = compare(arith::CmpIPredicate::ult, n, sequences);
    begin = sequenceBound(n, index(0));
    Type type = b.getIndexType();
    auto sequence =
        scf::IfOp::create(b, loc, {type, type, type}, isSequence, true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(sequence.thenBlock());
      Value last = sequenceBound(add(n, index(1)), begin);
      SmallVector<Value> values = {endIfTaken(begin, last), slotOf(n),
                                   index(0)};
      scf::YieldOp::create(b, loc, values);
      b.setInsertionPointToStart(sequence.elseBlock());
      SmallVector<Value> padding = {tokens, index(-1),
                                    sequenceBound(index(0), index(0))};
      scf::YieldOp::create(b, loc, padding);
    }
    end = sequence.getResult(0);
    slot = sequence.getResult(1);
    lead = sequence.getResult(2);
  }
  if (parts.cuSeqlens)
    live = compare(arith::CmpIPredicate::ult, begin, end);
  for (Value pool : parts.pools) {
    Value ok = isLive(slot, pool);
    live = live ? both(live, ok) : ok;
  }
  return live;
}
