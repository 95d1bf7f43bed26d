// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles that are carried from token to token: from pools, or of windows from
// the sequence's own inputs, and back to pools.
#include "Program/TileProgram.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// First channel of a section's head in the convolution's channels.
Value TileProgram::channel(Conv1dOp op, unsigned section, Value r) {
  Value first = index(0);
  for (unsigned i = 0; i <= section; ++i) {
    Value input = op.getInputs()[i];
    Value width = index(cast<RankedTensorType>(input.getType()).getDimSize(2));
    Value count = parts.isKey(input) ? heads : mul(heads, ratio);
    if (i == section)
      count = parts.isKey(input) ? h : headIndex(r);
    first = add(first, mul(width, count));
  }
  return first;
}

StateMemory TileProgram::stateMemory(const Carry &carry) {
  auto memory = [&](Value pool) {
    return pool ? views.pools.find(pool)->second.memory : Value();
  };
  return {memory(carry.pool), memory(carry.scales), memory(carry.low)};
}

Value TileProgram::startRows(const Carry &carry) {
  if (!carry.hasInitial)
    return Value();
  Value flag =
      memref::LoadOp::create(b, loc, views.tensors.lookup(carry.hasInitial), n);
  return arith::SelectOp::create(b, loc, flag, index(carry.type.getDimSize(0)),
                                 index(0));
}

Value TileProgram::loadCarry(const Carry &carry, Value r) {
  return loadCarryAt(carry, r, slot, startRows(carry));
}

Value TileProgram::loadCarryAt(const Carry &carry, Value r, Value from,
                               Value rows, bool whole) {
  const PoolView &pool = views.pools.find(carry.pool)->second;
  Value tile;
  if (auto conv = dyn_cast<Conv1dOp>(carry.op)) {
    Value first = channel(conv, carry.section, r);
    if (!carry.perKeyHead)
      first = add(first, valueStart());
    SmallVector<Value> at = {from, first, windowStart()};
    tile = tile::LoadOp::create(b, loc, carry.stored, pool.memory, at,
                                ArrayRef<int64_t>{2, 1}, rows, whole);
  } else {
    SmallVector<Value> at = {from, headIndex(r), valueStart(), index(0)};
    tile = loadState(b, loc, stateMemory(carry), carry.stored, at, rows);
  }
  return castTile(b, loc, tile, b.getF32Type());
}

Value TileProgram::loadOwnWindow(const Carry &carry, Value r, Value rows,
                                 bool whole) {
  auto conv = cast<Conv1dOp>(carry.op);
  Value input = conv.getInputs()[carry.section];
  auto tensor = cast<RankedTensorType>(input.getType());
  auto type = VectorType::get(carry.type.getShape(), tensor.getElementType());
  Value first = arith::SubIOp::create(b, loc, begin, index(type.getDimSize(0)));
  SmallVector<Value> at = {first, h};
  if (!parts.isKey(input))
    at.push_back(r);
  SmallVector<int64_t> dims = {0, int64_t(at.size())};
  at.push_back(index(0));
  Value tile = tile::LoadOp::create(b, loc, type, operandViews.lookup(input),
                                    at, dims, rows, whole);
  return castTile(b, loc, tile, b.getF32Type());
}

Value TileProgram::joinWindow(const Carry &carry, Value kept, Value own) {
  return mapRows(b, loc, {kept, own}, {carry.type},
                 [&](OpBuilder &, ValueRange in) -> SmallVector<Value> {
                   return {arith::AddFOp::create(b, loc, in[0], in[1])};
                 })[0];
}

Value TileProgram::toChunkState(Value state) {
  if (!chunkTypes.isExact())
    state = scaleTile(b, loc, state, chunkTypes.valueScale);
  return transposeTile(b, loc, state);
}

Value TileProgram::fromChunkState(Value state) {
  state = transposeTile(b, loc, state);
  if (!chunkTypes.isExact())
    state = scaleTile(b, loc, state, 1 / chunkTypes.valueScale);
  return state;
}

Value TileProgram::enterWrite(const Carry &carry) {
  if (!carry.writeSlots)
    return slot;
  Value to = elementAt(carry.writeSlots, n);
  auto write = scf::IfOp::create(b, loc, isLive(to, carry.pool), false);
  b.setInsertionPointToStart(write.thenBlock());
  return to;
}

void TileProgram::storeCarry(const Carry &carry, Value tile, Value r) {
  OpBuilder::InsertionGuard guard(b);
  storeCarryAt(carry, tile, r, enterWrite(carry));
}

void TileProgram::storeCarryIn(Value gdnPool, const Carry &carry, Value tile,
                               Value r, Value to) {
  const PoolView &pool = views.pools.find(gdnPool)->second;
  if (auto conv = dyn_cast<Conv1dOp>(carry.op)) {
    tile = castTile(b, loc, tile, carry.stored.getElementType());
    SmallVector<Value> at = {to, channel(conv, carry.section, r), index(0)};
    tile::StoreOp::create(b, loc, tile, pool.memory, at,
                          ArrayRef<int64_t>{2, 1}, Value());
  } else {
    StateMemory memory = stateMemory(carry);
    memory.states = pool.memory;
    StoredState stored =
        roundState(b, loc, memory, tile, carry.stored.getElementType());
    SmallVector<Value> at = {to, headIndex(r), valueStart(), index(0)};
    storeState(b, loc, memory, stored, at);
  }
}
