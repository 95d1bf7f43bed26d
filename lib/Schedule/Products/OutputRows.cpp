// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group of the consumers has some columns of an output's rows. All of them
// meet in shared memory, where each warp takes rows of its own: a sum over a row
// is one over lanes then, and rows are read and stored in whole pieces. The
// state's next product is under way meanwhile, and has registers of its own.
#include "Products/OutputRows.h"

#include "Kernel/OperandRoles.h"
#include "Products/LoadsAndStores.h"
#include "Products/RowMaps.h"

using namespace mlir;
using namespace gdn;

/// What a thread stores at once.
static constexpr int64_t pieceBytes = 16;

void gdn::emitOutputRows(SharedTiles &tiles, const RolePlan &plan,
                         Block *entry) {
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
  for (Operation *op : work) {
    if (auto map = dyn_cast<tile::MapRowsOp>(op)) {
      emitMap(rows, map);
      continue;
    }
    auto store = cast<tile::StoreOp>(op);
    Value view = rows.scalars.lookupOrDefault(store.getView());
    promiseAlignment(view);
    gpu::StoreOp::create(b, store.getLoc(), rows.fragmentOf(store.getTile()),
                         view, lookupAll(rows.scalars, store.getIndices()),
                         store.getDims(),
                         rows.scalars.lookupOrDefault(store.getRows()),
                         pieceBytes);
  }
}
