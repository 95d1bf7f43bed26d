// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check and gdn-gpu-place-barriers: one walk over a function, in the
// order in which a thread runs it, that follows what happened to each shared
// tile since the last barrier. Where two ways meet, whatever happened on either
// has happened; the body of a loop is visited twice, so that its end meets its
// beginning. Where a barrier is missing, one pass says so and the other puts it
// there. Which rows of a tile have a value is not followed: one that is shared
// by rows has one on every way as soon as it has on one. What is shared under a
// condition has a value where the same condition is asked again behind it.
#include "gdn/Dialect/GPU/Transforms/CheckGPUProgram.h"
#include "CheckChannels.h"
#include "CheckOrder.h"
#include "SharedAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/GPU/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace gdn {
#define GEN_PASS_DEF_CHECKGPU
#define GEN_PASS_DEF_PLACEBARRIERS
#include "gdn/Dialect/GPU/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// What happened to a shared tile: the ops since the last barrier that some
/// thread may still be at, and whether the tile has a value on every way here.
struct TileState {
  Operation *shared = nullptr;
  SmallVector<Operation *, 4> rows; // stores of rows, the last of them `shared`
  Operation *loaded = nullptr;
  int64_t acquires = 0; // of a tile that was committed, since it was loaded
  Operation *copied = nullptr;  // not awaited yet
  Operation *product = nullptr; // reads it and was not awaited yet
  bool hasValue = false;
  bool hasRows = false; // a value by rows, on some way
};

class SharedTileWalk {
public:
  /// With `inserts`, missing barriers are inserted.
  explicit SharedTileWalk(bool inserts) : inserts(inserts) {}
  LogicalResult walk(Region &region);

private:
  using States = llvm::MapVector<Value, TileState>;

  LogicalResult visit(Operation &op);
  LogicalResult visitAccess(Operation *op, Value buffer, bool writes,
                            bool reads);
  LogicalResult visitLoop(Operation &op);
  LogicalResult visitAcquire(gdn::gpu::AcquireOp acquire);
  LogicalResult visitCommit(gdn::gpu::CommitOp commit);
  LogicalResult visitBranches(Operation &op);
  LogicalResult visitAwaiting(Operation &op);
  LogicalResult needsBarrier(Operation *op, Operation *earlier);
  enum class Conflict { none, access, copy };
  Conflict getConflict(Operation *op) const;
  void meet(bool awaits);
  void meetBefore(Operation *op, bool awaits);
  static void join(States &into, const States &other);

  void takeConditional(scf::IfOp branch);

  bool inserts;
  States states;
  /// Tiles that branches have shared, for later ones of the same condition.
  DenseMap<Operation *, SmallVector<Value>> conditional;
  DenseSet<Operation *> arrived; // what was shared before the gdn_gpu.arrive
};

struct PlaceBarriers final : gdn::impl::PlaceBarriersBase<PlaceBarriers> {
  void runOnOperation() override;
};

struct CheckGPU final : gdn::impl::CheckGPUBase<CheckGPU> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      if (gdn::gpu::KernelFields(function) && failed(checkGPUProgram(function)))
        return signalPassFailure();
    if (failed(checkSignals(getOperation())) ||
        failed(checkStages(getOperation())))
      signalPassFailure();
  }
};

} // namespace

/// The store that is not over yet and that `op` is not apart from; null for
/// none.
static Operation *getStoreBefore(Operation *op, const TileState &state) {
  if (!state.shared)
    return nullptr;
  if (!areApart(op, state.shared))
    return state.shared;
  for (Operation *row : state.rows)
    if (!areApart(op, row))
      return row;
  return nullptr;
}

/// What has to be over before `op`.
SharedTileWalk::Conflict SharedTileWalk::getConflict(Operation *op) const {
  Conflict conflict = Conflict::none;
  for (const SharedAccess &access : getSharedAccesses(op))
    if (auto found = states.find(getFollowedTile(access.buffer));
        found != states.end()) {
      const TileState &state = found->second;
      if (state.copied && !areApart(op, state.copied))
        return Conflict::copy;
      if (getStoreBefore(op, state) ||
          (access.writes && state.loaded && !areApart(op, state.loaded)))
        conflict = Conflict::access;
    }
  return conflict;
}

void SharedTileWalk::meet(bool awaits) {
  for (auto &[buffer, state] : states) {
    if (awaits)
      state.copied = nullptr;
    state.loaded = nullptr;
    state.acquires = 0;
    if (!state.copied) { // what is still on its way is there for no thread
      state.shared = nullptr;
      state.rows.clear();
    }
  }
}

/// A barrier before `op`, with `awaits` behind the end of all copies.
void SharedTileWalk::meetBefore(Operation *op, bool awaits) {
  OpBuilder b(op);
  if (awaits)
    gdn::gpu::AwaitCopiesOp::create(b, op->getLoc());
  gdn::gpu::BarrierOp::create(b, op->getLoc());
  meet(awaits);
}

LogicalResult SharedTileWalk::needsBarrier(Operation *op, Operation *earlier) {
  InFlightDiagnostic diag = op->emitOpError(
      "expects a gdn_gpu.barrier between it and the access before it");
  diag.attachNote(earlier->getLoc()) << "access before it";
  return diag;
}

void SharedTileWalk::join(States &into, const States &other) {
  for (auto &[buffer, state] : other) {
    TileState &mine = into[buffer];
    if (!mine.shared)
      mine.shared = state.shared;
    if (!mine.loaded)
      mine.loaded = state.loaded;
    mine.acquires = std::max(mine.acquires, state.acquires);
    if (!mine.copied)
      mine.copied = state.copied;
    if (!mine.product)
      mine.product = state.product;
    for (Operation *row : state.rows)
      if (!llvm::is_contained(mine.rows, row))
        mine.rows.push_back(row);
    mine.hasRows |= state.hasRows;
  }
  for (auto &[buffer, state] : into) {
    auto found = other.find(buffer);
    state.hasValue &= found != other.end() && found->second.hasValue;
    state.hasValue |= state.hasRows;
  }
}

/// What branches before it in its block have shared under the same condition
/// has a value in this one.
void SharedTileWalk::takeConditional(scf::IfOp branch) {
  for (Operation *user : branch.getCondition().getUsers())
    if (auto found = conditional.find(user);
        found != conditional.end() && user->getBlock() == branch->getBlock() &&
        user->isBeforeInBlock(branch))
      for (Value buffer : found->second)
        states[buffer].hasValue = true;
}

/// Runs once or not at all for each region, or one of two regions.
LogicalResult SharedTileWalk::visitBranches(Operation &op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  States before = states, after;
  bool isFirst = true;
  for (Region &region : op.getRegions()) {
    states = before;
    if (branch && isFirst)
      takeConditional(branch);
    if (failed(walk(region)))
      return failure();
    if (branch && isFirst) {
      SmallVector<Value> &shared = conditional[branch];
      shared.clear();
      for (auto &[buffer, state] : states)
        if (state.hasValue && !before.lookup(buffer).hasValue)
          shared.push_back(buffer);
    }
    if (isFirst)
      after = states;
    else
      join(after, states);
    isFirst = false;
  }
  states = after;
  return success();
}

/// True if the body of a loop runs at least once, as its bounds show.
static bool runsOnce(Operation &op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  std::optional<int64_t> from, to;
  if (loop) {
    from = getConstantIntValue(loop.getLowerBound());
    to = getConstantIntValue(loop.getUpperBound());
  }
  return from && to && *from < *to;
}

LogicalResult SharedTileWalk::visitLoop(Operation &op) {
  States before = states;
  for (unsigned round = 0; round < 2; ++round)
    for (Region &region : op.getRegions())
      if (failed(walk(region)))
        return failure();
  if (!runsOnce(op))
    join(states, before); // no iteration at all
  return success();
}

LogicalResult SharedTileWalk::visitAccess(Operation *op, Value buffer,
                                          bool writes, bool reads) {
  TileState &state = states[buffer];
  if (state.copied) {
    InFlightDiagnostic diag = op->emitOpError(
        "expects a gdn_gpu.await_copies between it and the copy before it");
    diag.attachNote(state.copied->getLoc()) << "copy";
    return diag;
  }
  if (writes && state.product) { // start_matmul_c3
    InFlightDiagnostic diag = op->emitOpError(
        "expects the gdn_gpu.await_matmul of the product before it to be "
        "before it too");
    diag.attachNote(state.product->getLoc()) << "product";
    return diag;
  }
  if (writes && state.loaded && !areApart(op, state.loaded))
    return needsBarrier(op, state.loaded);
  if (Operation *store = getStoreBefore(op, state))
    if (writes || state.hasValue)
      return needsBarrier(op, store);
  if (!writes && !state.hasValue)
    return op->emitOpError("expects a tile that has been shared on every way "
                           "to it");
  if (writes) {
    state.shared = op;
    state.hasValue = true;
    if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op);
        store && store.getRow()) {
      state.hasRows = true;
      if (!llvm::is_contained(state.rows, op))
        state.rows.push_back(op);
    }
  }
  if (reads)
    state.loaded = op;
  if (isa<gdn::gpu::BeginCopyOp>(op))
    state.copied = op;
  if (isa<gdn::gpu::StartMatmulOp>(op))
    state.product = op;
  if (isa<gdn::gpu::AwaitMatmulOp>(op))
    state.product = nullptr;
  return success();
}

/// The tile is another one of the ring, which the role may have read itself
/// when it was here last.
LogicalResult SharedTileWalk::visitAcquire(gdn::gpu::AcquireOp acquire) {
  for (Operation *user : acquire.getChannel().getUsers()) {
    auto commit = dyn_cast<gdn::gpu::CommitOp>(user);
    if (!commit || !commit.getTile())
      continue;
    TileState &state = states[commit.getTile()];
    Operation *read = state.product ? state.product : state.loaded;
    if (!read || ++state.acquires < commit.getChannel().getType().getDepth())
      continue;
    if (inserts && !state.product) {
      meetBefore(acquire, /*awaits=*/false);
      continue;
    }
    InFlightDiagnostic diag = acquire.emitOpError( // commit_c3
        "expects a gdn_gpu.barrier between it and what this role read of the "
        "tile that it committed before");
    diag.attachNote(read->getLoc()) << "read here";
    return diag;
  }
  states.erase(acquire.getChannel());
  return success();
}

/// What is committed has been copied whole; who filled it reads it under the
/// name that the commit gives it.
LogicalResult SharedTileWalk::visitCommit(gdn::gpu::CommitOp commit) {
  TileState state = states.lookup(commit.getChannel());
  if (state.copied) { // commit_c2
    InFlightDiagnostic diag = commit.emitOpError(
        "expects a gdn_gpu.await_copies between it and the copy before it");
    diag.attachNote(state.copied->getLoc()) << "copy";
    return diag;
  }
  if (state.product) {
    InFlightDiagnostic diag = commit.emitOpError(
        "expects the gdn_gpu.await_matmul of the product before it to be "
        "before it too");
    diag.attachNote(state.product->getLoc()) << "product";
    return diag;
  }
  if (commit.getTile()) {
    // What was read of the tile before is followed until the ring comes round.
    TileState &mine = states[commit.getTile()];
    Operation *loaded = mine.loaded;
    const int64_t acquires = mine.acquires;
    mine = state;
    mine.hasValue = true;
    mine.loaded = loaded ? loaded : state.loaded;
    mine.acquires = acquires;
  }
  return success();
}

/// Whether the work of a warp begins when all others have arrived.
static bool awaitsArrivals(Operation &op) {
  auto warps = dyn_cast<gdn::gpu::WarpsOp>(op);
  return warps &&
         !warps.getBody().front().getOps<gdn::gpu::AwaitArrivalsOp>().empty();
}

/// What was shared before the others arrived is there for this warp alone.
LogicalResult SharedTileWalk::visitAwaiting(Operation &op) {
  States before = states;
  for (auto &[buffer, state] : states)
    if (arrived.contains(state.shared)) {
      state.shared = nullptr;
      state.rows.clear();
    }
  if (failed(walk(op.getRegion(0))))
    return failure();
  join(states, before);
  return success();
}

LogicalResult SharedTileWalk::visit(Operation &op) {
  if (isa<gdn::gpu::ArriveOp>(op)) {
    for (auto &[buffer, state] : states)
      arrived.insert(state.shared);
    return success();
  }
  if (awaitsArrivals(op))
    return visitAwaiting(op);
  if (isa<gdn::gpu::BarrierOp>(op)) {
    meet(/*awaits=*/false);
    return success();
  }
  if (isa<gdn::gpu::AwaitCopiesOp>(op)) {
    for (auto &[buffer, state] : states)
      state.copied = nullptr;
    return success();
  }
  if (auto acquire = dyn_cast<gdn::gpu::AcquireOp>(op))
    return visitAcquire(acquire);
  if (auto commit = dyn_cast<gdn::gpu::CommitOp>(op))
    return visitCommit(commit);
  if (SmallVector<SharedAccess, 4> accesses = getSharedAccesses(&op);
      !accesses.empty()) {
    // Channels order what other roles do with their tiles.
    llvm::erase_if(accesses, [](const SharedAccess &access) {
      return bool(
          getFollowedTile(access.buffer).getDefiningOp<gdn::gpu::ReceiveOp>());
    });
    Conflict conflict = getConflict(&op);
    if (inserts && conflict != Conflict::none &&
        !gdn::gpu::isInSomeWarps(&op) &&
        !op.getParentOfType<gdn::gpu::EachWarpOp>())
      meetBefore(&op, conflict == Conflict::copy);
    for (const SharedAccess &access : accesses)
      if (failed(visitAccess(&op, getFollowedTile(access.buffer), access.writes,
                             access.reads)))
        return failure();
    return success();
  }
  // A barrier is outside of a role, so one for any of its ops comes before it.
  if (inserts && isa<gdn::gpu::WarpsOp, gdn::gpu::EachWarpOp>(op) &&
      !isa<gdn::gpu::RolesOp>(op.getParentOp())) {
    Conflict conflict = Conflict::none;
    op.walk([&](Operation *inner) {
      conflict = std::max(conflict, getConflict(inner));
    });
    if (conflict != Conflict::none)
      meetBefore(&op, conflict == Conflict::copy);
  }
  // The warps that go past a role meet the others at the next barrier.
  if (isa<gdn::gpu::WarpsOp, gdn::gpu::EachWarpOp, gdn::gpu::RolesOp>(op))
    return walk(op.getRegion(0));
  if (isa<scf::IfOp>(op))
    return visitBranches(op);
  if (isa<scf::ForOp, scf::WhileOp, gdn::gpu::UnitsOp>(op))
    return visitLoop(op);
  return success();
}

LogicalResult SharedTileWalk::walk(Region &region) {
  for (Block &block : region)
    for (Operation &op : block)
      if (failed(visit(op)))
        return failure();
  return success();
}

LogicalResult gdn::checkGPUProgram(FunctionOpInterface function) {
  if (failed(checkLayouts(function)) || failed(checkChannels(function)) ||
      failed(checkHandedOn(function)) || failed(checkInPlace(function)) ||
      failed(checkUnits(function)) || failed(checkTensorMapStores(function)) ||
      failed(checkRoles(function)) || failed(checkPairs(function)) ||
      failed(checkLaunches(function)) || failed(checkLastReaders(function)) ||
      failed(checkGlobalAccesses(function)))
    return failure();
  return SharedTileWalk(/*inserts=*/false).walk(function.getFunctionBody());
}

void PlaceBarriers::runOnOperation() {
  for (auto function : getOperation().getOps<FunctionOpInterface>())
    if (gdn::gpu::KernelFields(function) &&
        failed(
            SharedTileWalk(/*inserts=*/true).walk(function.getFunctionBody())))
      return signalPassFailure();
}
