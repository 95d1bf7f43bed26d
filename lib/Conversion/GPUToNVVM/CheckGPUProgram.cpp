// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: one walk over a function, in the order in which a thread runs
// it, that follows what happened to each shared tile since the last barrier.
// Where two ways meet, whatever happened on either has happened; the body of a
// loop is walked twice, so that its end meets its beginning. Which rows of a
// tile have a value is not followed: one that is shared by rows has one on
// every way as soon as it has on one.
#include "CheckGPUProgram.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace gdn {
#define GEN_PASS_DEF_CHECKGPU
#include "gdn/Conversion/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// What happened to a shared tile: the ops since the last barrier that some
/// thread may still be at, and whether the tile has a value on every way here.
struct TileState {
  Operation *shared = nullptr;
  Operation *fetched = nullptr;
  bool hasValue = false;
  bool hasRows = false; // a value by rows, on some way
};

class SharedTileWalk {
public:
  LogicalResult walk(Region &region);

private:
  using States = llvm::MapVector<Value, TileState>;

  LogicalResult visit(Operation &op);
  LogicalResult visitLoop(Operation &op);
  LogicalResult visitBranches(Operation &op);
  LogicalResult needsBarrier(Operation *op, Operation *earlier);
  static void join(States &into, const States &other);

  States states;
};

struct CheckGPU final : gdn::impl::CheckGPUBase<CheckGPU> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      if (function->hasAttr("gdn_gpu.threads") &&
          failed(checkGPUProgram(function)))
        return signalPassFailure();
  }
};

} // namespace

LogicalResult SharedTileWalk::needsBarrier(Operation *op, Operation *earlier) {
  InFlightDiagnostic diag = op->emitOpError(
      "expects a gdn_gpu.barrier between it and the access before it");
  diag.attachNote(earlier->getLoc()) << "access before it";
  return diag;
}

void SharedTileWalk::join(States &into, const States &other) {
  for (auto &[place, state] : other) {
    TileState &mine = into[place];
    if (!mine.shared)
      mine.shared = state.shared;
    if (!mine.fetched)
      mine.fetched = state.fetched;
    mine.hasRows |= state.hasRows;
  }
  for (auto &[place, state] : into) {
    auto found = other.find(place);
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

/// The tile that `place` is, whatever shape it has here.
static Value getTile(Value place) {
  while (auto reshape = place.getDefiningOp<gpu::ReshapeOp>())
    place = reshape.getPlace();
  return place;
}

LogicalResult SharedTileWalk::visit(Operation &op) {
  if (isa<gpu::BarrierOp>(op)) {
    for (auto &[place, state] : states)
      state.shared = state.fetched = nullptr;
    return success();
  }
  // Channels order the accesses to their tiles.
  if (llvm::any_of(op.getOperands(), [](Value operand) {
        return operand.getDefiningOp<gpu::AcquireOp>() ||
               operand.getDefiningOp<gpu::ReceiveOp>();
      }))
    return success();
  if (auto share = dyn_cast<gpu::ShareOp>(op)) {
    // share_c2
    TileState &state = states[getTile(share.getPlace())];
    // Two rows of a tile are apart.
    auto other = dyn_cast_or_null<gpu::ShareOp>(state.shared);
    bool isApart = other && other.getRow() && share.getRow() &&
                   other.getPlace().getType() == share.getPlace().getType();
    if (state.fetched)
      return needsBarrier(share, state.fetched);
    if (other && !isApart)
      return needsBarrier(share, other);
    state.shared = share;
    state.hasValue = true;
    state.hasRows |= bool(share.getRow());
    return success();
  }
  if (isa<gpu::FetchOp, gpu::FetchElementOp>(op)) {
    // fetch_c2, fetch_element_c2
    TileState &state = states[getTile(op.getOperand(0))];
    if (!state.hasValue)
      return op.emitOpError("expects a tile that has been shared on every way "
                            "to it");
    if (state.shared)
      return needsBarrier(&op, state.shared);
    state.fetched = &op;
    return success();
  }
  // The warps that go past a role meet the others at the next barrier.
  if (isa<gpu::WarpsOp, gpu::EachWarpOp, gpu::RolesOp>(op))
    return walk(op.getRegion(0));
  if (isa<scf::IfOp>(op))
    return visitBranches(op);
  if (isa<scf::ForOp, scf::WhileOp, gpu::UnitsOp>(op))
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
      function->getAttrOfType<IntegerAttr>("gdn_gpu.threads").getInt() /
      gpu::warpThreads;
  WalkResult walk = function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::WarpsOp, gpu::EachWarpOp>(op))
      return WalkResult::skip();
    for (Value value :
         llvm::concat<Value>(op->getOperands(), op->getResults())) {
      auto type = dyn_cast<gpu::FragmentType>(value.getType());
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

LogicalResult gdn::checkGPUProgram(FunctionOpInterface function) {
  if (failed(checkLayouts(function)) || failed(checkChannels(function)))
    return failure();
  return SharedTileWalk().walk(function.getFunctionBody());
}
