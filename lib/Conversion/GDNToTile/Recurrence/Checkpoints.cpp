// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States inside a sequence. One loop over the sequence's checkpoints, and one
// more turn for the rest, around the loop over blocks of tokens:
//
//   t = begin
//   for c = first to end (inclusive)
//     c < end:  n = tokens[c]; a checkpoint if n is a multiple of 64, behind
//               t and within the sequence: then stop = begin + n, else stop = t
//     c = end:  stop = the end of the sequence
//     blocks of tokens t .. stop
//     a checkpoint with a live slot:  states and windows to that slot
//     t = stop
//
// So what a count may be is decided by one comparison with what has been done:
// one that falls, or is not a multiple, or lies past the end, costs a turn
// without tokens. Chunks start anew at a checkpoint, which moves no boundary
// of chunks of 16, 32 or 64 tokens.
#include "Recurrence/Checkpoints.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

void gdn::emitCheckpointBounds(TileProgram &p) {
  const CheckpointOperands &operands = p.parts.checkpoints;
  Value count = memref::DimOp::create(
      p.b, p.loc, p.views.tensors.lookup(operands.tokens), 0);
  // Bounds outside 0 .. C would reach past the buffers: clamp them.
  auto bound = [&](Value at, Value low) {
    Value raw = p.elementAt(operands.bounds, at);
    Value high = arith::MinSIOp::create(p.b, p.loc, raw, count);
    return arith::MaxSIOp::create(p.b, p.loc, high, low);
  };
  p.firstCheckpoint = bound(p.n, p.index(0));
  p.endCheckpoint = bound(p.add(p.n, p.index(1)), p.firstCheckpoint);
}

namespace {
/// Where a turn of the loop stops, and the slot to write there; a slot that is
/// skipped where there is no checkpoint.
struct Stop {
  Value token, slot;
};
} // namespace

/// `c` is the turn, `done` the first token that is still to do.
static Stop emitStop(TileProgram &p, Value c, Value done) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  const CheckpointOperands &operands = p.parts.checkpoints;
  Type type = b.getIndexType();
  Value isEntry = p.compare(P::slt, c, p.endCheckpoint);
  auto stop = scf::IfOp::create(b, loc, {type, type}, isEntry, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(stop.thenBlock());
  // Compared as counts, signed: begin + n may overflow.
  Value n = p.elementAt(operands.tokens, c);
  Value doneCount = p.sub(done, p.begin);
  Value length = p.sub(p.end, p.begin);
  Value rest =
      arith::AndIOp::create(b, p.loc, n, p.index(checkpointTokens - 1));
  Value ok = p.compare(P::eq, rest, p.index(0));
  ok = p.both(ok, p.compare(P::sgt, n, doneCount));
  ok = p.both(ok, p.compare(P::sle, n, length));
  Value at = arith::AddIOp::create(b, loc, p.begin, n);
  Value slot = p.elementAt(operands.slots, c);
  SmallVector<Value> entry = {p.select(ok, at, done),
                              p.select(ok, slot, p.index(-1))};
  scf::YieldOp::create(b, loc, entry);
  b.setInsertionPointToStart(stop.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{p.end, p.index(-1)});
  return {stop.getResult(0), stop.getResult(1)};
}

void gdn::emitCheckpoint(TileProgram &p, const Carry &carry, Value r,
                         Value slot, function_ref<void()> emitStore) {
  OpBuilder &b = p.b;
  if (!CheckpointOperands::of(carry.states()))
    return;
  Value write = p.isLive(slot, carry.pool);
  // Tiles of the key head are the same for each of its value heads.
  if (carry.perKeyHead)
    write = p.both(write, p.compare(P::eq, r, p.index(0)));
  auto branch = scf::IfOp::create(b, p.loc, write, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitStore();
}

SmallVector<Value> gdn::emitUpToCheckpoints(
    TileProgram &p, ArrayRef<Value> start,
    function_ref<SmallVector<Value>(Value, Value, ArrayRef<Value>)> emitTokens,
    function_ref<void(Value, Value, ArrayRef<Value>)> emitWrites) {
  OpBuilder &b = p.b;
  SmallVector<Value> init(start);
  init.push_back(p.begin);
  Value turns = p.add(p.endCheckpoint, p.index(1));
  auto loop =
      scf::ForOp::create(b, p.loc, p.firstCheckpoint, turns, p.index(1), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> carried(loop.getRegionIterArgs());
  Value done = carried.pop_back_val();
  Stop stop = emitStop(p, loop.getInductionVar(), done);
  SmallVector<Value> next = emitTokens(done, stop.token, carried);
  emitWrites(stop.token, stop.slot, next);
  next.push_back(stop.token);
  scf::YieldOp::create(b, p.loc, next);
  SmallVector<Value> last(loop.getResults());
  last.pop_back();
  return last;
}

/// Whether a count is one that a sequence may have, whatever came before it.
static Value emitIsCount(TileProgram &p, Value n) {
  OpBuilder &b = p.b;
  Value length = p.sub(p.end, p.begin);
  Value rest =
      arith::AndIOp::create(b, p.loc, n, p.index(checkpointTokens - 1));
  Value ok = p.compare(P::eq, rest, p.index(0));
  for (Value bound :
       {p.compare(P::sgt, n, p.index(0)), p.compare(P::sle, n, length)})
    ok = p.both(ok, bound);
  return ok;
}

Value gdn::emitCheckpointSlot(TileProgram &p, Value count) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  const CheckpointOperands &operands = p.parts.checkpoints;
  Type type = b.getIndexType();
  Value none = p.index(-1);
  auto slot = scf::IfOp::create(b, loc, {type}, emitIsCount(p, count), true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(slot.elseBlock());
  scf::YieldOp::create(b, loc, none);
  b.setInsertionPointToStart(slot.thenBlock());
  // The largest count so far, and the slot of the one that is `count`.
  auto loop = scf::ForOp::create(b, loc, p.firstCheckpoint, p.endCheckpoint,
                                 p.index(1), ValueRange{p.index(0), none});
  scf::YieldOp::create(b, loc, loop.getResult(1));
  b.setInsertionPointToStart(loop.getBody());
  Value most = loop.getRegionIterArg(0), found = loop.getRegionIterArg(1);
  Value n = p.elementAt(operands.tokens, loop.getInductionVar());
  Value isNew = p.both(emitIsCount(p, n), p.compare(P::sgt, n, most));
  Value isThis = p.both(isNew, p.compare(P::eq, n, count));
  Value own = p.elementAt(operands.slots, loop.getInductionVar());
  scf::YieldOp::create(
      b, loc,
      ValueRange{p.select(isNew, n, most), p.select(isThis, own, found)});
  return slot.getResult(0);
}
