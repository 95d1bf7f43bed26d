// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage of the variants "staged" that does all that a chunk does not need
// the state for. Inputs of the rule are in memory, or in the workspace where
// the stage before put them; gates are computed here.
#include "Program/TokenOps.h"
#include "Stages/ChunkStage.h"
#include "Stages/IntraChunkBody.h"
#include "Stages/SequenceOrder.h"

using namespace mlir;
using namespace gdn;

namespace {

class IntraChunkStage final : public ChunkStage {
public:
  using ChunkStage::ChunkStage;

protected:
  void emitBlock(Value chunkSlot) override {
    if (order)
      storeOrder(*this, order, chunkSlot);
    OpBuilder::InsertionGuard guard(b);
    if (algorithm.wholeCost != 0)
      enterIf(isChosen(*this, chooseByLengths(*this, chunkSlot),
                       /*ofWhole=*/false));
    emitSlot(chunkSlot);
  }
  SmallVector<std::string> gridOf(const std::string &slots) override {
    return {slots, valueForm};
  }
  void emitChunkSlot(Value chunkSlot, Value isFirst, Value valid) override;
};

} // namespace

/// The chunk of the tokens `begin` to `begin + valid` to its slot.
void IntraChunkStage::emitChunkSlot(Value chunkSlot, Value, Value valid) {
  auto stored = [&](Value region) {
    return region ? castTile(b, loc, loadRegion(region, chunkSlot, h),
                             b.getF32Type())
                  : Value();
  };
  Chunk known = {};
  Operand query, key;
  if (chunkTypes.parts > 1) {
    query = loadOperand(queries, chunkSlot, h);
    key = loadOperand(keys, chunkSlot, h);
  } else {
    known.query = stored(queries.high);
    known.key = stored(keys.high);
  }
  Value own = headIndex(head);
  StoredChunk chunk = emitIntraChunk(*this, known, begin, valid, query, key);
  if (fromKeys) {
    // At once, so that products behind have the place.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(chunk.key.high);
    storeOperand(chunk.query, {fromQueries}, chunkSlot, own);
    storeOperand(chunk.key, {fromKeys}, chunkSlot, own);
  }
  storeOperand(chunk.toState, toState, chunkSlot, own);
  storeOperand(chunk.toOutput, toOutput, chunkSlot, own);
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  if (chunk.decay)
    storeGate(chunk.decay, decayRow, chunkSlot);
  storeGate(chunk.strength, strengthRow, chunkSlot);
  if (chunk.decay)
    storeGate(tile::FillOp::create(b, loc, chunk.decay.getType(), zero),
              freeRow, chunkSlot);
  storeGate(chunk.end, endRow, chunkSlot);
}

LogicalResult gdn::emitIntraChunkStage(const StageInputs &inputs) {
  return IntraChunkStage(inputs).emitStage();
}
