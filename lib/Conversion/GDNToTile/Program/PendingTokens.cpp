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
//
// With counts, tokens are pending over several steps:
//
//   m = counts[slot,h] + a;  full = m + tokens > room
//   state; the first m of the pending keys, deltas and decays
//   state, output, deltas = replay, which puts the m tokens into the state
//     if full
//   full:  state to the sequence's slot
//   keys, deltas, decays to the pools behind the m tokens, or from 0 on if full
//
// and if the next step says what it accepts of this step's tokens:
//
//   windows as above; m, full, state and pending tokens as with counts
//   counts[slot,h] = m, or 0 if full
//   state, whole = catch up, which puts the m tokens into the state if full
//   full:  state to the sequence's slot
//   for each block of tokens: the kernel's ops; whole goes on as a value
//     of the first S tokens: inputs to the histories; keys, deltas, decays as
//     with counts
#include "Program/PendingTokens.h"
#include "Program/TokenOps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

/// Of an f32: bits of its fraction, the least exponent of a normal number, and
/// the sum of those of a power of two and its inverse.
static constexpr int64_t fractionBits = 23, leastExponent = 1,
                         exponentsOfInverse = 254;

/// Rows of f16 times their scales.
static Value widenDeltas(OpBuilder &b, Location loc, Value deltas,
                         Value scales) {
  auto type = cast<VectorType>(deltas.getType()).clone(b.getF32Type());
  return mapRows(
      b, loc, {deltas, scales}, type,
      [&](OpBuilder &inner, ValueRange in) -> SmallVector<Value> {
        auto row = cast<VectorType>(in[0].getType()).clone(inner.getF32Type());
        Value wide = arith::ExtFOp::create(inner, loc, row, in[0]);
        Value scale = vector::BroadcastOp::create(inner, loc, row, in[1]);
        return {arith::MulFOp::create(inner, loc, wide, scale)};
      })[0];
}

PendingTiles gdn::loadPending(OpBuilder &b, Location loc,
                              const PendingBuffer &buffer, Value count,
                              PoolType keys, PoolType deltas, PoolType decays) {
  int64_t steps = keys.getDimSize(2);
  if (ShapedType::isDynamic(steps))
    steps = mostPendingTokens;
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  auto load = [&](const PoolView &pool, ArrayRef<int64_t> columns, Type element,
                  Value head) -> Value {
    SmallVector<Value> at = {buffer.slot, head, zero};
    SmallVector<int64_t> shape = {steps}, dims = {2};
    for (int64_t size : columns) {
      at.push_back(zero);
      shape.push_back(size);
      dims.push_back(3);
    }
    return tile::LoadOp::create(b, loc, VectorType::get(shape, element),
                                pool.memory, at, dims, count);
  };
  auto loadAs = [&](const PoolView &pool, PoolType type, Value head) {
    return load(pool, type.getShape().drop_front(3), type.getElementType(),
                head);
  };
  Type f32 = b.getF32Type();
  Value key = castTile(b, loc, loadAs(buffer.keys, keys, buffer.keyHead), f32);
  Value delta = loadAs(buffer.deltas, deltas, buffer.valueHead);
  if (buffer.scales)
    delta = widenDeltas(b, loc, delta,
                        load(*buffer.scales, {}, f32, buffer.valueHead));
  return {key, delta, loadAs(buffer.decays, decays, buffer.valueHead)};
}

std::pair<Value, Value> gdn::roundDeltas(OpBuilder &b, Location loc,
                                         Value deltas, Type element) {
  auto type = cast<VectorType>(deltas.getType());
  if (element == type.getElementType())
    return {deltas, Value()};
  SmallVector<Type> types = {
      type.clone(element), VectorType::get(type.getDimSize(0), b.getF32Type())};
  SmallVector<Value> made = mapRows(
      b, loc, deltas, types,
      [&](OpBuilder &inner, ValueRange in) -> SmallVector<Value> {
        Type i32 = inner.getI32Type(), f32 = inner.getF32Type();
        auto integer = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(inner, loc,
                                           inner.getI32IntegerAttr(value));
        };
        auto power = [&](Value exponent) -> Value {
          return arith::BitcastOp::create(
              inner, loc, f32,
              arith::ShLIOp::create(inner, loc, exponent,
                                    integer(fractionBits)));
        };
        Value most = vector::ReductionOp::create(
            inner, loc, vector::CombiningKind::MAXIMUMF,
            math::AbsFOp::create(inner, loc, in[0]).getResult());
        // Powers of two are numbers without a fraction. One and its inverse
        // are both normal.
        Value exponent = arith::ShRUIOp::create(
            inner, loc, arith::BitcastOp::create(inner, loc, i32, most),
            integer(fractionBits));
        exponent = arith::MaxUIOp::create(inner, loc, exponent,
                                          integer(leastExponent));
        exponent = arith::MinUIOp::create(
            inner, loc, exponent, integer(exponentsOfInverse - leastExponent));
        Value inverse = power(arith::SubIOp::create(
            inner, loc, integer(exponentsOfInverse), exponent));
        auto wide = cast<VectorType>(in[0].getType());
        Value scaled = arith::MulFOp::create(
            inner, loc, in[0],
            vector::BroadcastOp::create(inner, loc, wide, inverse));
        return {
            arith::TruncFOp::create(inner, loc, wide.clone(element), scaled),
            power(exponent)};
      });
  return {made[0], made[1]};
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
          rule.getPendingScales() ? std::optional(view(rule.getPendingScales()))
                                  : std::nullopt,
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
  // Planes are written as they are rounded, and the step goes on from the sum.
  Value stored = carry.scales
                     ? state
                     : castTile(b, p.loc, state, carry.stored.getElementType());
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

/// The pool of counts.
static PoolView countsOf(TileProgram &p) {
  RuleOpInterface rule = p.parts.rule;
  return p.views.pools.find(rule.getPendingCounts())->second;
}

void gdn::emitPendingCount(TileProgram &p, Value length) {
  OpBuilder &b = p.b;
  Value counts = countsOf(p).memory;
  Value count = arith::IndexCastOp::create(
      b, p.loc, b.getIndexType(),
      memref::LoadOp::create(b, p.loc, counts, ValueRange{p.slot, p.h}));
  if (p.accepted)
    count = p.add(count, p.accepted);
  RuleOpInterface rule = p.parts.rule;
  Value keys = p.views.pools.find(rule.getPendingKeys())->second.memory;
  Value room = memref::DimOp::create(b, p.loc, keys, 2);
  // Unsigned: a count that is none leaves the memory of the pools alone.
  p.pendingCount = p.minimum(count, room);
  Value after = p.add(p.pendingCount, length);
  p.commits = p.compare(arith::CmpIPredicate::ugt, after, room);
  p.firstPending = p.select(p.commits, p.index(0), p.pendingCount);
}

void gdn::storePendingCount(TileProgram &p, Value length) {
  OpBuilder &b = p.b;
  Value counts = countsOf(p).memory;
  Value count = p.accepted ? p.firstPending : p.add(p.firstPending, length);
  memref::StoreOp::create(
      b, p.loc, arith::IndexCastOp::create(b, p.loc, b.getI32Type(), count),
      counts, ValueRange{p.slot, p.h});
}

namespace {
/// Pending tokens of a value head, its state without them, and where that is.
struct PendingState {
  PendingTiles tokens;
  StateMemory memory;
  Value state;
  SmallVector<Value> at;
};
} // namespace

static PendingState loadPendingState(TileProgram &p, const Carry &carry,
                                     Value r) {
  RuleOpInterface rule = p.parts.rule;
  PendingState pending;
  pending.tokens = loadPending(p.b, p.loc, pendingBufferOf(p, r),
                               p.pendingCount, rule.getPendingKeys().getType(),
                               rule.getPendingDeltas().getType(),
                               rule.getPendingDecays().getType());
  pending.memory = p.stateMemory(carry);
  pending.at = {p.slot, p.headIndex(r), p.index(0), p.index(0)};
  pending.state = loadState(p.b, p.loc, pending.memory, carry.stored,
                            pending.at, /*rows=*/Value());
  return pending;
}

/// The new state to its slot, if it has received pending tokens. Unless planes
/// are made of it the branch has nothing else, so that a target may write it
/// where it makes it.
static void storeIfCommitted(TileProgram &p, const Carry &carry,
                             const PendingState &pending, Value newState) {
  auto write = scf::IfOp::create(p.b, p.loc, p.commits, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(p.b);
  p.b.setInsertionPointToStart(write.thenBlock());
  StoredState stored = roundState(p.b, p.loc, pending.memory, newState,
                                  carry.stored.getElementType());
  storeState(p.b, p.loc, pending.memory, stored, pending.at);
}

tile::DeltaReplayOp gdn::emitReplay(TileProgram &p, const Carry &carry, Value r,
                                    ValueRange tokens, ValueRange gates,
                                    Value valid) {
  PendingState pending = loadPendingState(p, carry, r);
  const PendingTiles &old = pending.tokens;
  Value seen;
  if (auto rule = dyn_cast<DeltaRuleOp>(*p.parts.rule);
      rule && rule.getReadsUpper()) {
    StateMemory upper = pending.memory;
    upper.low = nullptr;
    seen = loadState(p.b, p.loc, upper, carry.stored, pending.at,
                     /*rows=*/Value());
  }
  auto replay = tile::DeltaReplayOp::create(
      p.b, p.loc, pending.state.getType(), tokens[2].getType(),
      tokens[2].getType(), pending.state, old.keys, old.deltas, old.decays,
      p.pendingCount, p.commits, tokens[0], tokens[1], tokens[2], gates[0],
      gates[1], valid, seen);
  storeIfCommitted(p, carry, pending, replay.getNewState());
  return replay;
}

Value gdn::emitCatchUp(TileProgram &p, const Carry &carry, Value r) {
  PendingState pending = loadPendingState(p, carry, r);
  const PendingTiles &old = pending.tokens;
  auto catchUp = tile::DeltaCatchUpOp::create(
      p.b, p.loc, pending.state.getType(), carry.type, pending.state, old.keys,
      old.deltas, old.decays, p.pendingCount, p.commits);
  storeIfCommitted(p, carry, pending, catchUp.getNewState());
  return catchUp.getWhole();
}
