// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Recurrence/PlaneReplay.h"

#include "Kernel/FoldStep.h"
#include "Kernel/RowParts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// As products of bytes have rows: lanes, neighbouring columns of one, and rows
/// of a warp.
static constexpr int64_t byteLanes = 4, byteColumns = 16, warpRows = 8;

/// Not what a step does that leaves the state as it is.
static constexpr llvm::StringLiteral allowedFoldSpills =
    "spills up to 128 bytes: where rows of a state in planes receive their "
    "pending tokens, one step of as many as may be pending";

bool PlaneReplay::suits(tile::DeltaReplayOp replay, int64_t threads) {
  if (!replay.getState().getDefiningOp<tile::MapRowsOp>() ||
      replay.isPerChannel())
    return false;
  auto state = cast<VectorType>(replay.getState().getType());
  return state.getDimSize(1) % (byteLanes * byteColumns) == 0 &&
         state.getDimSize(0) % (threads / gpu::warpThreads * warpRows) == 0;
}

std::optional<int64_t> PlaneReplay::getOwnLanes() { return byteLanes; }
int64_t PlaneReplay::getOwnVector() { return byteColumns; }

void PlaneReplay::chooseWarps(int64_t &minBlocks) {
  ResidentReplay::chooseWarps(minBlocks);
  if (minBlocks != 1)
    minBlocks = blocks;
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

/// Finds what is stored of the state.
LogicalResult PlaneReplay::check() {
  if (failed(ResidentReplay::check()))
    return failure();
  widen = scan.getState().getDefiningOp<tile::MapRowsOp>();
  bool ok = llvm::all_of(widen.getInputs(), [](Value tile) {
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
  return scan.emitOpError("expects a state of planes that are loaded whole");
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

/// Both sums are those of the state without its pending tokens.
void PlaneReplay::emitState(FragmentEmitter &all) {
  Location loc = scan.getLoc();
  entry->getParentOp()->setAttr("gdn_gpu.allow",
                                b.getStringAttr(allowedFoldSpills));
  SmallVector<Value> upper, low, scales;
  for (Value tile : getSeen().getInputs()) {
    bool isNumbers = cast<VectorType>(tile.getType()).getRank() == 1;
    (isNumbers ? scales : upper.empty() ? upper : low).push_back(all[tile]);
  }
  products = allocate(VectorType::get(
      {2, scan.getState().getType().getDimSize(0)}, b.getF32Type()));
  auto unitOf = [&](const RowParts &parts) -> Value {
    return gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(), parts.unit,
                                            zero);
  };
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  gpu::ShareByteProductsOp::create(b, loc, upper, low, scales, keyParts.rows,
                                   unitOf(keyParts), zero, queryParts.rows,
                                   unitOf(queryParts), one, products);
  emitFold(lookup(replay.getCommit()));
}

/// Pending keys become parts once for all rows, of which each warp takes eight
/// at a time, and loads the next ones ahead of its work.
void PlaneReplay::emitFold(Value commits) {
  Location loc = scan.getLoc();
  VectorType keys = replay.getPendingKey().getType();
  auto state = cast<VectorType>(scan.getState().getType());
  int64_t rows = numWarps * warpRows, parts = state.getDimSize(0) / rows;
  Value keyColumns = allocate(VectorType::get(
      {keys.getDimSize(1), int64_t(2 * llvm::alignTo<16>(keys.getDimSize(0)))},
      b.getBF16Type()));
  auto branch = scf::IfOp::create(b, loc, commits, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  RowGroup group = getPart(rows);
  // Beside two planes that tokens see there are no registers for it.
  const bool loadsAhead = countSeenPlanes(replay) == 1;
  SmallVector<Value> first;
  if (loadsAhead)
    first = loadPart(group, index(0));
  gpu::ShareColumnPartsOp::create(b, loc, pending.keys, keyColumns);
  gpu::BarrierOp::create(b, loc);
  auto loop =
      scf::ForOp::create(b, loc, index(0), index(parts), index(1), first);
  b.setInsertionPointToStart(loop.getBody());
  Value part = loop.getInductionVar();
  if (!loadsAhead) {
    emitFoldRows(group, part, loadPart(group, part), keyColumns);
    return;
  }
  // The last one's again behind it.
  Value next = arith::MinUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, part, index(1)), index(parts - 1));
  SmallVector<Value> ahead = loadPart(group, next);
  emitFoldRows(group, part, loop.getRegionIterArgs(), keyColumns);
  scf::YieldOp::create(b, loc, ahead);
}

/// Rows of what a fold loads, and stores.
RowGroup PlaneReplay::getPart(int64_t numRows) {
  RowGroup group;
  group.count = numRows;
  group.tiles.insert_range(widen.getInputs());
  group.tiles.insert(scan.getState());
  for (tile::StoreOp store : stores)
    group.tiles.insert(store.getTile());
  return group;
}

gpu::RowsAttr PlaneReplay::getPartRows() {
  return gpu::RowsAttr::get(b.getContext(), numWarps, byteLanes, byteColumns);
}

SmallVector<Value> PlaneReplay::atPart(const RowGroup &group, Value part,
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

SmallVector<Value> PlaneReplay::loadPart(const RowGroup &group, Value part) {
  FragmentEmitter rows(b, scalars, getPartRows());
  rows.setRowGroup(&group);
  SmallVector<Value> loaded;
  for (Value tile : widen.getInputs()) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    Value view = rows.scalar(load.getView());
    loaded.push_back(gpu::LoadOp::create(
        b, scan.getLoc(), rows.typeOf(tile), view,
        atPart(group, part, load.getIndices(), load.getDims().front()),
        load.getDims(), /*rows=*/Value(), getAlignment(view)));
  }
  return loaded;
}

void PlaneReplay::emitFoldRows(const RowGroup &group, Value part,
                               ValueRange loaded, Value keyColumns) {
  Location loc = scan.getLoc();
  const int64_t numRows = group.count;
  FragmentEmitter rows(b, scalars, getPartRows());
  rows.setRowGroup(&group);
  for (auto [tile, fragment] : llvm::zip_equal(widen.getInputs(), loaded))
    rows.set(tile, fragment);
  rows.emit(widen);
  Value kept = emitScaled(b, loc, rows[scan.getState()], pending.kept);
  VectorType deltas = getPendingRoom(replay.getPendingDeltas());
  auto pieces = VectorType::get(
      {deltas.getNumElements() / numRows, numRows},
      cast<gpu::SharedType>(pending.deltas.getType()).getElementType());
  Value folded = gpu::AddPartProductsOp::create(
      b, loc, kept.getType(), kept,
      gpu::ReshapeOp::create(b, loc, gpu::SharedType::get(pieces),
                             pending.deltas),
      part, pending.weights, keyColumns);
  rows.set(scan.getNewState(), folded);
  for (Operation *op : roundings)
    rows.emit(op);
  // Lanes of a row have all read its scale when one of them writes it.
  gpu::BarrierOp::create(b, loc);
  for (tile::StoreOp store : stores) {
    Value view = rows.scalar(store.getView());
    gpu::StoreOp::create(
        b, loc, rows[store.getTile()], view,
        atPart(group, part, store.getIndices(), store.getDims().front()),
        store.getDims(), /*rows=*/Value(), getAlignment(view));
  }
}
