// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last stage of the variants "staged" of a kernel with a norm behind the
// rule: a block per piece of a chunk and value head. The recurrence left the
// rule's output in a result of the entry, rounded to its type, as it is between
// the layers of a model; so the norm is a pass over memory.
#include "Program/NormOperands.h"
#include "Stages/TokenGroupStage.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

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
  void emitPiece(Value chunkSlot, Value isFirst) override;

private:
  const NormOperands &stage;
};

} // namespace

void NormStage::emitPiece(Value, Value) {
  TokenBlock block(*this, head);
  GatedRMSNormOp norm = stage.norm;
  Value input = operandViews.lookup(views.results[stage.inputResult]);
  auto load = [&](Value at, Value valid) -> Tiles {
    Value t = add(begin, at);
    auto type = VectorType::get(
        {blockTokens,
         cast<RankedTensorType>(norm.getInput().getType()).getShape().back()},
        cast<MemRefType>(input.getType()).getElementType());
    return {tile::LoadOp::create(b, loc, type, input,
                                 ValueRange{t, h, head, index(0)},
                                 ArrayRef<int64_t>{0, 3}, valid),
            loadInput(norm.getGate(), t, valid, blockTokens,
                      /*wholeValues=*/true)};
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
