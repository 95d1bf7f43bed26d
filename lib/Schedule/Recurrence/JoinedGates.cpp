// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gates that the warp of the value makes. What they are made of is asked for
// with what the value is made of: behind the value's work the block would wait
// for memory once more.
#include "Recurrence/ResidentKernel.h"

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
ResidentKernel::HeadNumbers
ResidentKernel::emitGateLoads(FragmentEmitter &warp) {
  const RoleWork &work = (*roles)[ScanRole::gates];
  for (tile::LoadOp load : getLoads(work.tiles))
    warp.emit(load);
  SetVector<Value> numbers;
  for (Operation *op : work.tiles)
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

/// The gates, behind the value's work.
void ResidentKernel::emitGates(FragmentEmitter &warp,
                               const HeadNumbers &numbers) {
  Location loc = scan.getLoc();
  const RoleWork &work = (*roles)[ScanRole::gates];
  for (auto [number, tile] : numbers)
    warp.mapScalar(number, gpu::ExtractOp::create(b, loc, number.getType(),
                                                  tile, /*index=*/0));
  for (Operation *op : work.tiles)
    if (!isa<tile::LoadOp>(op))
      warp.emit(op);
  SetVector<Value> stored;
  stored.insert_range(scan.getGates());
  stored.insert_range(getKept(ScanRole::gates, scan.getGates()));
  for (Value tile : stored) {
    shared[tile] = allocate(tile);
    gpu::StoreSharedOp::create(b, loc, warp[tile], shared[tile], Value());
  }
  for (Operation *op : work.stores)
    if (!isLate(op))
      warp.emitStores(op, {});
}
