// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block has a segment of a sequence: nothing of a convolution's output
// depends on more than the inputs ahead of it. The window in the pool is read
// by the block of the first segment, so the block that comes last of all
// segments writes it, from the last tokens of the sequence. A short sequence
// leaves some segments empty.
#include "Recurrence/ConvSegments.h"

#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class ConvSegments final : public RecurrentKernel {
public:
  using RecurrentKernel::RecurrentKernel;

protected:
  void takeTokens() override;
  Value loadStart(const Carry &carry, Value r) override;
  void storeEnd(const Carry &carry, Value tile, Value r) override;

private:
  Value poolRows(const Carry &carry);
  Value loadTokens(const Carry &carry, Value r, Value valid);

  Value sequenceBegin, sequenceEnd;
  Value segment;
  int64_t numWindows = 0;
};

} // namespace

void ConvSegments::takeTokens() {
  numWindows = parts.carries.size();
  views.stage().setGrid(
      {sequenceForm + " + 1", valueForm, std::to_string(algorithm.segments)});
  tile::StageFields stage = views.stage();
  stage.setGroups(
      {std::to_string(numWindows), sequenceForm + " + 1", valueForm});
  // Blocks of short sequences would have nothing to do.
  std::string tokens = getDimForm(parts.results.front().second, 0);
  stage.setConditions(b.getArrayAttr(
      b.getArrayAttr({b.getStrArrayAttr({std::to_string(algorithm.segmentsFrom),
                                         sequenceForm}),
                      b.getStrArrayAttr({tokens})})));
  stage.setStageOf(func::FuncOp(views.source).getName());
  stage.setVariant("segments");
  segment = tile::BlockIdOp::create(b, loc, b.getIndexType(), 2);
  sequenceBegin = begin;
  sequenceEnd = end;
  Value share = arith::CeilDivUIOp::create(
      b, loc, sub(end, begin), index(algorithm.segments * blockTokens));
  share = mul(share, index(blockTokens));
  begin = minimum(add(begin, mul(segment, share)), end);
  end = minimum(add(begin, share), end);
  // Padding ahead of the first sequence has one block.
  if (lead)
    lead = select(compare(P::eq, segment, index(0)), lead, index(0));
}

/// Rows of the pool's window if `begin` is the sequence's first token, else
/// none.
Value ConvSegments::poolRows(const Carry &carry) {
  Value start = startRows(carry);
  return select(compare(P::eq, begin, sequenceBegin),
                start ? start : index(carry.type.getDimSize(0)), index(0));
}

/// The window before the block's tokens: the pool's, or the sequence's own
/// inputs. A segment without tokens may have no inputs ahead of it.
Value ConvSegments::loadStart(const Carry &carry, Value r) {
  Value none = index(0), all = index(carry.type.getDimSize(0));
  Value own = select(compare(P::eq, begin, sequenceBegin), none,
                     select(compare(P::eq, begin, end), none, all));
  Value kept =
      loadCarryAt(carry, r, slot, poolRows(carry), algorithm.wholeLoads);
  return joinWindow(carry, kept,
                    loadOwnWindow(carry, r, own, algorithm.wholeLoads));
}

Value ConvSegments::loadTokens(const Carry &carry, Value r, Value valid) {
  auto conv = cast<Conv1dOp>(carry.op);
  Value input = conv.getInputs()[carry.section];
  auto tensor = cast<RankedTensorType>(input.getType());
  auto type = VectorType::get({blockTokens, carry.type.getDimSize(1)},
                              tensor.getElementType());
  Value tile = tile::LoadOp::create(b, loc, type, operandViews.lookup(input),
                                    ValueRange{begin, h, r, index(0)},
                                    ArrayRef<int64_t>{0, 3}, valid);
  return castTile(b, loc, tile, b.getF32Type());
}

void ConvSegments::storeEnd(const Carry &carry, Value, Value r) {
  Value head = add(mul(n, mul(heads, ratio)), headIndex(r));
  Value group = add(mul(head, index(numWindows)), index(carry.section));
  Value isLast = tile::LastInGroupOp::create(b, loc, b.getI1Type(), group,
                                             index(algorithm.segments));
  auto write = scf::IfOp::create(b, loc, isLast, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(write.thenBlock());
  Value count = minimum(sub(sequenceEnd, sequenceBegin), index(blockTokens));
  llvm::SaveAndRestore first(begin, sub(sequenceEnd, count));
  // Of more tokens nothing of the window before them is left.
  Value window = loadCarryAt(carry, r, slot, poolRows(carry));
  Value tokens = loadTokens(carry, r, count);
  // A convolution moves the window on, whatever the weights are.
  auto weights = VectorType::get(
      {carry.type.getDimSize(0) + 1, carry.type.getDimSize(1)}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  auto moved = tile::Conv1dOp::create(
      b, loc, TypeRange{tokens.getType(), carry.type}, tokens, window,
      tile::FillOp::create(b, loc, weights, zero), Value(), count);
  storeCarry(carry, moved.getNewWindow(), r);
}

/// Whether sequences of the kernel can be cut; see emitConvSegments.
static bool hasSegments(const KernelOperands &parts,
                        const Algorithm &algorithm) {
  return algorithm.segments != 0 && algorithm.valueHeads && !parts.rule &&
         parts.cuSeqlens && !parts.carries.empty() && !parts.checkpoints &&
         !parts.tokenSlots && !parts.numAccepted && !parts.taken &&
         llvm::all_of(parts.carries, [&](const Carry &carry) {
           return carry.type.getDimSize(0) <= algorithm.tokens;
         });
}

LogicalResult gdn::emitConvSegments(func::FuncOp entry, KernelOp kernel,
                                    const Algorithm &algorithm,
                                    int64_t &numStages) {
  FailureOr<KernelOperands> parts = KernelOperands::analyse(entry, kernel);
  if (failed(parts))
    return failure();
  if (!hasSegments(*parts, algorithm))
    return success();
  return emitStageOf(entry, "__segments", numStages, [&](EntryViews &views) {
    return ConvSegments(views, *parts, algorithm).emit();
  });
}
