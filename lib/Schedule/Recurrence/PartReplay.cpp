// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The products of a state, then the fold of its pending tokens, some rows at a
// time.
#include "Recurrence/PartReplay.h"

#include "Kernel/FoldStep.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Steps that leave the state as it is do not come to what spills.
static constexpr llvm::StringLiteral allowedFoldSpills =
    "spills up to 128 bytes: where rows of a state receive their pending "
    "tokens, one step of as many as may be pending";

void PartReplay::chooseWarps(int64_t &minBlocks) {
  ResidentReplay::chooseWarps(minBlocks);
  if (minBlocks != 1)
    minBlocks = blocks;
}

/// Finds what is stored of the state.
LogicalResult PartReplay::check() {
  if (failed(ResidentReplay::check()))
    return failure();
  widen = scan.getState().getDefiningOp<tile::MapRowsOp>();
  bool ok = llvm::all_of(getFoldTiles(), [](Value tile) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    return load && !load.getRows();
  });
  for (Operation *op : (*roles)[ScanRole::state].stores)
    op->walk([&](Operation *inner) {
      if (isa<tile::MapRowsOp>(inner))
        roundings.push_back(inner);
      else if (auto store = dyn_cast<tile::StoreOp>(inner))
        stores.push_back(store);
    });
  if (ok)
    return success();
  return scan.emitOpError("expects a state that is loaded whole");
}

/// Both sums are those of the state without its pending tokens.
void PartReplay::emitState(FragmentEmitter &all) {
  entry->getParentOp()->setAttr("gdn_gpu.allow",
                                b.getStringAttr(allowedFoldSpills));
  products = allocate(VectorType::get(
      {2, scan.getState().getType().getDimSize(0)}, b.getF32Type()));
  emitStateProducts(all);
  VectorType keys = replay.getPendingKey().getType();
  const int64_t tokens = llvm::alignTo<16>(keys.getDimSize(0)),
                columns = keys.getDimSize(1);
  constexpr int64_t laneColumns = 16, rowElements = 264;
  keyColumns = allocate(
      foldsPlanes()
          ? VectorType::get({tokens / 16 * columns / laneColumns, rowElements},
                            b.getF16Type())
          : VectorType::get({columns, 2 * tokens}, b.getBF16Type()));
  OpBuilder::InsertionGuard guard(b);
  enterFold();
  if (keepsState())
    shareKeyColumns();
  else
    emitFold();
}

/// Where the state receives its pending tokens.
void PartReplay::enterFold() {
  auto branch = scf::IfOp::create(b, scan.getLoc(), lookup(replay.getCommit()),
                                  /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
}

void PartReplay::shareKeyColumns() {
  // Rows of a kept state are the left side of products.
  if (foldsPlanes())
    return (void)gpu::ShareKeyColumnsOp::create(
        b, scan.getLoc(), pending.keys, keyColumns, /*left=*/!keepsState());
  gpu::ShareColumnPartsOp::create(b, scan.getLoc(), pending.keys, keyColumns,
                                  /*spread=*/keepsState());
}

void PartReplay::emitStateLoads(FragmentEmitter &all) {
  if (!keepsState())
    return ResidentReplay::emitStateLoads(all);
  RowGroup group = getPart(scan.getState().getType().getDimSize(0));
  for (tile::LoadOp load : getStateLoads())
    keptState[load.getTile()] = loadPart(group, zero, load.getTile());
  copyUnseen();
}

/// What no token sees of the state, if it is to receive its pending tokens.
void PartReplay::copyUnseen() {
  Location loc = scan.getLoc();
  for (Value tile : getFoldTiles()) {
    if (keptState.contains(tile))
      continue;
    auto load = tile.getDefiningOp<tile::LoadOp>();
    auto type = cast<VectorType>(tile.getType());
    Value rows = arith::SelectOp::create(
        b, loc, lookup(replay.getCommit()),
        arith::ConstantIndexOp::create(b, loc, type.getDimSize(0)), zero);
    unseen[tile] = allocate(type);
    gpu::BeginCopyOp::create(
        b, loc, lookup(load.getView()),
        llvm::map_to_vector(load.getIndices(),
                            [&](Value index) { return lookup(index); }),
        load.getDims(), rows, unseen[tile], /*scattered=*/false,
        /*per_warpgroup=*/false, /*tensor_map=*/false);
  }
}

/// Null where it does not count.
Value PartReplay::getTokenUnit() {
  if (!foldsPlanes())
    return nullptr;
  return gpu::TokenUnitOp::create(b, scan.getLoc(), b.getF32Type(),
                                  pending.weights);
}

/// All rows at once, of what threads have.
void PartReplay::emitBehindSums() {
  Location loc = scan.getLoc();
  OpBuilder::InsertionGuard guard(b);
  enterFold();
  RowGroup group = getPart(scan.getState().getType().getDimSize(0));
  FragmentEmitter rows(b, scalars, getPartRows());
  SmallVector<Value> now;
  for (Value tile : getFoldTiles())
    now.push_back(unseen.contains(tile)
                      ? gpu::LoadSharedOp::create(b, loc, rows.typeOf(tile),
                                                  unseen[tile], zero)
                            .getResult()
                      : keptState[tile]);
  emitFoldRows(group, zero, getTokenUnit(), now);
}

/// Pending keys become parts once for all rows, of which each warp takes eight
/// at a time, and loads the next ones ahead of its work.
void PartReplay::emitFold() {
  Location loc = scan.getLoc();
  auto state = cast<VectorType>(scan.getState().getType());
  int64_t rows = numWarps * warpRows, parts = state.getDimSize(0) / rows;
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  RowGroup group = getPart(rows);
  const bool isAhead = loadsAhead();
  SmallVector<Value> first;
  if (isAhead)
    first = loadPart(group, index(0));
  shareKeyColumns();
  gpu::BarrierOp::create(b, loc);
  Value unit = getTokenUnit();
  auto loop =
      scf::ForOp::create(b, loc, index(0), index(parts), index(1), first);
  b.setInsertionPointToStart(loop.getBody());
  Value part = loop.getInductionVar();
  if (!isAhead) {
    emitFoldRows(group, part, unit, loadPart(group, part));
    return;
  }
  // The last one's again behind it.
  Value next = arith::MinUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, part, index(1)), index(parts - 1));
  SmallVector<Value> ahead = loadPart(group, next);
  emitFoldRows(group, part, unit, loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, ahead);
}

/// Rows of what a fold loads, and stores.
RowGroup PartReplay::getPart(int64_t numRows) {
  RowGroup group;
  group.count = numRows;
  group.tiles.insert_range(getFoldTiles());
  group.tiles.insert(scan.getState());
  for (tile::StoreOp store : stores)
    group.tiles.insert(store.getTile());
  return group;
}

/// Eight rows of a warp have two lanes' rows of a product on the right.
gpu::RowsAttr PartReplay::getPartRows() {
  if (foldsPlanes() && !keepsState())
    return gpu::RowsAttr::get(b.getContext(), numWarps, 2 * partLanes,
                              getOwnVector(), /*cyclic=*/false, /*tall=*/false,
                              /*crossed=*/true);
  return gpu::RowsAttr::get(b.getContext(), numWarps, partLanes,
                            getOwnVector());
}

SmallVector<Value> PartReplay::getFoldTiles() {
  return widen ? SmallVector<Value>(widen.getInputs())
               : SmallVector<Value>{scan.getState()};
}

SmallVector<Value> PartReplay::atPart(const RowGroup &group, Value part,
                                      ValueRange indices, int64_t dim) {
  Location loc = scan.getLoc();
  FragmentEmitter outside(b, scalars);
  SmallVector<Value> all = llvm::map_to_vector(
      indices, [&](Value index) { return outside.scalar(index); });
  Value first = arith::MulIOp::create(
      b, loc, part, arith::ConstantIndexOp::create(b, loc, group.count));
  all[dim] = arith::AddIOp::create(b, loc, all[dim], first);
  return all;
}

Value PartReplay::loadPart(const RowGroup &group, Value part, Value tile) {
  FragmentEmitter rows(b, scalars, getPartRows());
  rows.setRowGroup(&group);
  auto load = tile.getDefiningOp<tile::LoadOp>();
  Value view = rows.scalar(load.getView());
  return gpu::LoadOp::create(
      b, scan.getLoc(), rows.typeOf(tile), view,
      atPart(group, part, load.getIndices(), load.getDims().front()),
      load.getDims(), /*rows=*/Value(), getAlignment(view));
}

SmallVector<Value> PartReplay::loadPart(const RowGroup &group, Value part) {
  return llvm::map_to_vector(
      getFoldTiles(), [&](Value tile) { return loadPart(group, part, tile); });
}

/// The planes of the rows with their pending tokens.
void PartReplay::emitPlaneFold(FragmentEmitter &rows, Value deltas, Value part,
                               Value unit, ValueRange loaded) {
  Value low = loaded.size() > 2 ? loaded[2] : Value();
  auto fold = gpu::FoldPlanesOp::create(
      b, scan.getLoc(), loaded[0], low, loaded[1], pending.kept, deltas, part,
      pending.weights, unit, keyColumns, roundsDeltas());
  for (auto [tile, made] :
       llvm::zip_equal(roundings.front()->getResults(), fold.getResults()))
    rows.set(tile, made);
}

void PartReplay::emitPartFold(FragmentEmitter &rows, Value deltas, Value part,
                              ValueRange loaded) {
  Location loc = scan.getLoc();
  for (auto [tile, fragment] : llvm::zip_equal(getFoldTiles(), loaded))
    rows.set(tile, fragment);
  if (widen)
    rows.emit(widen);
  Value state = rows[scan.getState()];
  Value kept =
      emitScaled(b, loc, castRows(b, loc, state, b.getF32Type()), pending.kept);
  Value folded = gpu::AddPartProductsOp::create(
      b, loc, kept.getType(), kept, deltas, part, pending.weights, keyColumns);
  rows.set(scan.getNewState(),
           castRows(b, loc, folded,
                    cast<gpu::FragmentType>(state.getType()).getElementType()));
  for (Operation *op : roundings)
    rows.emit(op);
}

void PartReplay::emitFoldRows(const RowGroup &group, Value part, Value unit,
                              ValueRange loaded) {
  Location loc = scan.getLoc();
  const int64_t numRows = group.count;
  FragmentEmitter rows(b, scalars, getPartRows());
  rows.setRowGroup(&group);
  VectorType room = getPendingRoom(replay.getPendingDeltas());
  auto pieces = VectorType::get(
      {room.getNumElements() / numRows, numRows},
      cast<gpu::SharedType>(pending.deltas.getType()).getElementType());
  Value deltas = gpu::ReshapeOp::create(b, loc, gpu::SharedType::get(pieces),
                                        pending.deltas);
  if (foldsPlanes())
    emitPlaneFold(rows, deltas, part, unit, loaded);
  else
    emitPartFold(rows, deltas, part, loaded);
  // Threads store what they have loaded, and the lanes of a row meet in its
  // rounding before one of them stores its scale: the order needs no barrier.
  if (foldsTogether() && !keepsState())
    gpu::BarrierOp::create(b, loc);
  for (tile::StoreOp store : stores) {
    Value view = rows.scalar(store.getView());
    gpu::StoreOp::create(
        b, loc, rows[store.getTile()], view,
        atPart(group, part, store.getIndices(), store.getDims().front()),
        store.getDims(), /*rows=*/Value(), getAlignment(view));
  }
}
