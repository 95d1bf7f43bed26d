// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States after every token:
//
//   for t = begin to end
//     the kernel's ops on token t
//     slot = t - begin < S ? token_slots[n, t - begin] : -1
//     a live slot:  carried tiles to that slot
//
// The sequence's state is a value of the program from its first token on, so
// that the slot which it came from may be one of those written.
//
// With parents nothing is carried from turn to turn:
//
//   for t = begin to end
//     the state from the slot of the token's parent, or of the sequence
//     windows: the sequence's, and then the inputs of the token's K-1
//     ancestors,
//              since blocks of a key head do not wait for each other
//     the kernel's ops on token t; tiles to the token's slot, as above
#include "Recurrence/TokenStates.h"

#include "Recurrence/Checkpoints.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

bool gdn::isWrittenOnTheWay(const Carry &carry) {
  auto rule = dyn_cast<RuleOpInterface>(carry.op);
  return carry.states().getTokenSlots() || carry.states().getNumAccepted() ||
         (rule && rule.getPendingCounts());
}

/// The slot of the state after token `t`; one that is skipped past the table.
static Value emitTokenSlot(TileProgram &p, Value t) {
  OpBuilder &b = p.b;
  Value table = p.views.tensors.lookup(p.parts.tokenSlots);
  Value at = p.sub(t, p.begin);
  Value steps = memref::DimOp::create(b, p.loc, table, 1);
  Value isInside = p.compare(arith::CmpIPredicate::ult, at, steps);
  auto slot = scf::IfOp::create(b, p.loc, {b.getIndexType()}, isInside, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(slot.thenBlock());
  scf::YieldOp::create(b, p.loc, p.elementAt(p.parts.tokenSlots, {p.n, at}));
  b.setInsertionPointToStart(slot.elseBlock());
  scf::YieldOp::create(b, p.loc, p.index(-1));
  return slot.getResult(0);
}

/// The parent of the sequence's token `at`, an index that is negative or past
/// the table for none: a token before it with a live slot, or -1.
static Value emitParent(TileProgram &p, Value at, Value pool) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  using P = arith::CmpIPredicate;
  Value table = p.views.tensors.lookup(p.parts.tokenSlots);
  Value steps = memref::DimOp::create(b, loc, table, 1);
  Value isInside = p.compare(P::ult, at, steps);
  Type type = b.getIndexType();
  auto parent = scf::IfOp::create(b, loc, {type}, isInside, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(parent.elseBlock());
  scf::YieldOp::create(b, loc, p.index(-1));
  b.setInsertionPointToStart(parent.thenBlock());
  Value raw = p.elementAt(p.parts.parents, {p.n, at});
  // Unsigned: a negative parent is past every token.
  Value isBefore = p.compare(P::ult, raw, at);
  auto kept = scf::IfOp::create(b, loc, {type}, isBefore, true);
  scf::YieldOp::create(b, loc, kept.getResult(0));
  b.setInsertionPointToStart(kept.elseBlock());
  scf::YieldOp::create(b, loc, p.index(-1));
  b.setInsertionPointToStart(kept.thenBlock());
  Value live = p.isLive(p.elementAt(p.parts.tokenSlots, {p.n, raw}), pool);
  Value result = p.select(live, raw, p.index(-1));
  scf::YieldOp::create(b, loc, result);
  return parent.getResult(0);
}

/// The state before the sequence's token `at`, from the slot of its parent.
static Value emitParentState(TileProgram &p, const Carry &carry, Value r,
                             Value at) {
  OpBuilder &b = p.b;
  Value parent = emitParent(p, at, carry.tokenPool);
  Value isRoot = p.compare(arith::CmpIPredicate::slt, parent, p.index(0));
  auto from = scf::IfOp::create(b, p.loc, {b.getIndexType()}, isRoot, true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(from.thenBlock());
    scf::YieldOp::create(b, p.loc, p.slot);
    b.setInsertionPointToStart(from.elseBlock());
    scf::YieldOp::create(b, p.loc,
                         p.elementAt(p.parts.tokenSlots, {p.n, parent}));
  }
  Value rows = p.startRows(carry);
  if (rows)
    rows = p.select(isRoot, rows, p.index(carry.type.getDimSize(0)));
  return p.loadCarryAt(carry, r, from.getResult(0), rows);
}

/// The `count` ancestors of the sequence's token `at`, the nearest first; -1
/// for none.
static SmallVector<Value> emitAncestors(TileProgram &p, Value at, Value pool,
                                        int64_t count) {
  SmallVector<Value> ancestors;
  for (int64_t i = 0; i < count; ++i)
    ancestors.push_back(at = emitParent(p, at, pool));
  return ancestors;
}

/// The window before a token: `start`, the sequence's, moved on by the inputs
/// of the token's ancestors, the oldest first.
static Value emitParentWindow(TileProgram &p, TokenBlock &block,
                              const Carry &carry, Value start,
                              ArrayRef<Value> ancestors) {
  OpBuilder &b = p.b;
  Value window = start;
  for (Value ancestor : llvm::reverse(ancestors)) {
    Value isToken = p.compare(arith::CmpIPredicate::sge, ancestor, p.index(0));
    Value count =
        arith::IndexCastUIOp::create(b, p.loc, b.getIndexType(), isToken);
    Value inside = arith::MaxSIOp::create(b, p.loc, ancestor, p.index(0));
    window = block.emitWindow(carry, window, p.add(p.begin, inside), count);
  }
  return window;
}

SmallVector<Value> gdn::emitTokenByToken(TileProgram &p, TokenBlock &block,
                                         Value r, ArrayRef<Value> start,
                                         ArrayRef<Value> writers) {
  OpBuilder &b = p.b;
  bool isTree = bool(p.parts.parents);
  auto loop = scf::ForOp::create(b, p.loc, p.begin, p.lastEnd(), p.index(1),
                                 isTree ? ArrayRef<Value>() : start);
  p.tokenLoops.push_back({loop, p.parts.maxTokens});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  SmallVector<Value> carried(loop.getRegionIterArgs());
  if (isTree) {
    Value at = p.sub(t, p.begin);
    llvm::DenseMap<Value, SmallVector<Value>> ancestors; // by pool
    for (auto [carry, tile] : llvm::zip(p.parts.carries, start)) {
      if (!isa<Conv1dOp>(carry.op)) {
        carried.push_back(emitParentState(p, carry, r, at));
        continue;
      }
      SmallVector<Value> &known = ancestors[carry.tokenPool];
      if (known.empty())
        known = emitAncestors(p, at, carry.tokenPool, carry.type.getDimSize(0));
      carried.push_back(emitParentWindow(p, block, carry, tile, known));
    }
  }
  SmallVector<Value> next = block.emit(t, p.index(1), carried);
  Value slot = emitTokenSlot(p, t);
  for (auto [carry, tile, writer] : llvm::zip(p.parts.carries, next, writers)) {
    if (!carry.states().getTokenSlots())
      continue;
    Value write = p.isLive(slot, carry.tokenPool);
    if (writer)
      write = p.both(write, writer);
    auto branch = scf::IfOp::create(b, p.loc, write, /*withElse=*/false);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    p.storeCarryIn(carry.tokenPool, carry, tile, r, slot);
  }
  if (isTree)
    return SmallVector<Value>(start);
  if (!next.empty())
    scf::YieldOp::create(b, p.loc, next);
  return SmallVector<Value>(loop.getResults());
}

/// Carried tiles after `count` tokens of the sequence, if it has a checkpoint
/// there. Those of the key head are the same for each of its value heads: one
/// of them writes each, another the next, so that no two branches are one.
static void emitCheckpointStores(TileProgram &p, Value r, Value count,
                                 ArrayRef<Value> tiles) {
  OpBuilder &b = p.b;
  Value slot = emitCheckpointSlot(p, count);
  Value last = p.sub(p.ratio, p.index(1));
  int64_t numShared = 0;
  for (auto [carry, tile] : llvm::zip(p.parts.carries, tiles)) {
    Value write = p.isLive(slot, carry.pool);
    if (carry.perKeyHead) {
      Value writer = numShared++ == 0 ? p.index(0) : last;
      Value isWriter = p.compare(arith::CmpIPredicate::eq, r, writer);
      write = p.both(write, isWriter);
    }
    auto branch = scf::IfOp::create(b, p.loc, write, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    p.storeCarryIn(carry.pool, carry, tile, r, slot);
  }
}

SmallVector<Value> gdn::emitTokensUpToEnd(TileProgram &p, TokenBlock &block,
                                          Value r, ArrayRef<Value> start,
                                          ArrayRef<Value> writers) {
  OpBuilder &b = p.b;
  // Where each carried tile goes, and whether: known before the first token.
  SmallVector<Value> places, writes;
  for (auto [carry, writer] : llvm::zip(p.parts.carries, writers)) {
    Value place =
        carry.writeSlots ? p.elementAt(carry.writeSlots, p.n) : p.slot;
    // Each asks its own pool, so that no two branches are one: another warp
    // writes each.
    Value write = p.isLive(place, carry.pool);
    if (writer)
      write = p.both(writer, write);
    places.push_back(place);
    writes.push_back(write);
  }
  auto loop = scf::ForOp::create(b, p.loc, p.begin, p.end, p.index(1), start);
  p.tokenLoops.push_back({loop, 0});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  SmallVector<Value> next =
      block.emit(t, p.index(1), SmallVector<Value>(loop.getRegionIterArgs()));
  Value behind = p.add(t, p.index(1));
  if (p.parts.checkpoints)
    emitCheckpointStores(p, r, p.sub(behind, p.begin), next);
  Value isEnd = p.compare(arith::CmpIPredicate::eq, behind, p.end);
  for (auto [carry, tile, place, write] :
       llvm::zip(p.parts.carries, next, places, writes)) {
    Value condition = p.both(isEnd, write);
    auto branch = scf::IfOp::create(b, p.loc, condition, /*withElse=*/false);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    p.storeCarryIn(carry.pool, carry, tile, r, place);
  }
  if (!next.empty())
    scf::YieldOp::create(b, p.loc, next);
  return SmallVector<Value>(loop.getResults());
}
