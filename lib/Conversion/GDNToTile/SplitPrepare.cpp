// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first stage of the variants "split": all that a chunk does not need the
// state for. A block finds the row of its chunk slot by binary search, and ends
// where the slot has no owner.
//
// The window of the convolution before a chunk is the pool's for the first one
// of a row, and else the row's own input.
#include "SplitStage.h"
#include "TokenWork.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SplitPrepare final : public SplitStage {
public:
  using SplitStage::SplitStage;

protected:
  SmallVector<std::string> gridOf(const std::string &slots) override {
    return {slots, valueForm};
  }
  void emitBlock(Value chunkSlot) override;

private:
  Value loadWindow(const Carry &carry, Value isFirst);
  Chunk emitInputs(Value isFirst, Value valid);
  void emitChunkSlot(Value chunkSlot, Value isFirst, Value valid);
};

} // namespace

/// The window of the convolution before token `begin`, the first of its row or
/// of a later chunk: one of two places is read, the other gives zeros.
Value SplitPrepare::loadWindow(const Carry &carry, Value isFirst) {
  Value all = index(carry.type.getDimSize(0)), none = index(0);
  Value start = startRows(carry);
  Value kept =
      arith::SelectOp::create(b, loc, isFirst, start ? start : all, none);
  Value own = arith::SelectOp::create(b, loc, isFirst, none, all);
  return mapRows(
      b, loc,
      {loadCarryAt(carry, head, slot, kept), loadOwnWindow(carry, head, own)},
      {carry.type}, [&](OpBuilder &, ValueRange in) -> SmallVector<Value> {
        return {arith::AddFOp::create(b, loc, in[0], in[1])};
      })[0];
}

/// True if rows of `value` past the valid ones are zero as the kernel computes
/// them from rows that are.
static bool keepsZeros(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<L2NormOp, CastOp>(op))
    return keepsZeros(op->getOperand(0));
  return !op || isa<UnpackOp>(op);
}

/// The rule's inputs for the tokens `begin` to `begin + valid`, zeros behind.
Chunk SplitPrepare::emitInputs(Value isFirst, Value valid) {
  TokenBlock block(*this, head);
  SmallVector<Value> carried;
  for (const Carry &carry : parts.carries)
    carried.push_back(isa<Conv1dOp>(carry.op) ? loadWindow(carry, isFirst)
                                              : Value());
  Chunk chunk = block.emitRuleInputs(begin, valid, carried);
  DeltaRuleOp rule = parts.rule;
  for (auto [tile, input] : {std::pair(&chunk.query, rule.getQuery()),
                             std::pair(&chunk.key, rule.getKey()),
                             std::pair(&chunk.value, rule.getValue()),
                             std::pair(&chunk.logDecay, rule.getLogDecay()),
                             std::pair(&chunk.beta, rule.getBeta())})
    if (!keepsZeros(input))
      *tile = maskRows(b, loc, *tile, valid);
  return chunk;
}

/// The chunk of the tokens `begin` to `begin + valid` to its slot.
void SplitPrepare::emitChunkSlot(Value chunkSlot, Value isFirst, Value valid) {
  Chunk chunk = emitInputs(isFirst, valid);
  PreparedChunk made = prepareRoundedChunk(b, loc, chunk, chunkTypes);
  Value own = headIndex(head);
  storeRegion(made.toState, toState, chunkSlot, own);
  storeRegion(made.toOutput, toOutput, chunkSlot, own);

  auto exp = [&](Value x) -> Value { return math::ExpOp::create(b, loc, x); };
  using Rows = SmallVector<Value>;
  Type type = made.sums.getType();
  Value decay = mapRows(
      b, loc, made.sums, {type},
      [&](OpBuilder &, ValueRange in) -> Rows { return {exp(in[0])}; })[0];
  Value strength =
      mapRows(b, loc, {chunk.beta, made.outside}, {type},
              [&](OpBuilder &, ValueRange in) -> Rows {
                Value less = exp(arith::NegFOp::create(b, loc, in[1]));
                return {arith::MulFOp::create(b, loc, in[0], less)};
              })[0];
  Value end =
      mapRows(b, loc, made.sums, {type}, [&](OpBuilder &, ValueRange) -> Rows {
        return {exp(
            vector::ExtractOp::create(b, loc, made.sums, algorithm.chunk - 1))};
      })[0];
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  storeGate(decay, decayRow, chunkSlot);
  storeGate(strength, strengthRow, chunkSlot);
  storeGate(tile::FillOp::create(b, loc, type, zero), freeRow, chunkSlot);
  storeGate(end, endRow, chunkSlot);

  if (values)
    storeRegion(castTile(b, loc, chunk.value, chunkTypes.inner), values,
                chunkSlot, own);
  if (!queries && !keys)
    return;
  // Those of a key head are the same for each of its value heads.
  Value writes = compare(P::eq, head, index(0));
  auto branch = scf::IfOp::create(b, loc, writes, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (queries)
    storeRegion(made.query, queries, chunkSlot, h);
  if (keys)
    storeRegion(made.key, keys, chunkSlot, h);
}

void SplitPrepare::emitBlock(Value chunkSlot) {
  n = findRow(chunkSlot, index(algorithm.chunk));
  Value live = emitBounds();
  Value length = arith::SubIOp::create(b, loc, end, begin);
  Value chunks =
      arith::CeilDivUIOp::create(b, loc, length, index(algorithm.chunk));
  Value number = arith::SubIOp::create(b, loc, chunkSlot, firstSlot(begin, n));
  // Unsigned: a slot before the first row's is past every end.
  live = arith::AndIOp::create(b, loc, live, compare(P::ult, number, chunks));
  auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  begin = add(begin, mul(number, index(algorithm.chunk)));
  Value left = arith::SubIOp::create(b, loc, end, begin);
  emitChunkSlot(chunkSlot, compare(P::eq, number, index(0)),
                arith::MinUIOp::create(b, loc, left, index(algorithm.chunk)));
}

LogicalResult gdn::emitPrepareStage(EntryViews &views, const KernelParts &parts,
                                    const Algorithm &algorithm,
                                    ArrayRef<std::string> variants) {
  return SplitPrepare(views, parts, algorithm, variants).emit();
}
