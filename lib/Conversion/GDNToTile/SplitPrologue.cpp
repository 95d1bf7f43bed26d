// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage of the variant "split" before the others: queries, keys and values
// that are not in memory as products take them. They are computed token by
// token, so a block has a group of a chunk's tokens; the window of the
// convolution before it is the pool's at the beginning of a row, and else the
// row's own input.
#include "SplitChunk.h"
#include "TokenWork.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SplitPrologue final : public SplitChunkStage {
public:
  SplitPrologue(EntryViews &views, const KernelParts &parts,
                const Algorithm &algorithm, ArrayRef<std::string> variants)
      : SplitChunkStage(views, parts, algorithm, variants) {
    blockTokens = getGroupTokens(parts, algorithm);
  }

protected:
  SmallVector<std::string> gridOf(const std::string &slots) override {
    return {slots, valueForm, std::to_string(algorithm.chunk / blockTokens)};
  }
  bool knowsPrepared() const override { return false; }
  void emitChunkSlot(Value chunkSlot, Value isFirst, Value valid) override;

private:
  Value loadWindow(const Carry &carry);
  void emitInput(Value input, Value region, Value chunkSlot, Value own);

  Value first;    // of the group, within the chunk
  Value fromPool; // whether the pool has the window before the group
  Value count;    // tokens of the group that count
};

} // namespace

/// One of two places is read, the other gives zeros. Neither for a group
/// without tokens, which may lie past all of them.
Value SplitPrologue::loadWindow(const Carry &carry) {
  Value all = index(carry.type.getDimSize(0)), none = index(0);
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  };
  Value start = startRows(carry);
  Value kept = select(fromPool, start ? start : all, none);
  Value own =
      select(compare(P::eq, count, none), none, select(fromPool, none, all));
  return mapRows(
      b, loc,
      {loadCarryAt(carry, head, slot, kept), loadOwnWindow(carry, head, own)},
      {carry.type}, [&](OpBuilder &, ValueRange in) -> SmallVector<Value> {
        return {arith::AddFOp::create(b, loc, in[0], in[1])};
      })[0];
}

/// An input of the rule to its region, zeros behind the tokens that count.
/// `own` is the head in the region.
void SplitPrologue::emitInput(Value input, Value region, Value chunkSlot,
                              Value own) {
  if (!region)
    return;
  TokenBlock block(*this, head);
  SmallVector<Value> carried;
  llvm::DenseSet<Value> needed = parts.inputsOf({input});
  for (const Carry &carry : parts.carries) {
    auto conv = dyn_cast<Conv1dOp>(carry.op);
    carried.push_back(conv && needed.contains(conv.getResult(carry.section))
                          ? loadWindow(carry)
                          : Value());
  }
  Value tile = block.emitInputs(begin, count, input, carried).front();
  Type element = cast<MemRefType>(region.getType()).getElementType();
  tile = castTile(b, loc, maskRows(b, loc, tile, count), element);
  tile::StoreOp::create(b, loc, tile, region,
                        ValueRange{chunkSlot, own, first, index(0)},
                        ArrayRef<int64_t>{2, 3}, Value());
}

void SplitPrologue::emitChunkSlot(Value chunkSlot, Value isFirst, Value valid) {
  DeltaRuleOp rule = parts.rule;
  Value group = tile::BlockIdOp::create(b, loc, b.getIndexType(), 2);
  first = mul(group, index(blockTokens));
  Value before = arith::MinUIOp::create(b, loc, valid, first);
  count = arith::MinUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, valid, before), index(blockTokens));
  fromPool =
      arith::AndIOp::create(b, loc, isFirst, compare(P::eq, group, index(0)));
  begin = add(begin, first);
  emitInput(rule.getValue(), values, chunkSlot, headIndex(head));
  if (!queries && !keys)
    return;
  // Those of a key head are the same for each of its value heads.
  Value writes = compare(P::eq, head, index(0));
  auto branch = scf::IfOp::create(b, loc, writes, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitInput(rule.getQuery(), queries, chunkSlot, h);
  emitInput(rule.getKey(), keys, chunkSlot, h);
}

LogicalResult gdn::emitPrologueStage(EntryViews &views,
                                     const KernelParts &parts,
                                     const Algorithm &algorithm,
                                     ArrayRef<std::string> variants) {
  return SplitPrologue(views, parts, algorithm, variants).emit();
}
