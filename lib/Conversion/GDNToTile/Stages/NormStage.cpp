// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last stage of the variants "staged" of a kernel with a norm behind the
// rule: a block per piece of a chunk and value head. The recurrence left the
// rule's output in a result of the entry, rounded to its type, as it is between
// the layers of a model; so the norm is a pass over memory.
#include "Program/NormOperands.h"
#include "Stages/TokenGroupStage.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace gdn;

/// Values of a row that a lane of a recurrence has side by side: 16 bytes.
static constexpr int64_t pieceValues = 8;

namespace {

class NormStage final : public TokenGroupStage {
public:
  NormStage(const StageInputs &inputs, const NormOperands &stage)
      : TokenGroupStage(inputs), stage(stage) {
    // With the bits of those variants that have the norm in the recurrence.
    normsOutputs = algorithm.normBehind;
    if (normsOutputs)
      views.stage().setRowValues(pieceValues);
  }

protected:
  SmallVector<std::string> gridOf(const std::string &slots) override;
  void emitBlock(Value at) override;
  void emitPiece(Value chunkSlot, Value isFirst) override;

private:
  const NormOperands &stage;
};

} // namespace

/// Beside the rule, blocks begin in the order in which it makes what they read:
/// as many chunks at the same time as there are segments, or sequences.
SmallVector<std::string> NormStage::gridOf(const std::string &slots) {
  SmallVector<std::string> grid = TokenGroupStage::gridOf(slots);
  if (!algorithm.normFollows)
    return grid;
  views.stage().setFollows();
  std::string parts = algorithm.batchSegments != 0
                          ? std::to_string(algorithm.batchSegments)
                          : sequenceForm;
  return {grid[1], grid[0] + " + " + parts, grid[2]};
}

void NormStage::emitBlock(Value at) {
  if (!algorithm.normFollows)
    return TokenGroupStage::emitBlock(at);
  h = divideTokens(*this, at, ratio);
  head = sub(at, mul(h, ratio));
  at = tile::BlockIdOp::create(b, loc, b.getIndexType(), 1);
  Value parts =
      algorithm.batchSegments != 0
          ? index(algorithm.batchSegments)
          : Value(arith::MaxUIOp::create(b, loc, sequenceCount(), index(1)));
  Value tokens = memref::DimOp::create(
      b, loc, operandViews.lookup(views.results.front()), 0);
  Value slots =
      add(divideTokens(*this, tokens, index(algorithm.chunk)), sequenceCount());
  Value share = divideTokens(*this, add(slots, sub(parts, index(1))), parts);
  Value number = divideTokens(*this, at, parts);
  Value slot = add(mul(sub(at, mul(number, parts)), share), number);
  OpBuilder::InsertionGuard guard(b);
  enterIf(both(compare(arith::CmpIPredicate::ult, number, share),
               compare(arith::CmpIPredicate::ult, slot, slots)));
  emitSlot(slot);
}

void NormStage::emitPiece(Value chunkSlot, Value) {
  TokenBlock block(*this, head);
  GatedRMSNormOp norm = stage.norm;
  if (algorithm.normFollows)
    tile::AwaitSignalsOp::create(
        b, loc,
        cast<RankedTensorType>(norm.getInput().getType()).getShape().back(),
        signals, ValueRange{chunkSlot, headIndex(head)});
  Value input = operandViews.lookup(views.results[stage.inputResult]);
  auto load = [&](Value at, Rows rows) -> Tiles {
    Value t = add(begin, at);
    auto type = VectorType::get(
        {blockTokens,
         cast<RankedTensorType>(norm.getInput().getType()).getShape().back()},
        cast<MemRefType>(input.getType()).getElementType());
    return {tile::LoadOp::create(
                b, loc, type, input, ValueRange{t, h, head, index(0)},
                ArrayRef<int64_t>{0, 3}, rows.valid, rows.whole),
            loadInput(norm.getGate(), t, rows.valid, blockTokens,
                      /*wholeValues=*/true, rows.whole)};
  };
  emitGroups(
      load, [](Value) { return Tiles(); },
      [&](Value at, Value valid, ValueRange loaded, Tiles &) {
        block.hold(norm.getInput(), loaded[0]);
        block.hold(norm.getGate(), loaded[1]);
        block.emitNormResults(add(begin, at), valid, stage);
      });
}

LogicalResult gdn::emitNormStage(const StageInputs &inputs) {
  std::optional<NormOperands> stage = NormOperands::find(inputs.parts);
  return NormStage(inputs, *stage).emitStage();
}
