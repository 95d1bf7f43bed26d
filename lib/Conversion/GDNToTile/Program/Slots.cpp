// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slot ids are read where they are used, and compared as they are.
#include "Program/Slots.h"
#include "Program/PendingTokens.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

Value gdn::emitElement(OpBuilder &b, Location loc, const EntryViews &views,
                       Value tensor, ValueRange at) {
  Value id = memref::LoadOp::create(b, loc, views.tensors.lookup(tensor), at);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), id);
}

/// The sequence's slot, or -1 where its count is none.
static Value emitCountedSlot(OpBuilder &b, Location loc,
                             const EntryViews &views, CountedSlotsOp counted,
                             Value sequence) {
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value count = emitElement(b, loc, views, counted.getNumAccepted(), sequence);
  // A tile of pending tokens has no more rows, whatever the caller's S.
  Value steps = arith::MinUIOp::create(
      b, loc, views.index(b, counted.getSteps()), index(mostPendingTokens));
  // Unsigned: a negative count is above all.
  Value ok =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, count, steps);
  Value slot = emitElement(b, loc, views, counted.getSlots(), sequence);
  return arith::SelectOp::create(b, loc, ok, slot, index(-1));
}

Value gdn::emitSlot(OpBuilder &b, Location loc, const EntryViews &views,
                    Value slots, Value sequence) {
  // What is not taken has no tokens (SequenceBounds.cpp).
  if (auto taken = slots.getDefiningOp<TakenSlotsOp>())
    slots = taken.getSlots();
  if (auto counted = slots.getDefiningOp<CountedSlotsOp>())
    return emitCountedSlot(b, loc, views, counted, sequence);
  auto accepted = slots.getDefiningOp<AcceptedSlotsOp>();
  if (!accepted)
    return emitElement(b, loc, views, slots, sequence);
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value count = emitElement(b, loc, views, accepted.getNumAccepted(), sequence);
  Value last = arith::SubIOp::create(b, loc, count, index(1));
  Value table = views.tensors.lookup(accepted.getTokenSlots());
  Value steps = memref::DimOp::create(b, loc, table, 1);
  // Unsigned: a count below 1 is past every end.
  Value ok =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, last, steps);
  auto id = scf::IfOp::create(b, loc, {b.getIndexType()}, ok, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(id.thenBlock());
  Value slot =
      emitElement(b, loc, views, accepted.getTokenSlots(), {sequence, last});
  scf::YieldOp::create(b, loc, slot);
  b.setInsertionPointToStart(id.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{index(-1)});
  return id.getResult(0);
}

Value gdn::emitSequenceCount(OpBuilder &b, Location loc,
                             const EntryViews &views, Value slots) {
  Value tensor = slots;
  if (auto taken = slots.getDefiningOp<TakenSlotsOp>())
    tensor = taken.getFlags();
  else if (auto accepted = slots.getDefiningOp<AcceptedSlotsOp>())
    tensor = accepted.getTokenSlots();
  else if (auto counted = slots.getDefiningOp<CountedSlotsOp>())
    tensor = counted.getSlots();
  return memref::DimOp::create(b, loc, views.tensors.lookup(tensor), 0);
}

Value gdn::emitIsLive(OpBuilder &b, Location loc, const EntryViews &views,
                      Value id, Value pool, Value size) {
  const PoolView &view = views.pools.find(pool)->second;
  using P = arith::CmpIPredicate;
  if (!size)
    size = memref::DimOp::create(b, loc, view.memory, 0);
  // Unsigned: a negative id is past every end.
  Value inside = arith::CmpIOp::create(b, loc, P::ult, id, size);
  Value real = arith::CmpIOp::create(b, loc, P::ne, id, view.nullSlot);
  return arith::AndIOp::create(b, loc, inside, real);
}
