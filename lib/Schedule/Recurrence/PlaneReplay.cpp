// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which states suit, the planes that are read, and their products.
#include "Recurrence/PlaneReplay.h"

#include "Kernel/PendingSource.h"
#include "Kernel/RowParts.h"

using namespace mlir;
using namespace gdn;

/// Neighbouring columns of a lane, as products of bytes have them.
static constexpr int64_t byteColumns = 16;

bool PlaneReplay::suits(tile::DeltaReplayOp replay, int64_t threads) {
  if (!replay.getState().getDefiningOp<tile::MapRowsOp>() ||
      replay.isPerChannel())
    return false;
  auto state = cast<VectorType>(replay.getState().getType());
  return state.getDimSize(1) % (partLanes * byteColumns) == 0 &&
         state.getDimSize(0) % (threads / gpu::warpThreads * warpRows) == 0;
}

int64_t PlaneReplay::getOwnVector() { return byteColumns; }

int64_t PlaneReplay::countPlanes(tile::DeltaReplayOp replay) {
  return replay.getState().getDefiningOp<tile::MapRowsOp>().getInputs().size() -
         1;
}

int64_t PlaneReplay::countSeenPlanes(tile::DeltaReplayOp replay) {
  return findSeen(replay).getInputs().size() - 1; // and the scales
}

/// Others are loaded again by rows that receive pending tokens.
SmallVector<tile::LoadOp> PlaneReplay::getStateLoads() {
  SmallVector<tile::LoadOp> loads;
  for (Value tile : getSeen().getInputs())
    loads.push_back(tile.getDefiningOp<tile::LoadOp>());
  return loads;
}

void PlaneReplay::emitFactors(ScanRole role, FragmentEmitter &warp) {
  if (role != ScanRole::key && role != ScanRole::query)
    return;
  Location loc = scan.getLoc();
  bool isKey = role == ScanRole::key;
  Value row = isKey ? scan.getKey() : scan.getQuery();
  auto parts = emitRowParts(b, loc, warp[row]);
  int64_t columns = cast<VectorType>(row.getType()).getDimSize(1);
  RowParts &made = isKey ? keyParts : queryParts;
  constexpr int64_t numParts = 3;
  made.rows = allocate(VectorType::get({numParts, columns}, b.getI8Type()));
  made.unit = allocate(VectorType::get({1}, b.getF32Type()));
  for (int64_t i = 0; i < numParts; ++i)
    gpu::StoreSharedOp::create(b, loc, parts[i], made.rows,
                               arith::ConstantIndexOp::create(b, loc, i));
  gpu::StoreSharedOp::create(b, loc, parts[numParts], made.unit, Value());
}

bool PlaneReplay::foldsPlanes() {
  constexpr int64_t blockColumns = 128;
  VectorType keys =
      findPendingSource(replay.getPendingKey()).load.getTile().getType();
  return keys.getElementType().isF16() &&
         keys.getDimSize(1) % blockColumns == 0;
}

bool PlaneReplay::keepsState() {
  auto state = cast<VectorType>(scan.getState().getType());
  constexpr int64_t mostRows = 2;
  return isKept && state.getDimSize(0) == mostRows * numWarps * warpRows;
}

void PlaneReplay::emitStateProducts(FragmentEmitter &all) {
  Location loc = scan.getLoc();
  SmallVector<Value> upper, low, scales;
  for (Value tile : getSeen().getInputs()) {
    Value fragment = getState(all, tile);
    bool isNumbers =
        cast<gpu::FragmentType>(fragment.getType()).getShape().size() == 1;
    (isNumbers ? scales : upper.empty() ? upper : low).push_back(fragment);
  }
  auto unitOf = [&](const RowParts &parts) -> Value {
    return gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(), parts.unit,
                                            zero);
  };
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  gpu::ShareByteProductsOp::create(b, loc, upper, low, scales, keyParts.rows,
                                   unitOf(keyParts), zero, queryParts.rows,
                                   unitOf(queryParts), one, products);
}
