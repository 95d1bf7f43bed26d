// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check and gdn-gpu-place-barriers: one walk over a function, in the
// order in which a thread runs it, that follows what happened to each shared
// tile since the last barrier. Where two ways meet, whatever happened on either
// has happened; the body of a loop is visited twice, so that its end meets its
// beginning. Where a barrier is missing, one pass says so and the other puts it
// there. Which rows of a tile have a value is not followed: one that is shared
// by rows has one on every way as soon as it has on one.
#include "gdn/Dialect/GPU/Transforms/CheckGPUProgram.h"
#include "CheckChannels.h"
#include "CheckOrder.h"

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
  Operation *loaded = nullptr;
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
  LogicalResult visitCommit(gdn::gpu::CommitOp commit);
  LogicalResult visitBranches(Operation &op);
  LogicalResult visitAwaiting(Operation &op);
  LogicalResult needsBarrier(Operation *op, Operation *earlier);
  enum class Conflict { none, access, copy };
  Conflict getConflict(Operation *op) const;
  void meet(bool awaits);
  void meetBefore(Operation *op, bool awaits);
  static void join(States &into, const States &other);

  bool inserts;
  States states;
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
  }
};

} // namespace

/// The tile that `buffer` is, whatever shape it has here. Until it is
/// committed, what a role fills is known by the channel.
static Value getTile(Value buffer) {
  if (auto reshape = buffer.getDefiningOp<gdn::gpu::ReshapeOp>())
    return getTile(reshape.getBuffer());
  if (auto acquire = buffer.getDefiningOp<gdn::gpu::AcquireOp>())
    return acquire.getChannel();
  return buffer;
}

/// True if each warp uses the columns of the tile that are its group's.
static bool isPerWarpgroup(Operation *op) {
  auto hasAllRows = [&](gdn::gpu::FragmentType type) {
    auto rows = dyn_cast<gdn::gpu::RowsAttr>(type.getLayout());
    return rows && rows.isMatrix() &&
           type.getDimSize(0) % (16 * rows.getWarps()) == 0 &&
           gdn::gpu::countWarps(op) == rows.getWarps();
  };
  if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op))
    return copy.getPerWarpgroup();
  if (auto load = dyn_cast<gdn::gpu::LoadSharedOp>(op))
    return load.getTranspose() && hasAllRows(load.getTile().getType());
  if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op))
    return store.getTranspose() && hasAllRows(store.getTile().getType());
  return isa<gdn::gpu::CopyOutOp>(op);
}

/// What an op does to a shared tile.
struct SharedAccess {
  Value buffer;
  bool writes = false, reads = false;
};

static SmallVector<SharedAccess, 4> getAccesses(Operation *op) {
  if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op)) // store_shared_c2
    return {SharedAccess{store.getBuffer(), true, false}};
  if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op)) // begin_copy_c5
    return {SharedAccess{copy.getBuffer(), true, false}};
  if (auto inverse = dyn_cast<gdn::gpu::TriInverseOp>(op)) // tri_inverse_c4
    return {SharedAccess{inverse.getScratch(), true, true}};
  if (auto sum = dyn_cast<gdn::gpu::ColumnSumOp>(op)) // column_sum_c4
    return {SharedAccess{sum.getScratch(), true, true}};
  if (isa<gdn::gpu::LoadSharedOp, gdn::gpu::LoadSharedElementOp,
          gdn::gpu::CopyOutOp>(op)) // load_shared_c2, load_shared_element_c2
    return {SharedAccess{op->getOperand(0), false, true}};
  if (auto matmul = dyn_cast<gdn::gpu::MatmulOp>(op)) // matmul_c5
    return {SharedAccess{matmul.getRhs(), false, true}};
  auto start = dyn_cast<gdn::gpu::StartMatmulOp>(op);
  if (auto await = dyn_cast<gdn::gpu::AwaitMatmulOp>(op))
    start = await.getProduct().getDefiningOp<gdn::gpu::StartMatmulOp>();
  if (start) {
    SmallVector<SharedAccess, 4> accesses;
    for (Value buffer : start.getBuffers())
      accesses.push_back({buffer, false, true});
    return accesses;
  }
  if (auto products =
          dyn_cast<gdn::gpu::ShareProductsOp>(op)) // share_products_c3
    return {SharedAccess{products.getFirst(), false, true},
            SharedAccess{products.getSecond(), false, true},
            SharedAccess{products.getFirstTo(), true, false},
            SharedAccess{products.getSecondTo(), true, false}};
  return {};
}

/// Two rows of a tile are apart, and so are the columns of two warps.
static bool areApart(Operation *op, Operation *other) {
  if (isPerWarpgroup(op) && isPerWarpgroup(other))
    return true;
  auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op);
  auto before = dyn_cast<gdn::gpu::StoreSharedOp>(other);
  return store && before && store.getRow() && before.getRow() &&
         store.getBuffer().getType() == before.getBuffer().getType();
}

/// What has to be over before `op`.
SharedTileWalk::Conflict SharedTileWalk::getConflict(Operation *op) const {
  Conflict conflict = Conflict::none;
  for (const SharedAccess &access : getAccesses(op))
    if (auto found = states.find(getTile(access.buffer));
        found != states.end()) {
      const TileState &state = found->second;
      if (state.copied && !areApart(op, state.copied))
        return Conflict::copy;
      if ((state.shared && !areApart(op, state.shared)) ||
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
    if (!state.copied) // what is still on its way is there for no thread
      state.shared = nullptr;
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
    if (!mine.copied)
      mine.copied = state.copied;
    if (!mine.product)
      mine.product = state.product;
    mine.hasRows |= state.hasRows;
  }
  for (auto &[buffer, state] : into) {
    auto found = other.find(buffer);
    state.hasValue &= found != other.end() && found->second.hasValue;
    state.hasValue |= state.hasRows;
  }
}

/// Runs once or not at all for each region, or one of two regions.
LogicalResult SharedTileWalk::visitBranches(Operation &op) {
  States before = states, after;
  bool isFirst = true;
  for (Region &region : op.getRegions()) {
    states = before;
    if (failed(walk(region)))
      return failure();
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
  if (state.shared && !areApart(op, state.shared))
    if (writes || state.hasValue)
      return needsBarrier(op, state.shared);
  if (!writes && !state.hasValue)
    return op->emitOpError("expects a tile that has been shared on every way "
                           "to it");
  if (writes) {
    state.shared = op;
    state.hasValue = true;
    if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op))
      state.hasRows |= bool(store.getRow());
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
    states[commit.getTile()] = state;
    states[commit.getTile()].hasValue = true;
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
    if (arrived.contains(state.shared))
      state.shared = nullptr;
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
  if (auto acquire = dyn_cast<gdn::gpu::AcquireOp>(op)) {
    states.erase(acquire.getChannel()); // another ring stage
    return success();
  }
  if (auto commit = dyn_cast<gdn::gpu::CommitOp>(op))
    return visitCommit(commit);
  if (SmallVector<SharedAccess, 4> accesses = getAccesses(&op);
      !accesses.empty()) {
    // Channels order what other roles do with their tiles.
    llvm::erase_if(accesses, [](const SharedAccess &access) {
      return bool(getTile(access.buffer).getDefiningOp<gdn::gpu::ReceiveOp>());
    });
    Conflict conflict = getConflict(&op);
    if (inserts && conflict != Conflict::none &&
        !gdn::gpu::isInSomeWarps(&op) &&
        !op.getParentOfType<gdn::gpu::EachWarpOp>())
      meetBefore(&op, conflict == Conflict::copy);
    for (const SharedAccess &access : accesses)
      if (failed(visitAccess(&op, getTile(access.buffer), access.writes,
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

/// Outside gdn_gpu.warps all warps of the block run an op.
static LogicalResult checkLayouts(FunctionOpInterface function) {
  int64_t warps =
      gdn::gpu::KernelFields(function).getThreads() / gdn::gpu::warpThreads;
  WalkResult walk = function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gdn::gpu::WarpsOp, gdn::gpu::EachWarpOp>(op))
      return WalkResult::skip();
    for (Value value :
         llvm::concat<Value>(op->getOperands(), op->getResults())) {
      auto type = dyn_cast<gdn::gpu::FragmentType>(value.getType());
      if (!type || type.getRows().getWarps() == warps)
        continue;
      op->emitOpError("expects fragments laid out over ")
          << warps << " warps, all of the block, outside gdn_gpu.warps, "
          << "but got " << type;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Who stores into a tile waits until boxes have been read from it
/// (copy_out_c6), and one does so behind each, so that none is under way where
/// the tile ends.
static LogicalResult checkTensorMapStores(FunctionOpInterface function) {
  WalkResult walk = function->walk([&](gdn::gpu::CopyOutOp copy) {
    if (!copy.getTensorMap())
      return WalkResult::advance();
    // Only then tiles lie at multiples of what the swizzle repeats behind.
    if (!gdn::gpu::KernelFields(function).getWarpgroups()) {
      copy.emitOpError("expects the function to have 'warpgroups' of "
                       "'gdn_gpu.kernel' for 'tensor_map'");
      return WalkResult::interrupt();
    }
    InFlightDiagnostic diag = copy.emitOpError(
        "expects a tile of gdn_gpu.alloc into which the same role stores the "
        "columns, once behind it in its block, and which nothing else writes, "
        "for 'tensor_map'");
    bool isShared = false;
    auto mayUse = [&](Operation *user) {
      auto store = dyn_cast<gdn::gpu::StoreSharedOp>(user);
      if (!store)
        return isa<gdn::gpu::CopyOutOp, gdn::gpu::LoadSharedOp,
                   gdn::gpu::LoadSharedElementOp>(user);
      isShared |=
          store->getBlock() == copy->getBlock() && copy->isBeforeInBlock(store);
      return isPerWarpgroup(store) &&
             gdn::gpu::getRole(store) == gdn::gpu::getRole(copy) &&
             !gdn::gpu::isInSomeWarps(store) &&
             !store->getParentOfType<gdn::gpu::EachWarpOp>();
    };
    for (Operation *user : copy.getBuffer().getUsers())
      if (!mayUse(user)) {
        diag.attachNote(user->getLoc()) << "other use";
        return WalkResult::interrupt();
      }
    if (!isShared || !copy.getBuffer().getDefiningOp<gdn::gpu::AllocOp>())
      return WalkResult::interrupt();
    diag.abandon();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult gdn::checkGPUProgram(FunctionOpInterface function) {
  if (failed(checkLayouts(function)) || failed(checkChannels(function)) ||
      failed(checkTensorMapStores(function)) || failed(checkRoles(function)) ||
      failed(checkPairs(function)) || failed(checkLaunches(function)) ||
      failed(checkLastReaders(function)) ||
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
