// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence whose last step's tokens are pending:
//
//   a = num_accepted[n]
//   windows: columns a .. a+K-2 of the histories
//   state; the first a of the pending keys, deltas and decays
//   all blocks of the key head have read: who writes its keys and histories?
//   state = fold of the a tokens into the state
//   a > 0:  state to the sequence's slot, and from there on as that slot holds
//   it windows to columns 0 .. K-2 of the histories for each block of tokens:
//     the kernel's ops; the state goes on as a value
//     of the first S tokens: inputs to the histories, keys, deltas, decays
//
// So the state is read once and written once, whatever the sequence's length.
#include "Program/PendingTokens.h"
#include "Program/TokenOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

PendingTiles gdn::loadPending(OpBuilder &b, Location loc,
                              const PendingBuffer &buffer, Value count,
                              PoolType keys, PoolType deltas, PoolType decays) {
  int64_t steps = keys.getDimSize(2);
  if (ShapedType::isDynamic(steps))
    steps = mostPendingTokens;
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  auto load = [&](const PoolView &pool, PoolType type, Value head) -> Value {
    SmallVector<Value> at = {buffer.slot, head, zero};
    SmallVector<int64_t> shape = {steps}, dims = {2};
    if (type.getRank() == 4) {
      at.push_back(zero);
      shape.push_back(type.getDimSize(3));
      dims.push_back(3);
    }
    return tile::LoadOp::create(b, loc,
                                VectorType::get(shape, type.getElementType()),
                                pool.memory, at, dims, count);
  };
  return {load(buffer.keys, keys, buffer.keyHead),
          load(buffer.deltas, deltas, buffer.valueHead),
          load(buffer.decays, decays, buffer.valueHead)};
}

Value gdn::emitPendingRows(OpBuilder &b, Location loc, Value at, Value valid,
                           Value steps) {
  Value past = arith::MinUIOp::create(b, loc, at, steps);
  Value room = arith::SubIOp::create(b, loc, steps, past);
  return arith::MinUIOp::create(b, loc, room, valid);
}

PendingBuffer gdn::pendingBufferOf(TileProgram &p, Value r) {
  RuleOpInterface rule = p.parts.rule;
  auto view = [&](Value pool) { return p.views.pools.find(pool)->second; };
  return {view(rule.getPendingKeys()),
          view(rule.getPendingDeltas()),
          view(rule.getPendingDecays()),
          p.slot,
          p.h,
          p.headIndex(r)};
}

Value gdn::emitCommit(TileProgram &p, const Carry &carry, Value r, Value state,
                      const PendingTiles &pending) {
  OpBuilder &b = p.b;
  state =
      tile::DeltaFoldOp::create(b, p.loc, state.getType(), state, pending.keys,
                                pending.deltas, pending.decays, p.accepted);
  Value stored = castTile(b, p.loc, state, carry.stored.getElementType());
  Value isSome = arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::ne,
                                       p.accepted, p.index(0));
  {
    auto write = scf::IfOp::create(b, p.loc, isSome, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(write.thenBlock());
    p.storeCarryAt(carry, stored, r, p.slot);
  }
  return castTile(b, p.loc, stored, b.getF32Type());
}
