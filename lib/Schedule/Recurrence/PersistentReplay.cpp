// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which role has which ops of a unit, and what goes from role to role.
#include "Recurrence/PersistentReplay.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Units whose pending tokens lie in shared memory.
static constexpr int64_t pendingUnits = 2;
/// Units by which the scan may be ahead of the output.
static constexpr int64_t stateProductDepth = 2;

/// Units by which roles may be apart.
static constexpr int64_t unitDepth = 4;

/// Columns of a row of pending keys to lanes: four rows at once.
static constexpr int64_t pairLanes = 8;

SmallVector<PersistentKernel::Role> PersistentReplay::getOtherRoles() {
  SmallVector<Role> others = PersistentKernel::getOtherRoles();
  others.push_back(Role::pending);
  return others;
}

bool PersistentReplay::takeStore(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || branch.getCondition() != replay.getCommit())
    return false;
  for (auto store : branch.thenBlock()->getOps<tile::StoreOp>())
    if (!PersistentKernel::takeStore(store))
      return false;
  return true;
}

int64_t PersistentReplay::getMoreBytes() {
  int64_t bytes =
      8 * 128 * unitDepth +
      stateProductDepth * 2 * 4 * scan.getOutput().getType().getNumElements();
  for (Value tile : replay.getPendingTiles())
    bytes += pendingUnits * 4 *
             std::max<int64_t>(
                 32, cast<VectorType>(tile.getType()).getNumElements());
  return bytes;
}

/// The output comes as products, and the value goes to its warp.
SmallVector<Value> PersistentReplay::getChannelled() {
  SmallVector<Value> all = PersistentKernel::getChannelled();
  llvm::erase(all, scan.getOutput());
  return all;
}

/// Which ops of a unit other roles need not repeat.
void PersistentReplay::findUnitValues() {
  DenseSet<Value> ofUnit;
  Value slot;
  for (Operation &op : source.front()) {
    if (op.isAncestor(root)) {
      isLive = cast<scf::IfOp>(op).getCondition();
      break;
    }
    bool dependsOnUnit = isa<tile::BlockIdOp>(op) ||
                         llvm::any_of(op.getOperands(), [&](Value operand) {
                           return ofUnit.contains(operand);
                         });
    if (!dependsOnUnit)
      continue;
    ofUnit.insert_range(op.getResults());
    if (isa<tile::BlockIdOp, arith::DivUIOp, arith::RemUIOp>(op))
      unitValues.push_back(op.getResult(0));
    else if (auto cast = dyn_cast<arith::IndexCastOp>(op);
             cast && cast.getIn().getDefiningOp<memref::LoadOp>())
      slot = cast.getResult();
  }
  unitValues.push_back(slot);
}

/// What the unit is.
void PersistentReplay::sendUnit() {
  Location loc = scan.getLoc();
  SmallVector<Value> numbers;
  for (Value value : unitValues)
    numbers.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                                 scalars.lookup(value)));
  Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(-1));
  numbers.back() = arith::SelectOp::create(b, loc, scalars.lookup(isLive),
                                           numbers.back(), none);
  SmallVector<Value> tiles;
  for (Value ring : unitRings)
    tiles.push_back(
        gpu::AcquireOp::create(b, loc, getOne(b.getI32Type()), ring));
  for (auto [number, tile] : llvm::zip(numbers, tiles))
    gpu::StoreSharedOp::create(
        b, loc, gpu::FillOp::create(b, loc, getOneRow(b.getI32Type()), number),
        tile, Value());
  for (Value ring : llvm::reverse(unitRings))
    gpu::CommitOp::create(b, loc, Type(), ring);
}

PersistentKernel::Ops PersistentReplay::beginOps(Ops ops) {
  Location loc = scan.getLoc();
  if (role == Role::pending) {
    auto branch =
        llvm::find_if(ops, [&](Operation &op) { return op.isAncestor(root); });
    emitOps({ops.begin(), branch});
    sendUnit();
    return {branch, ops.end()};
  }
  SmallVector<Value> tiles;
  for (Value ring : unitRings)
    tiles.push_back(
        gpu::ReceiveOp::create(b, loc, getOne(b.getI32Type()), ring));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), slot;
  for (auto [value, tile] : llvm::zip(unitValues, tiles)) {
    slot = gpu::LoadSharedElementOp::create(b, loc, b.getI32Type(), tile, zero);
    scalars.map(value,
                arith::IndexCastOp::create(b, loc, b.getIndexType(), slot));
  }
  for (Value ring : llvm::reverse(unitRings))
    gpu::ReleaseOp::create(b, loc, ring);
  Value least = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  scalars.map(isLive, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                            slot, least));
  return ops;
}

void PersistentReplay::createMoreChannels() {
  MLIRContext *context = b.getContext();
  gpu::KernelFields(entry->getParentOp()).setKeepLoops();
  // Its sums are of another order than those of a block for a head.
  tile::StageFields(entry->getParentOp()).setBits("persistent");
  auto create = [&](ArrayRef<int64_t> shape, Type element, int64_t depth) {
    return createChannel(gpu::ChannelType::get(context, shape, element, depth,
                                               /*parts=*/1,
                                               /*swizzled=*/false));
  };
  int64_t most = replay.getPendingKey().getType().getDimSize(0);
  auto join = [&](ArrayRef<int64_t> shape) {
    pendingRings.push_back(gpu::ChannelOp::create(
        b, scan.getLoc(),
        gpu::ChannelType::get(context, shape, b.getF32Type(), pendingUnits,
                              /*parts=*/1, /*swizzled=*/false),
        pendingRings.empty() ? Value() : pendingRings.front(),
        /*memory=*/Value()));
  };
  join(replay.getPendingKey().getType().getShape());
  join(replay.getPendingDeltas().getType().getShape());
  join({most});
  join({1});
  decays = allocate(replay.getPendingDecay());
  auto pairs = VectorType::get({most}, b.getF32Type());
  keyPairs = allocate(pairs);
  queryPairs = allocate(pairs);
  countRing = create(1, b.getI32Type(), pendingUnits);
  productRing = create({2, scan.getState().getType().getDimSize(0)},
                       b.getF32Type(), stateProductDepth);
  findUnitValues();
  for (size_t i = 0; i < unitValues.size(); ++i)
    unitRings.push_back(gpu::ChannelOp::create(
        b, scan.getLoc(),
        gpu::ChannelType::get(context, {1}, b.getI32Type(), unitDepth,
                              /*parts=*/1, /*swizzled=*/false),
        unitRings.empty() ? Value() : unitRings.front(), /*memory=*/Value()));
  // The count is what one of the key head's blocks writes: it is read once.
  Value counts;
  source.walk([&](memref::StoreOp store) { counts = store.getMemRef(); });
  source.walk([&](memref::LoadOp load) {
    if (load.getMemRef() == counts)
      countLoad = load;
  });
}

gpu::SharedType PersistentReplay::getOne(Type element) {
  return gpu::SharedType::get(VectorType::get({1}, element));
}

gpu::FragmentType PersistentReplay::getOneRow(Type element) {
  return gpu::FragmentType::get(
      VectorType::get({1}, element),
      gpu::PerRowAttr::get(b.getContext(), getWarpRows(b.getContext(), 1)));
}

void PersistentReplay::beginUnit(Block &block) {
  if (role == Role::query || role == Role::states || role == Role::pending)
    return;
  Location loc = scan.getLoc();
  Value tile =
      gpu::ReceiveOp::create(b, loc, getOne(b.getI32Type()), countRing);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value count =
      gpu::LoadSharedElementOp::create(b, loc, b.getI32Type(), tile, zero);
  gpu::ReleaseOp::create(b, loc, countRing);
  scalars.map(countLoad.getResult(), count);
}

/// How many tokens are pending, and the tokens.
void PersistentReplay::emitPending() {
  Location loc = scan.getLoc();
  Value tile =
      gpu::AcquireOp::create(b, loc, getOne(b.getI32Type()), countRing);
  Value count = gpu::FillOp::create(b, loc, getOneRow(b.getI32Type()),
                                    lookup(countLoad.getResult()));
  gpu::StoreSharedOp::create(b, loc, count, tile, Value());
  gpu::CommitOp::create(b, loc, Type(), countRing);
  FragmentEmitter warp(b, scalars);
  auto acquire = [&](Value ring) -> Value {
    auto type = cast<gpu::ChannelType>(ring.getType());
    return gpu::AcquireOp::create(b, loc, type.getTile(), ring);
  };
  SmallVector<Value> tiles;
  for (Value ring : pendingRings)
    tiles.push_back(acquire(ring));
  auto begin = [&](Value tile, Value buffer) {
    beginPendingCopy(b, tile.getDefiningOp<tile::LoadOp>(), warp, buffer);
  };
  begin(replay.getPendingKey(), tiles[0]);
  begin(replay.getPendingDeltas(), tiles[1]);
  gpu::BarrierOp::create(b, loc); // the warp has read those of the last unit
  begin(replay.getPendingDecay(), decays);
  gpu::AwaitCopiesOp::create(b, loc);
  gpu::BarrierOp::create(b, loc);
  int64_t most = replay.getPendingKey().getType().getDimSize(0);
  gpu::StoreSharedOp::create(b, loc, emitReplayWeights(b, loc, decays, most),
                             tiles[2], Value());
  gpu::StoreSharedOp::create(
      b, loc,
      gpu::FillOp::create(b, loc, getOneRow(b.getF32Type()),
                          emitReplayKept(b, loc, decays, most)),
      tiles[3], Value());
  for (Value ring : llvm::reverse(pendingRings))
    gpu::CommitOp::create(b, loc, Type(), ring);
}

void PersistentReplay::setPending(ReplayPending &pending) {
  Location loc = scan.getLoc();
  SmallVector<Value> tiles;
  for (Value ring : pendingRings) {
    auto type = cast<gpu::ChannelType>(ring.getType());
    tiles.push_back(gpu::ReceiveOp::create(b, loc, type.getTile(), ring));
  }
  pending.keys = tiles[0];
  pending.deltas = tiles[1];
  pending.weights = tiles[2];
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  pending.kept =
      gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(), tiles[3], zero);
  pending.count = lookup(replay.getCount());
  pending.commits = lookup(replay.getCommit());
}

void PersistentReplay::releasePending() {
  for (Value ring : llvm::reverse(pendingRings))
    gpu::ReleaseOp::create(b, scan.getLoc(), ring);
}

void PersistentReplay::emitScan() {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  auto perColumn = gpu::PerColumnAttr::get(context, stateRows);
  Value key = receiveRow(scan.getKey(), perColumn);
  Value query = receiveRow(scan.getQuery(), perColumn);
  ReplayPending pending;
  setPending(pending);
  auto products = gpu::SharedType::get(
      VectorType::get({2 * numChunks, chunkRows}, b.getF32Type()));
  Value made = gpu::AcquireOp::create(b, loc, products, productRing);
  auto chunkRow =
      gpu::FragmentType::get(VectorType::get({chunkRows}, b.getF32Type()),
                             gpu::PerRowAttr::get(context, stateRows));
  int64_t rows = scan.getState().getType().getDimSize(0);
  int64_t most = replay.getPendingDeltas().getType().getDimSize(0);
  auto pieces =
      VectorType::get({most * rows / chunkRows, chunkRows}, b.getF32Type());
  Value deltas = gpu::ReshapeOp::create(b, loc, gpu::SharedType::get(pieces),
                                        pending.deltas);

  auto loop = createChunkLoop();
  Value chunk = loop.getInductionVar();
  auto type = cast<gpu::ChannelType>(ring.getType());
  auto state = gpu::FragmentType::get(
      VectorType::get(type.getShape(), type.getElementType()), stateRows);
  Value tile = gpu::ReceiveOp::create(b, loc, type.getTile(), ring);
  Value loaded = gpu::LoadSharedOp::create(b, loc, state, tile, Value());
  Value perToken = arith::ConstantIndexOp::create(b, loc, numChunks);
  auto delta = [&](Value at) -> Value {
    Value row = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, at, perToken), chunk);
    return gpu::LoadSharedOp::create(b, loc, chunkRow, deltas, row);
  };
  Value folded =
      emitReplayFold(b, loc, loaded, pending, delta, [&](Value stored) {
        for (tile::StoreOp store : stores)
          gpu::StoreOp::create(
              b, loc, stored, scalars.lookup(store.getView()),
              indicesAt(store.getIndices(), store.getDims().front(), chunk),
              store.getDims(), Value(), /*aligned=*/16);
      });
  auto [known, seen] = emitStateProducts(b, loc, folded, key, query);
  // Not right behind the load: the next copy may overtake reads under way.
  gpu::ReleaseOp::create(b, loc, ring);
  gpu::StoreSharedOp::create(b, loc, known, made, chunk);
  gpu::StoreSharedOp::create(b, loc, seen, made,
                             arith::AddIOp::create(b, loc, chunk, perToken));
  b.setInsertionPointAfter(loop);
  releasePending();
  gpu::CommitOp::create(b, loc, Type(), productRing);
}

/// Who stores to the pools of pending tokens, does so behind the end of copies
/// from them.
void PersistentReplay::emitFactors(ArrayRef<ScanRole> made,
                                   FragmentEmitter &warp) {
  if (!llvm::is_contained(made, ScanRole::key) &&
      !llvm::is_contained(made, ScanRole::gates))
    return;
  Location loc = scan.getLoc();
  auto type = cast<gpu::ChannelType>(pendingRings.front().getType());
  gpu::ReceiveOp::create(b, loc, type.getTile(), pendingRings.front());
  gpu::ReleaseOp::create(b, loc, pendingRings.front());
}

void PersistentReplay::emitOutputOf(FragmentEmitter &warp) {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  ReplayPending pending;
  setPending(pending);
  ReplayTerms terms;
  auto receiveWhole = [&](Value operand) {
    return receive(operand, cast<VectorType>(operand.getType()).getShape());
  };
  terms.key = receiveWhole(scan.getKey());
  terms.query = receiveWhole(scan.getQuery());
  terms.decay = math::ExpOp::create(b, loc, receiveElement(scan.getLogDecay()));
  terms.beta = receiveElement(scan.getBeta());
  int64_t columns = scan.getKey().getType().getDimSize(1);
  int64_t vector = 4, lanes = pairLanes;
  while (columns % vector != 0)
    vector /= 2;
  while (lanes > 1 && columns % (lanes * vector) != 0)
    lanes /= 2;
  auto rows = gpu::RowsAttr::get(context, 1, lanes, vector);
  auto row = gpu::FragmentType::get(VectorType::get({columns}, b.getF32Type()),
                                    gpu::PerColumnAttr::get(context, rows));
  auto load = [&](Value tile) -> Value {
    Value flat = gpu::ReshapeOp::create(
        b, loc,
        gpu::SharedType::get(VectorType::get({columns}, b.getF32Type())), tile);
    return gpu::LoadSharedOp::create(b, loc, row, flat, Value());
  };
  auto pairs = emitReplayPairs(b, loc, pending, rows, load(terms.key),
                               load(terms.query), terms.decay);
  gpu::StoreSharedOp::create(b, loc, pairs.first, keyPairs, Value());
  gpu::StoreSharedOp::create(b, loc, pairs.second, queryPairs, Value());
  gpu::BarrierOp::create(b, loc); // of the warp
  terms.keyPairs = keyPairs;
  terms.queryPairs = queryPairs;
  terms.value = receiveWhole(scan.getValue());
  int64_t values = scan.getState().getType().getDimSize(0);
  Value products = gpu::ReceiveOp::create(
      b, loc,
      gpu::SharedType::get(VectorType::get({2, values}, b.getF32Type())),
      productRing);
  terms.products = products;
  auto [delta, output] = emitReplayOutput(b, loc, pending, terms);
  warp.set(scan.getDeltas(), delta);
  warp.set(scan.getOutput(), output);
  for (Value operand : {scan.getKey(), scan.getQuery(), scan.getValue()})
    gpu::ReleaseOp::create(b, loc, channels[operand]);
  gpu::ReleaseOp::create(b, loc, productRing);
  releasePending();
}
