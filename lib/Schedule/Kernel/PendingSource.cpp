// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a tile back to its load, past casts and scales.
#include "Kernel/PendingSource.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

/// Whether a map widens the rows of its first input, times the number of its
/// second one if there are two.
static bool isWidening(tile::MapRowsOp map) {
  Block &body = map.getBody().front();
  Value made = body.getTerminator()->getOperand(0);
  if (map.getInputs().size() == 2) {
    auto product = made.getDefiningOp<arith::MulFOp>();
    auto factors = product
                       ? product.getRhs().getDefiningOp<vector::BroadcastOp>()
                       : vector::BroadcastOp();
    if (!factors || factors.getSource() != body.getArgument(2))
      return false;
    made = product.getLhs();
  }
  auto widened = made.getDefiningOp<arith::ExtFOp>();
  return widened && widened.getIn() == body.getArgument(1);
}

PendingSource gdn::findPendingSource(Value tile) {
  if (auto load = tile.getDefiningOp<tile::LoadOp>())
    return {load, nullptr};
  auto map = tile.getDefiningOp<tile::MapRowsOp>();
  if (!map || map->getNumResults() != 1 || map.getInputs().empty() ||
      map.getInputs().size() > 2 || !isWidening(map))
    return {};
  auto load = map.getInputs().front().getDefiningOp<tile::LoadOp>();
  if (map.getInputs().size() == 1)
    return {load, nullptr};
  auto scales = map.getInputs().back().getDefiningOp<tile::LoadOp>();
  return scales ? PendingSource{load, scales} : PendingSource();
}

SmallVector<tile::LoadOp, 4> gdn::getPendingLoads(tile::PendingOpInterface op) {
  SmallVector<tile::LoadOp, 4> loads;
  for (Value tile : op.getPendingTiles()) {
    PendingSource source = findPendingSource(tile);
    loads.push_back(source.load);
    if (source.scales)
      loads.push_back(source.scales);
  }
  return loads;
}

LogicalResult gdn::checkPendingSources(tile::PendingOpInterface op) {
  for (Value tile : op.getPendingTiles())
    if (PendingSource source = findPendingSource(tile);
        !source || !source.load.getRows())
      return op->emitOpError("expects pending tokens as they are loaded");
  return success();
}
