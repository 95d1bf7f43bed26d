// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which states suit, their factors, and their products.
#include "Recurrence/NarrowReplay.h"

#include "Kernel/RowParts.h"

using namespace mlir;
using namespace gdn;

/// Rows of a product, and neighbouring columns of a lane.
static constexpr int64_t productRows = 16, laneColumns = 8;
/// Registers that a thread has for a state.
static constexpr int64_t maxThreadWords = 64;

bool NarrowReplay::suits(tile::DeltaReplayOp replay, int64_t threads) {
  auto load = replay.getState().getDefiningOp<tile::LoadOp>();
  if (!load || load.getRows() || replay.isPerChannel() || replay.getSeen() ||
      liesAcross(load.getView(), load.getDims()))
    return false;
  VectorType state = load.getTile().getType();
  return state.getElementTypeBitWidth() == 16 &&
         state.getNumElements() / 2 <= threads * maxThreadWords &&
         state.getDimSize(1) % (partLanes * laneColumns) == 0 &&
         state.getDimSize(0) % (threads / gpu::warpThreads * productRows) == 0;
}

/// Its sums are of another order than those of the other programs.
void NarrowReplay::emitRootBlock(Block &block) {
  tile::StageFields(entry->getParentOp()).setBits("crowded");
  PartReplay::emitRootBlock(block);
}

void NarrowReplay::emitFactors(ScanRole role, FragmentEmitter &warp) {
  if (role != ScanRole::key && role != ScanRole::query)
    return;
  Location loc = scan.getLoc();
  bool isKey = role == ScanRole::key;
  Value row = isKey ? scan.getKey() : scan.getQuery();
  Type element = scan.getState().getType().getElementType();
  SmallVector<Value> parts = emitNarrowParts(b, loc, warp[row], element);
  RowParts &made = isKey ? keyParts : queryParts;
  constexpr int64_t numParts = 3;
  made.rows = allocate(VectorType::get(
      {numParts, cast<VectorType>(row.getType()).getDimSize(1)}, element));
  for (int64_t i = 0; i < numParts; ++i)
    gpu::StoreSharedOp::create(b, loc, parts[i], made.rows,
                               arith::ConstantIndexOp::create(b, loc, i));
  if (parts.size() == numParts)
    return;
  made.unit = allocate(VectorType::get({1}, b.getF32Type()));
  gpu::StoreSharedOp::create(b, loc, parts[numParts], made.unit, Value());
}

void NarrowReplay::emitStateProducts(FragmentEmitter &all) {
  Location loc = scan.getLoc();
  auto unitOf = [&](const RowParts &parts) -> Value {
    if (!parts.unit)
      return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1.0f));
    return gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(), parts.unit,
                                            zero);
  };
  Value key = unitOf(keyParts), query = unitOf(queryParts);
  gpu::SharePartProductsOp::create(b, loc, all[scan.getState()], keyParts.rows,
                                   key, queryParts.rows, query, products);
}
