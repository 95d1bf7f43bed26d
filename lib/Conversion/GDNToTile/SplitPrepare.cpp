// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage of the variants "split" that does all that a chunk does not need
// the state for. Inputs of the rule are in memory, or in the workspace where
// the stage before put them; gates are computed here.
#include "SplitChunk.h"
#include "TokenWork.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SplitPrepare final : public SplitChunkStage {
public:
  using SplitChunkStage::SplitChunkStage;

protected:
  SmallVector<std::string> gridOf(const std::string &slots) override {
    return {slots, valueForm};
  }
  void emitChunkSlot(Value chunkSlot, Value isFirst, Value valid) override;

private:
  Chunk emitInputs(Value chunkSlot, Value valid);
};

} // namespace

/// True if rows of `value` past the valid ones are zero as the kernel computes
/// them from rows that are.
static bool keepsZeros(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<L2NormOp, CastOp>(op))
    return keepsZeros(op->getOperand(0));
  return !op || isa<UnpackOp>(op);
}

/// The rule's inputs for the tokens `begin` to `begin + valid`, zeros behind;
/// no values, which the stage has no use for.
Chunk SplitPrepare::emitInputs(Value chunkSlot, Value valid) {
  DeltaRuleOp rule = parts.rule;
  SmallVector<Value> wanted = {rule.getLogDecay(), rule.getBeta()};
  if (!queries)
    wanted.push_back(rule.getQuery());
  if (!keys)
    wanted.push_back(rule.getKey());
  TokenBlock block(*this, head);
  SmallVector<Value> carried(parts.carries.size());
  SmallVector<Value> tiles = block.emitInputs(begin, valid, wanted, carried);
  llvm::SmallDenseMap<Value, Value> tileOf;
  for (auto [input, tile] : llvm::zip(wanted, tiles))
    tileOf[input] = keepsZeros(input) ? tile : maskRows(b, loc, tile, valid);
  auto either = [&](Value region, Value input) {
    return region ? castTile(b, loc, loadRegion(region, chunkSlot, h),
                             b.getF32Type())
                  : tileOf.lookup(input);
  };
  Chunk chunk;
  chunk.query = either(queries, rule.getQuery());
  chunk.key = either(keys, rule.getKey());
  chunk.logDecay = tileOf.lookup(rule.getLogDecay());
  chunk.beta = tileOf.lookup(rule.getBeta());
  chunk.valid = valid;
  chunk.scale = rule.getScaleOrDefault();
  return chunk;
}

/// The chunk of the tokens `begin` to `begin + valid` to its slot.
void SplitPrepare::emitChunkSlot(Value chunkSlot, Value, Value valid) {
  Chunk chunk = emitInputs(chunkSlot, valid);
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
}

LogicalResult gdn::emitPrepareStage(EntryViews &views, const KernelParts &parts,
                                    const Algorithm &algorithm,
                                    ArrayRef<std::string> variants) {
  return SplitPrepare(views, parts, algorithm, variants).emit();
}
