// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group of the consumers has some columns of an output's rows. All of them
// meet in shared memory, where each warp takes rows of its own: a sum over a
// row is one over lanes then, and rows are read and stored in whole pieces. The
// state's next product is under way meanwhile, and has registers of its own.
#include "Products/OutputRows.h"

#include "Kernel/OperandRoles.h"
#include "Products/LoadsAndStores.h"
#include "Products/RowMaps.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"

using namespace mlir;
using namespace gdn;

/// What a thread stores at once.
static constexpr int64_t pieceBytes = 16;

/// Stores rows in whole pieces.
static void storeInPieces(SharedTiles &rows, tile::StoreOp store) {
  Value view = rows.scalars.lookupOrDefault(store.getView());
  promiseAlignment(view);
  gpu::StoreOp::create(
      rows.b, store.getLoc(), rows.fragmentOf(store.getTile()), view,
      lookupAll(rows.scalars, store.getIndices()), store.getDims(),
      rows.scalars.lookupOrDefault(store.getRows()), pieceBytes);
}

/// The axis of the grid on which the blocks of a pair differ: the last one.
static int32_t getPairAxis(Operation *op) {
  tile::StageFields stage(op->getParentOfType<FunctionOpInterface>());
  return int32_t(stage.getGrid().size()) - 1;
}

/// What both blocks of a pair have of `sum`, added up in their order: a vector
/// of the type that this block's part, own, has.
static Value addUp(OpBuilder &b, tile::SumOfPairOp sum, Value own,
                   Value parts) {
  Location loc = sum.getLoc();
  SmallVector<Value> halves;
  for (int64_t i : {0, 1})
    halves.push_back(
        gpu::LoadSharedOp::create(b, loc, own.getType(), parts,
                                  arith::ConstantIndexOp::create(b, loc, i)));
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{own.getType()}, halves);
  OpBuilder::InsertionGuard guard(b);
  Block *body = map.openBody(b);
  gpu::YieldOp::create(
      b, loc,
      arith::AddFOp::create(b, loc, body->getArgument(1), body->getArgument(2))
          .getResult());
  return map.getResult(0);
}

void gdn::emitOutputRows(SharedTiles &tiles, const RolePlan &plan,
                         TileChannels &channels, Block *entry,
                         SmallVectorImpl<Value> &received) {
  OpBuilder &b = tiles.b;
  SharedTiles rows(b, tiles.scalars, entry, tiles.numWarps);
  rows.dealWide();
  SmallVector<Operation *> work(plan.behind.begin(), plan.behind.end());
  llvm::sort(work, inProgramOrder);
  for (Operation *op : work)
    for (Value tile : getUsedTiles(op))
      if (Value buffer = tiles.findBuffer(tile))
        rows.pinBuffer(tile, buffer);
  for (Value output : plan.outputs)
    rows.setFragment(output, rows.fragmentOf(output));
  // Behind it the next outputs may be shared, while products are under way.
  gpu::BarrierOp::create(b, work.front()->getLoc());
  // What goes into sums over both blocks comes first, what follows from them
  // last, and all else in the time that the other block takes.
  SmallVector<tile::SumOfPairOp> sums;
  SmallVector<Value> found;
  DenseSet<Operation *> needed;
  for (Operation *op : llvm::reverse(work)) {
    auto sum = dyn_cast<tile::SumOfPairOp>(op);
    if (sum) {
      sums.push_back(sum);
      found.push_back(sum.getResult());
    }
    if (sum || llvm::any_of(op->getUsers(), [&](Operation *user) {
          return needed.contains(user);
        }))
      needed.insert(op);
  }
  scf::ForOp loop = plan.loop;
  const DenseSet<Operation *> behind = getFollowers(found, loop.getBody());
  auto emitAll = [&](function_ref<bool(Operation *)> isOne) {
    for (Operation *op : work)
      if (auto map = dyn_cast<tile::MapRowsOp>(op); map && isOne(op))
        emitMap(rows, map);
      else if (auto store = dyn_cast<tile::StoreOp>(op); store && isOne(op))
        storeInPieces(rows, store);
  };
  emitAll([&](Operation *op) { return needed.contains(op); });
  for (tile::SumOfPairOp sum : sums)
    channels.give(sum, rows.vectorOf(sum.getValues(), Attribute()),
                  gpu::BlockIdOp::create(b, sum.getLoc(), b.getIndexType(),
                                         getPairAxis(sum)));
  emitAll([&](Operation *op) {
    return !needed.contains(op) && !behind.contains(op);
  });
  for (tile::SumOfPairOp sum : sums)
    rows.setFragment(sum.getResult(),
                     addUp(b, sum, rows.vectorOf(sum.getValues(), Attribute()),
                           channels.take(sum, received)));
  emitAll([&](Operation *op) { return behind.contains(op); });
}
