// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A role has the control flow around the loop over chunks and all that is no
// tile, like the others, and of tiles what is its own. Here are those that make
// no products: load, fetch, gate, scale.
#include "Products/RoleProgram.h"

#include "Kernel/KernelFunction.h"
#include "Kernel/OperandRoles.h"
#include "Products/LoadsAndStores.h"
#include "Products/RowMaps.h"

using namespace mlir;
using namespace gdn;

bool RoleProgram::takes(Operation *op) const {
  if (shared.ahead.contains(op))
    return false;
  bool hasLoop = op->isAncestor(plan.loop);
  bool isTile = op->walk([](Operation *inner) {
                    return isa<tile::TileDialect>(inner->getDialect()) &&
                                   !isa<tile::BlockIdOp>(inner)
                               ? WalkResult::interrupt()
                               : WalkResult::advance();
                  }).wasInterrupted();
  return hasLoop || !isTile || isOwn(op);
}

RoleProgram::Bounds RoleProgram::getBounds() const {
  scf::ForOp loop = plan.loop;
  return {scalars.lookupOrDefault(loop.getLowerBound()),
          scalars.lookupOrDefault(loop.getUpperBound()),
          scalars.lookupOrDefault(loop.getStep())};
}

scf::ForOp RoleProgram::createLoop(bool alternates, bool inPairs) {
  Location loc = scf::ForOp(plan.loop).getLoc();
  auto [begin, end, step] = getBounds();
  if (shared.isPaired && alternates) {
    Value block = gpu::BlockIdOp::create(b, loc, b.getIndexType(), 2);
    begin = arith::AddIOp::create(b, loc, begin,
                                  arith::MulIOp::create(b, loc, block, step));
    step = arith::AddIOp::create(b, loc, step, step);
  } else if (!shared.isPaired && inPairs) {
    Value pair = arith::AddIOp::create(b, loc, step, step);
    Value pairs = arith::CeilDivUIOp::create(
        b, loc, arith::SubIOp::create(b, loc, end, begin), pair);
    end = arith::AddIOp::create(b, loc, begin,
                                arith::MulIOp::create(b, loc, pairs, pair));
  }
  return scf::ForOp::create(b, loc, begin, end, step);
}

void RoleProgram::dropLast(scf::ForOp copy, ArrayRef<ArrayRef<Value>> groups) {
  Location loc = copy.getLoc();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(copy);
  Value chunks = arith::CeilDivUIOp::create(
      b, loc,
      arith::SubIOp::create(b, loc, copy.getUpperBound(), copy.getLowerBound()),
      copy.getStep());
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value isOdd =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            arith::AndIOp::create(b, loc, chunks, one), one);
  auto branch = scf::IfOp::create(b, loc, isOdd, /*withElse=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  SharedTiles tiles(b, scalars, shared.entry, getNumWarps());
  SmallVector<Value> dropped;
  for (ArrayRef<Value> group : groups)
    if (!group.empty())
      channels.receive(tiles, group.front(), dropped);
  channels.release(dropped);
}

RoleProgram::Ops RoleProgram::enterBody(scf::ForOp copy) {
  scf::ForOp loop = plan.loop;
  scalars.map(loop.getInductionVar(), copy.getInductionVar());
  Ops work;
  for (Operation &op : loop.getBody()->without_terminator()) {
    copyScalar(b, &op, scalars);
    if (isOwn(&op))
      work.push_back(&op);
  }
  return work;
}

LogicalResult LoadRole::emitChunks() {
  scf::ForOp loop = plan.loop;
  const Value end = getBounds().end;
  scf::ForOp copy = createLoop(/*alternates=*/false, /*inPairs=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  (void)enterBody(copy);
  channels.acquire(emitter.tiles, plan.copied);
  auto loads = llvm::map_to_vector(plan.copied, [](Value tile) {
    return tile.getDefiningOp<tile::LoadOp>();
  });
  for (gpu::BeginCopyOp begun : readAhead(loads, copy.getInductionVar(), end))
    begun.setTensorMap(gpu::canUseTensorMap(begun));
  // Each warp says for itself when its copies are there.
  gpu::AwaitCopiesOp::create(b, loop.getLoc());
  channels.commit(plan.copied);
  for (auto signal : loop.getBody()->getOps<tile::SignalOp>()) {
    if (signal.getAmount() % getNumWarps() != 0)
      return signal.emitOpError("expects an amount that ")
             << getNumWarps() << " warps which load can share";
    emitSignal(signal, copy.getInductionVar(), copy.getLowerBound(), end);
  }
  return success();
}

/// The consumers have no time for it: to say what is stored takes 0.6 us.
void LoadRole::emitSignal(tile::SignalOp signal, Value at, Value begin,
                          Value end) {
  scf::ForOp loop = plan.loop;
  Location loc = signal.getLoc();
  Value lag =
      arith::MulIOp::create(b, loc, getBounds().step,
                            arith::ConstantIndexOp::create(b, loc, signalLag));
  Value stored = arith::SubIOp::create(b, loc, at, lag);
  auto is = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  };
  Value isTurn = arith::AndIOp::create(
      b, loc, is(arith::CmpIPredicate::sle, begin, stored),
      is(arith::CmpIPredicate::slt, at, end));
  IRMapping there = scalars;
  there.map(loop.getInductionVar(), stored);
  for (Operation &op : loop.getBody()->without_terminator())
    copyScalar(b, &op, there);
  Value count = arith::SelectOp::create(
      b, loc, isTurn, arith::ConstantIndexOp::create(b, loc, 1),
      arith::ConstantIndexOp::create(b, loc, 0));
  gpu::SignalOp::create(b, loc, signal.getAmount() / getNumWarps(),
                        there.lookupOrDefault(signal.getView()),
                        lookupAll(there, signal.getIndices()), count);
}

LogicalResult CopyRole::emitChunks() {
  scf::ForOp copy = createLoop(/*alternates=*/false, /*inPairs=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  (void)enterBody(copy);
  for (ArrayRef<Value> group : groups)
    if (failed(emitCopies(group)))
      return failure();
  return success();
}

LogicalResult CopyRole::emitCopies(ArrayRef<Value> tiles) {
  Location loc = scf::ForOp(plan.loop).getLoc();
  channels.acquire(emitter.tiles, tiles);
  for (Value tile : tiles) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    if (!isVector(tile)) {
      gpu::BeginCopyOp begun = beginCopy(emitter.tiles, load, scalars, Value(),
                                         /*isPinned=*/true);
      if (load.getRows()) { // values, of the last chunk fewer
        copyAsBox(b, begun);
        continue;
      }
      if (!gpu::canUseTensorMap(begun))
        return load.emitError("expects a tile that is a box of a region of "
                              "the workspace, where it is copied ahead");
      begun.setTensorMap(true);
      continue;
    }
    Value view = scalars.lookupOrDefault(load.getView());
    promiseAlignment(view);
    int64_t last = load.getDims().front();
    gpu::CopyOp::create(b, loc, view, lookupAll(scalars, load.getIndices()),
                        b.getDenseI64ArrayAttr({last - 1, last}),
                        emitter.tiles.findBuffer(tile));
  }
  gpu::AwaitCopiesOp::create(b, loc);
  channels.commit(tiles);
  return success();
}

LogicalResult StoreRole::emitChunks() {
  scf::ForOp copy = createLoop(/*alternates=*/false, /*inPairs=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  (void)enterBody(copy);
  receive(plan.stored);
  for (auto store : scf::ForOp(plan.loop).getBody()->getOps<tile::StoreOp>())
    if (failed(emitter.emit(store)))
      return failure();
  releaseAll();
  return success();
}

LogicalResult FetchRole::emitChunks() {
  Location loc = scf::ForOp(plan.loop).getLoc();
  const Value end = getBounds().end;
  scf::ForOp copy = createLoop(/*alternates=*/false, /*inPairs=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  (void)enterBody(copy);
  channels.acquire(emitter.tiles, plan.fetched);
  auto loads = llvm::map_to_vector(plan.fetched, [](Value tile) {
    return tile.getDefiningOp<tile::LoadOp>();
  });
  readAhead(loads, copy.getInductionVar(), end);
  gpu::AwaitCopiesOp::create(b, loc);
  channels.commit(plan.fetched);
  return success();
}

LogicalResult GateRole::emitChunks() {
  if (getNumWarps() == 1 && plan.beginsEarly())
    return emitAhead();
  scf::ForOp copy = createLoop(/*alternates=*/true, /*inPairs=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops work = enterBody(copy);
  llvm::append_range(work, plan.sums);
  llvm::sort(work, inProgramOrder);
  // Their inputs are on their way first.
  emitter.vectors.emitLoads(work);
  channels.destine(emitter.tiles, plan.vectors);
  emitter.vectors.emit(work);
  channels.commit(plan.vectors);
  return success();
}

SmallVector<Value> RoleProgram::loadAt(ArrayRef<tile::LoadOp> loads, Value at) {
  scf::ForOp loop = plan.loop;
  const IRMapping here = scalars;
  scalars.map(loop.getInductionVar(), at);
  for (Operation &op : loop.getBody()->without_terminator())
    copyScalar(b, &op, scalars);
  SmallVector<Value> loaded = emitter.vectors.load(loads);
  scalars = here;
  return loaded;
}

/// Of a role of one warp, inputs of a chunk are on their way while the one
/// before it is worked on. The first turn is for no chunk: while the first
/// inputs are on their way, it fetches the instructions of all other turns,
/// which takes a multiprocessor longer than such a turn.
LogicalResult GateRole::emitAhead() {
  scf::ForOp loop = plan.loop;
  Location loc = loop.getLoc();
  scf::ForOp bounds = createLoop(/*alternates=*/true, /*inPairs=*/true);
  Value begin = bounds.getLowerBound(), end = bounds.getUpperBound(),
        step = bounds.getStep();
  bounds.erase();
  SmallVector<tile::LoadOp> loads;
  SmallVector<Value> nothing;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>()) {
    if (!isOwn(load))
      continue;
    loads.push_back(load);
    gpu::FragmentType type = emitter.vectors.typeOf(load.getTile());
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
    nothing.push_back(gpu::FillOp::create(b, loc, type, zero));
  }
  auto copy = scf::ForOp::create(
      b, loc, arith::SubIOp::create(b, loc, begin, step), end, step, nothing);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Value at = copy.getInductionVar();
  const SmallVector<Value> next =
      loadAt(loads, arith::AddIOp::create(b, loc, at, step));
  Ops work = enterBody(copy);
  llvm::append_range(work, plan.sums);
  llvm::sort(work, inProgramOrder);
  emitter.vectors.take(loads, copy.getRegionIterArgs());
  channels.destine(emitter.tiles, plan.vectors);
  Value isChunk =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, at, begin);
  emitter.vectors.emitIf(work, isChunk, [&] { channels.commit(plan.vectors); });
  b.setInsertionPointToEnd(copy.getBody());
  if (!loads.empty())
    scf::YieldOp::create(b, loc, next);
  return success();
}

LogicalResult ScaleRole::emitChunks() {
  scf::ForOp copy = createLoop(/*alternates=*/true, /*inPairs=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops work = enterBody(copy);
  receive(plan.copied);
  receive(plan.vectors);
  channels.destine(emitter.tiles, plan.scaled);
  emitInSlices(emitter.tiles, work);
  channels.commit(plan.scaled);
  releaseAll();
  if (shared.stays)
    dropLast(copy, {plan.copied, plan.vectors});
  return success();
}
