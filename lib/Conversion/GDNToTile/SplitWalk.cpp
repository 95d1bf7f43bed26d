// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The second stage of the variant "split": a row from state to state, chunk
// after chunk, with what the first stage left of each. A block has a value
// head, or a part of its values, which are rows of the state and do not know of
// each other.
//
// The pools are written here, when all reading of them is over: windows of a
// key head by its first value head.
#include "Checkpoints.h"
#include "SplitStage.h"
#include "TokenWork.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SplitWalk final : public SplitStage {
public:
  using SplitStage::SplitStage;

protected:
  SmallVector<std::string> gridOf(const std::string &) override {
    SmallVector<std::string> grid = {rowForm + " + 1", valueForm};
    if (algorithm.valueParts > 1)
      grid.push_back(std::to_string(algorithm.valueParts));
    return grid;
  }
  void emitBlock(Value row) override;

private:
  Value loadInput(Value input, Value t, Value valid, int64_t rows,
                  bool wholeValues);
  StoredChunk loadChunk(Value chunkSlot, Value t, Value valid);
  Carry stateCarry();
  Value nextWindow(TokenBlock &block, const Carry &carry, Value window,
                   Value from, Value to);
  void moveWindow(const Carry &carry);
  Value emitChunks(TokenBlock &block, Value state, Value from, Value to);
  void emitPieces(TokenBlock &block);
  void walkRow();

  Value writesShared; // whether the block writes what blocks share
};

} // namespace

/// `rows` rows of an input in memory from token `t` on, of values those that
/// the block has.
Value SplitWalk::loadInput(Value input, Value t, Value valid, int64_t rows,
                           bool wholeValues) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<Value> at = {t, h};
  int64_t columns = type.getShape().back();
  Value first = index(0);
  if (!parts.isKey(input)) {
    at.push_back(head);
    if (!wholeValues) {
      columns = valueCount(columns);
      first = valueStart();
    }
  }
  SmallVector<int64_t> dims = {0, int64_t(at.size())};
  at.push_back(first);
  auto tile = VectorType::get({rows, columns}, type.getElementType());
  return tile::LoadOp::create(b, loc, tile, operandViews.lookup(input), at,
                              dims, valid);
}

/// What is known of the chunk of `valid` tokens from `t` on.
StoredChunk SplitWalk::loadChunk(Value chunkSlot, Value t, Value valid) {
  DeltaRuleOp rule = parts.rule;
  auto either = [&](Value region, Value input, Value head) {
    return region ? loadRegion(region, chunkSlot, head)
                  : loadInput(input, t, valid, algorithm.chunk, false);
  };
  Value own = headIndex(head);
  StoredChunk chunk;
  chunk.key = either(keys, rule.getKey(), h);
  chunk.query = either(queries, rule.getQuery(), h);
  chunk.value = either(values, rule.getValue(), own);
  chunk.toState = loadRegion(toState, chunkSlot, own);
  chunk.toOutput = loadRegion(toOutput, chunkSlot, own);
  chunk.decay = loadGate(decayRow, chunkSlot);
  chunk.strength = loadGate(strengthRow, chunkSlot);
  chunk.end = loadGate(endRow, chunkSlot);
  chunk.scale = rule.getScaleOrDefault();
  return chunk;
}

/// The state's carry, or the block's part of it.
Carry SplitWalk::stateCarry() {
  Carry carry = *llvm::find_if(
      parts.carries, [](const Carry &c) { return isa<DeltaRuleOp>(c.op); });
  SmallVector<int64_t> shape(carry.type.getShape());
  shape[0] = valueCount(shape[0]);
  carry.type = VectorType::get(shape, carry.type.getElementType());
  carry.stored = VectorType::get(shape, carry.stored.getElementType());
  return carry;
}

/// The window of `carry` after the tokens `from` to `to`: of their last inputs,
/// and of what was there where they are fewer.
Value SplitWalk::nextWindow(TokenBlock &block, const Carry &carry, Value window,
                            Value from, Value to) {
  const int64_t width = carry.type.getDimSize(0);
  Value length = arith::SubIOp::create(b, loc, to, from);
  Value count = arith::MinUIOp::create(b, loc, length, index(width));
  Value first = arith::SubIOp::create(b, loc, to, count);
  blockTokens = width;
  Value next = block.emitWindow(carry, window, first, count);
  blockTokens = algorithm.chunk;
  return next;
}

/// Writes the window of `carry` after the row: its last inputs, ahead of them
/// what was there where they are fewer. Tiles are stored as they are loaded.
void SplitWalk::moveWindow(const Carry &carry) {
  auto conv = cast<Conv1dOp>(carry.op);
  Value memory = views.pools.find(carry.pool)->second.memory;
  Value width = index(carry.type.getDimSize(0));
  Value length = arith::SubIOp::create(b, loc, end, begin);
  Value count = arith::MinUIOp::create(b, loc, length, width);
  Value rest = arith::SubIOp::create(b, loc, width, count);
  Value kept = rest;
  if (Value start = startRows(carry))
    kept = arith::MinUIOp::create(b, loc, start, rest);
  Value at = channel(conv, carry.section, head);
  const int64_t dims[] = {2, 1};
  Value old = tile::LoadOp::create(b, loc, carry.stored, memory,
                                   ValueRange{slot, at, count}, dims, kept);
  Value own = loadInput(conv.getInputs()[carry.section],
                        arith::SubIOp::create(b, loc, end, count), count,
                        carry.type.getDimSize(0), /*wholeValues=*/true);
  if (own.getType() != carry.stored)
    own = castTile(b, loc, castTile(b, loc, own, b.getF32Type()),
                   carry.stored.getElementType());
  OpBuilder::InsertionGuard guard(b);
  Value to = slot;
  if (carry.writeSlots) {
    to = elementAt(carry.writeSlots, n);
    auto write = scf::IfOp::create(b, loc, isLive(to, carry.pool), false);
    b.setInsertionPointToStart(write.thenBlock());
  }
  tile::StoreOp::create(b, loc, old, memory, ValueRange{to, at, index(0)}, dims,
                        rest);
  tile::StoreOp::create(b, loc, own, memory, ValueRange{to, at, rest}, dims,
                        count);
}

/// The state after the tokens `from` to `to`, chunk after chunk; their outputs.
Value SplitWalk::emitChunks(TokenBlock &block, Value state, Value from,
                            Value to) {
  Value start = scaleTile(b, loc, state, chunkTypes.valueScale);
  Value first = firstSlot(begin, n);
  auto loop = scf::ForOp::create(b, loc, from, to, index(algorithm.chunk),
                                 ValueRange{start});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value t = loop.getInductionVar();
    Value left = arith::SubIOp::create(b, loc, to, t);
    Value valid = arith::MinUIOp::create(b, loc, left, index(algorithm.chunk));
    Value number =
        divide(arith::SubIOp::create(b, loc, t, begin), algorithm.chunk);
    StoredChunk chunk = loadChunk(add(first, number), t, valid);
    ChunkResult result =
        emitStateRowsChunk(b, loc, loop.getRegionIterArg(0), chunk, chunkTypes);
    block.emitRuleResults(t, valid, result.output);
    scf::YieldOp::create(b, loc, result.state);
  }
  return scaleTile(b, loc, loop.getResult(0), 1 / chunkTypes.valueScale);
}

/// The live row with the states inside it that were asked for, which lie
/// between chunks.
void SplitWalk::emitPieces(TokenBlock &block) {
  emitCheckpointBounds(*this);
  SmallVector<Value> start;
  for (const Carry &carry : parts.carries) {
    // What the first value head writes, others do not read: it may be new.
    Value rows = startRows(carry);
    if (!rows)
      rows = index(carry.type.getDimSize(0));
    if (carry.perKeyHead)
      rows = arith::SelectOp::create(b, loc, writesShared, rows, index(0));
    start.push_back(loadCarryAt(carry, head, slot, rows));
  }
  SmallVector<Value> last = emitUpToCheckpoints(
      *this, head, start, [&](Value from, Value to, ArrayRef<Value> carried) {
        SmallVector<Value> next;
        for (auto [carry, tile] : llvm::zip(parts.carries, carried))
          next.push_back(isa<Conv1dOp>(carry.op)
                             ? nextWindow(block, carry, tile, from, to)
                             : emitChunks(block, tile, from, to));
        return next;
      });
  for (auto [carry, tile] : llvm::zip(parts.carries, last)) {
    OpBuilder::InsertionGuard guard(b);
    if (carry.perKeyHead) {
      auto branch = scf::IfOp::create(b, loc, writesShared, false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    storeCarry(carry, tile, head);
  }
}

/// The live row, chunk after chunk.
void SplitWalk::walkRow() {
  TokenBlock block(*this, head);
  // Windows of a key head are the same for each of its value heads.
  writesShared = compare(P::eq, head, index(0));
  if (parts.checkpoints)
    return emitPieces(block);
  Carry carry = stateCarry();
  Value last = emitChunks(block, loadCarry(carry, head), begin, end);
  storeCarry(carry, last, head);
  Value isFirstPart;
  if (firstValue) {
    isFirstPart = compare(P::eq, firstValue, index(0));
    writesShared = arith::AndIOp::create(b, loc, writesShared, isFirstPart);
  }
  for (const Carry &window : parts.carries) {
    if (!isa<Conv1dOp>(window.op))
      continue;
    OpBuilder::InsertionGuard guard(b);
    if (Value writes = window.perKeyHead ? writesShared : isFirstPart) {
      auto branch = scf::IfOp::create(b, loc, writes, /*withElse=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    moveWindow(window);
  }
}

void SplitWalk::emitBlock(Value row) {
  n = row;
  if (algorithm.valueParts > 1) {
    DeltaRuleOp rule = parts.rule;
    auto value = cast<RankedTensorType>(rule.getValue().getType());
    numValues = value.getShape().back() / algorithm.valueParts;
    Value part = tile::BlockIdOp::create(b, loc, b.getIndexType(), 2);
    firstValue = mul(part, index(numValues));
  }
  Value live = emitBounds();
  auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  walkRow();
  b.setInsertionPointToStart(branch.elseBlock());
  emitZeros(begin, end);
  emitZeros(index(0), lead);
}

LogicalResult gdn::emitWalkStage(EntryViews &views, const KernelParts &parts,
                                 const Algorithm &algorithm) {
  return SplitWalk(views, parts, algorithm).emit();
}
