// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gates that the warp of the value makes. What they are made of is asked for
// with what the value is made of: behind the value's work the block would wait
// for memory once more.
#include "Recurrence/JoinedGates.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace gdn;

/// Loads of elements, outside of regions, that floating point in `value` comes
/// from.
static void collectNumbers(Value value, Block *block,
                           SetVector<Value> &numbers) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != block || !isa<FloatType>(value.getType()))
    return;
  if (isa<memref::LoadOp>(op)) {
    numbers.insert(value);
    return;
  }
  for (Value operand : op->getOperands())
    collectNumbers(operand, block, numbers);
}

/// Numbers are loaded as tiles, which stay where they are: LLVM would move
/// loads of elements to their use, into the branch of one lane.
HeadNumbers gdn::emitGateLoads(OpBuilder &b, const RoleWork &gates,
                               FragmentEmitter &warp) {
  for (tile::LoadOp load : getLoads(gates.tiles))
    warp.emit(load);
  SetVector<Value> numbers;
  for (Operation *op : gates.tiles)
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        collectNumbers(operand, op->getBlock(), numbers);
    });
  auto everyLane = gpu::PerRowAttr::get(
      b.getContext(), gpu::RowsAttr::get(b.getContext(), /*warps=*/1,
                                         gpu::warpThreads, /*vector=*/1));
  HeadNumbers tiles;
  for (Value number : numbers) {
    auto load = number.getDefiningOp<memref::LoadOp>();
    auto type = gpu::FragmentType::get(VectorType::get({1}, number.getType()),
                                       everyLane);
    tiles[number] = gpu::LoadOp::create(
        b, load.getLoc(), type, warp.scalar(load.getMemRef()),
        llvm::map_to_vector(load.getIndices(),
                            [&](Value index) { return warp.scalar(index); }),
        /*dims=*/ArrayRef<int64_t>{int64_t(load.getIndices().size()) - 1},
        /*rows=*/Value(), /*aligned=*/0);
  }
  return tiles;
}

void gdn::emitGates(OpBuilder &b, Location loc, const RoleWork &gates,
                    const HeadNumbers &numbers, FragmentEmitter &warp) {
  for (auto [number, tile] : numbers)
    warp.mapScalar(number, gpu::ExtractOp::create(b, loc, number.getType(),
                                                  tile, /*index=*/0));
  for (Operation *op : gates.tiles)
    if (!isa<tile::LoadOp>(op))
      warp.emit(op);
}
