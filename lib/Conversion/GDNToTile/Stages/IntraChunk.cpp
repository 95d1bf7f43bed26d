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
    ChunkStage::emitBlock(chunkSlot);
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
  known.query = stored(queries);
  known.key = stored(keys);
  StoredChunk chunk = emitIntraChunk(*this, known, begin, valid);
  Value own = headIndex(head);
  storeRegion(chunk.toState, toState, chunkSlot, own);
  storeRegion(chunk.toOutput, toOutput, chunkSlot, own);
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  if (chunk.decay)
    storeGate(chunk.decay, decayRow, chunkSlot);
  storeGate(chunk.strength, strengthRow, chunkSlot);
  if (chunk.decay)
    storeGate(tile::FillOp::create(b, loc, chunk.decay.getType(), zero),
              freeRow, chunkSlot);
  storeGate(chunk.end, endRow, chunkSlot);
  if (!fromKeys)
    return;
  storeRegion(chunk.query, fromQueries, chunkSlot, own);
  storeRegion(chunk.key, fromKeys, chunkSlot, own);
}

LogicalResult gdn::emitIntraChunkStage(const StageInputs &inputs) {
  return IntraChunkStage(inputs).emitStage();
}
