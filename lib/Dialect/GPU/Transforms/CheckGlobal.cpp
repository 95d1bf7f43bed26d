// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of a block's accesses to global memory. The class follows, like
// that of shared tiles, what was read and written since the threads last met.
// Two accesses by the same threads are in order. Between others a barrier is
// asked for where indices show that they have an element in common; within one
// warp, where they do not show that they have none.
#include "CheckOrder.h"
#include "GlobalAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

namespace {

/// An access that some thread may still be at.
struct Pending {
  GlobalAccess access;
  Operation *warps = nullptr; // gdn_gpu.warps or gdn_gpu.each_warp around it
  bool isCopy = false;        // not awaited yet
  bool haveMet = false;       // the lanes of each row, which have read it
};

class GlobalWalk {
public:
  LogicalResult walk(Region &region);

private:
  LogicalResult visit(Operation &op);
  LogicalResult visitAccess(const GlobalAccess &access);
  LogicalResult visitBranches(Operation &op);
  LogicalResult visitLoop(Operation &op);
  void meetLanes(Operation *op);
  void meetRows(gdn::gpu::RowsAttr rows);
  void forgetTurn(Operation &loop);

  SmallVector<Pending> pending;
};

} // namespace

/// The op around `op` that some warps of the block or role run; null for none.
static Operation *getWarps(Operation *op) {
  for (Operation *at = op->getParentOp(); at; at = at->getParentOp()) {
    if (isa<gdn::gpu::EachWarpOp>(at))
      return at;
    if (isa<gdn::gpu::WarpsOp>(at))
      return isa_and_nonnull<gdn::gpu::RolesOp>(at->getParentOp()) &&
                     cast<gdn::gpu::WarpsOp>(at).getCount() != 1
                 ? nullptr
                 : at;
  }
  return nullptr;
}

/// Whether one warp runs both ops.
static bool isOneWarp(Operation *warps, Operation *other) {
  if (!warps || !other)
    return false;
  auto mine = dyn_cast<gdn::gpu::WarpsOp>(warps);
  auto its = dyn_cast<gdn::gpu::WarpsOp>(other);
  if (mine && its)
    return mine.getCount() == 1 && its.getCount() == 1 &&
           mine.getFirst() == its.getFirst() &&
           mine->getParentOp() == its->getParentOp();
  return warps == other && isa<gdn::gpu::EachWarpOp>(warps);
}

/// Whether the same warps run both ops.
static bool haveSameWarps(Operation *warps, Operation *other) {
  if (!warps || !other)
    return warps == other;
  auto mine = dyn_cast<gdn::gpu::WarpsOp>(warps);
  auto its = dyn_cast<gdn::gpu::WarpsOp>(other);
  if (mine && its)
    return mine.getFirst() == its.getFirst() &&
           mine.getCount() == its.getCount();
  auto each = dyn_cast<gdn::gpu::EachWarpOp>(warps);
  auto otherEach = dyn_cast<gdn::gpu::EachWarpOp>(other);
  return each && otherEach && each.getFirst() == otherEach.getFirst() &&
         each.getCount() == otherEach.getCount();
}

LogicalResult GlobalWalk::visitAccess(const GlobalAccess &access) {
  Operation *op = access.op;
  Operation *warps = getWarps(op);
  for (const Pending &before : pending) {
    const GlobalAccess &other = before.access;
    if (!access.writes && !other.writes)
      continue;
    Overlap overlap = getOverlap(access, other);
    if (overlap == Overlap::none ||
        (haveSameWarps(warps, before.warps) &&
         isBySameThreads(access, other, before.haveMet)))
      continue;
    if (before.isCopy && overlap == Overlap::some) { // begin_copy_c9
      InFlightDiagnostic diag = op->emitOpError(
          "expects a gdn_gpu.await_copies between it and the copy of what it "
          "writes");
      diag.attachNote(other.op->getLoc()) << "copy";
      return diag;
    }
    if (isOneWarp(warps, before.warps) &&
        (overlap == Overlap::some || haveSameColumns(access, other))) {
      InFlightDiagnostic diag = op->emitOpError( // store_c5
                                    "expects a gdn_gpu.warp_barrier between it "
                                    "and the access before it, "
                                    "since other lanes may have what it ")
                                << (access.writes ? "writes" : "reads");
      diag.attachNote(other.op->getLoc()) << "access before it";
      return diag;
    }
    if (overlap != Overlap::some || isOneWarp(warps, before.warps))
      continue;
    InFlightDiagnostic diag = op->emitOpError( // store_c6
        "expects a gdn_gpu.barrier between it and the access to the same "
        "elements before it");
    diag.attachNote(other.op->getLoc()) << "access before it";
    return diag;
  }
  pending.push_back({access, warps, isa<gdn::gpu::BeginCopyOp>(op)});
  return success();
}

/// How the rows lie whose elements `op` adds or compares, each over its lanes;
/// null for none.
static gdn::gpu::RowsAttr getReducedRows(Operation &op) {
  if (auto fold = dyn_cast<gdn::gpu::FoldPlanesOp>(op))
    return fold.getUpper().getType().getRows();
  auto map = dyn_cast<gdn::gpu::MapRowsOp>(op);
  if (!map || map.getInputs().empty())
    return nullptr;
  auto type =
      dyn_cast<gdn::gpu::FragmentType>(map.getInputs().front().getType());
  const bool reduces =
      map.getBody()
          .walk([](vector::ReductionOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  return type && reduces ? type.getRows() : gdn::gpu::RowsAttr();
}

/// The lanes of the warp that runs `op` have met; so what they read is there.
void GlobalWalk::meetLanes(Operation *op) {
  Operation *warps = getWarps(op);
  const bool orders = isa<gdn::gpu::WarpBarrierOp>(op);
  llvm::erase_if(pending, [&](const Pending &before) {
    return isOneWarp(warps, before.warps) && (orders || !before.access.writes);
  });
}

/// The lanes of each row have met; so what they have read of the numbers of
/// their row is there.
void GlobalWalk::meetRows(gdn::gpu::RowsAttr rows) {
  for (Pending &before : pending) {
    gdn::gpu::FragmentType fragment = before.access.fragment;
    before.haveMet |= !before.access.writes && fragment &&
                      fragment.isPerRow() && fragment.getRows() == rows;
  }
}

/// Drops accesses with indices of a turn: they are others in the next.
void GlobalWalk::forgetTurn(Operation &loop) {
  auto isOfTurn = [&](Value value) {
    return loop.isAncestor(value.getParentBlock()->getParentOp());
  };
  llvm::erase_if(pending, [&](const Pending &before) {
    return isOfTurn(Value(before.access.view)) ||
           llvm::any_of(before.access.indices, isOfTurn);
  });
}

/// Runs once or not at all for each region, or one of two regions.
LogicalResult GlobalWalk::visitBranches(Operation &op) {
  SmallVector<Pending> before = pending, after;
  for (Region &region : op.getRegions()) {
    pending = before;
    if (failed(walk(region)))
      return failure();
    for (const Pending &one : pending)
      if (llvm::none_of(after, [&](const Pending &known) {
            return known.access.op == one.access.op;
          }))
        after.push_back(one);
  }
  pending = std::move(after);
  return success();
}

LogicalResult GlobalWalk::visitLoop(Operation &op) {
  SmallVector<Pending> before = pending;
  for (unsigned round = 0; round < 2; ++round) {
    for (Region &region : op.getRegions())
      if (failed(walk(region)))
        return failure();
    forgetTurn(op);
  }
  for (const Pending &one : before) // no turn at all
    if (llvm::none_of(pending, [&](const Pending &known) {
          return known.access.op == one.access.op;
        }))
      pending.push_back(one);
  return success();
}

LogicalResult GlobalWalk::visit(Operation &op) {
  // Sums of columns are handed over by way of a barrier.
  if (isa<gdn::gpu::BarrierOp, gdn::gpu::ColumnSumOp>(op)) {
    llvm::erase_if(pending, [](const Pending &one) { return !one.isCopy; });
    return success();
  }
  if (isa<gdn::gpu::AwaitCopiesOp>(op)) {
    for (Pending &one : pending)
      one.isCopy = false;
    return success();
  }
  // What these compare, send or add comes from all lanes, or those of a row.
  gdn::gpu::RowsAttr reduced = getReducedRows(op);
  if (isa<gdn::gpu::WarpBarrierOp, gdn::gpu::LastReaderOp, gdn::gpu::IsLastOp>(
          op) ||
      (reduced && reduced.getLanes() == gdn::gpu::warpThreads)) {
    meetLanes(&op);
    return success();
  }
  if (reduced)
    meetRows(reduced);
  if (isa<gdn::gpu::RolesOp>(op)) {
    for (Operation &role : op.getRegion(0).front()) {
      pending.clear(); // all threads of the block have met
      if (role.getNumRegions() != 0 && failed(walk(role.getRegion(0))))
        return failure();
    }
    pending.clear();
    return success();
  }
  if (gdn::gpu::hasArithmetic(&op))
    return success();
  if (isa<scf::IfOp>(op))
    return visitBranches(op);
  if (isa<scf::ForOp, scf::WhileOp, gdn::gpu::UnitsOp>(op))
    return visitLoop(op);
  for (Region &region : op.getRegions())
    if (failed(walk(region)))
      return failure();
  if (GlobalAccess access = GlobalAccess::get(&op); access.op)
    return visitAccess(access);
  return success();
}

LogicalResult GlobalWalk::walk(Region &region) {
  for (Block &block : region)
    for (Operation &op : block)
      if (failed(visit(op)))
        return failure();
  return success();
}

LogicalResult gdn::checkGlobalAccesses(FunctionOpInterface function) {
  return GlobalWalk().walk(function.getFunctionBody());
}
