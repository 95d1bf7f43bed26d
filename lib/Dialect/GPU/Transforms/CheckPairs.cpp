// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one op begins and another one waits for: an arrival, a ticket, a load by
// way of shared memory.
#include "CheckOrder.h"
#include "GlobalAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

using namespace mlir;
using namespace gdn;

/// Whether `value` comes to an op of kind `OpTy`, through the results of ops
/// with regions.
template <typename OpTy> static bool reaches(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    if (isa<OpTy>(use.getOwner()))
      return true;
    Operation *around = use.getOwner()->getParentOp();
    return use.getOwner()->hasTrait<OpTrait::IsTerminator>() &&
           use.getOperandNumber() < around->getNumResults() &&
           reaches<OpTy>(around->getResult(use.getOperandNumber()));
  });
}

/// Whether `op` runs before each run of `other`: it stands before it, and each
/// branch or loop around it is around the other one, too.
static bool isBeforeOnEveryWay(Operation *op, Operation *other) {
  Operation *at = op;
  for (; !at->getParentOp()->isAncestor(other); at = at->getParentOp())
    if (!isa<gdn::gpu::WarpsOp, gdn::gpu::EachWarpOp>(at->getParentOp()))
      return false;
  Operation *its = at->getBlock()->findAncestorOpInBlock(*other);
  return its && at->isBeforeInBlock(its);
}

/// Whether the same warps run both ops.
static bool runOnSameWarps(Operation *op, Operation *other) {
  auto mine = op->getParentOfType<gdn::gpu::WarpsOp>();
  auto its = other->getParentOfType<gdn::gpu::WarpsOp>();
  return mine == its || (mine && its && mine.getFirst() == its.getFirst() &&
                         mine.getCount() == its.getCount());
}

/// begin_load_c3, begin_load_c5
static LogicalResult checkBeginLoad(gdn::gpu::BeginLoadOp begin) {
  gdn::gpu::LoadOp load;
  for (Operation *user : begin.getBuffer().getUsers())
    if (auto taking = dyn_cast<gdn::gpu::LoadOp>(user))
      load = taking;
  if (!load)
    return begin.emitOpError("expects a gdn_gpu.load that takes the tile from "
                             "its buffer, but got none");
  if (!runOnSameWarps(begin, load) || !isBeforeOnEveryWay(begin, load)) {
    InFlightDiagnostic diag = load.emitOpError( // load_c5
        "expects the gdn_gpu.begin_load of its tile before it on every way, by "
        "the same warps");
    diag.attachNote(begin->getLoc()) << "begun here";
    return diag;
  }
  const GlobalAccess access = GlobalAccess::get(begin);
  auto function = begin->getParentOfType<FunctionOpInterface>();
  Operation *writer = nullptr;
  bool isBehindBegin = false;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    isBehindBegin |= op == begin;
    if (op == load)
      return WalkResult::interrupt();
    GlobalAccess other = GlobalAccess::get(op);
    if (isBehindBegin && other.writes &&
        getOverlap(access, other) == Overlap::some)
      writer = op;
    return WalkResult::advance();
  });
  if (!writer)
    return success();
  InFlightDiagnostic diag = writer->emitOpError(
      "expects to be behind the gdn_gpu.load that takes what was there before");
  diag.attachNote(begin->getLoc()) << "begins to load it";
  diag.attachNote(load->getLoc()) << "takes it";
  return diag;
}

LogicalResult gdn::checkPairs(FunctionOpInterface function) {
  bool awaits = false;
  function->walk([&](gdn::gpu::AwaitArrivalsOp) { awaits = true; });
  WalkResult walk = function->walk([&](Operation *op) {
    if (isa<gdn::gpu::ArriveOp>(op) && !awaits) { // arrive_c3
      op->emitOpError("expects a gdn_gpu.await_arrivals in its function, but "
                      "got none");
      return WalkResult::interrupt();
    }
    if (auto take = dyn_cast<gdn::gpu::TakeTicketOp>(op);
        take && !reaches<gdn::gpu::IsLastOp>(take.getTicket())) {
      op->emitOpError("expects a gdn_gpu.is_last of its ticket, but got none");
      return WalkResult::interrupt(); // take_ticket_c2
    }
    if (auto begin = dyn_cast<gdn::gpu::BeginLoadOp>(op);
        begin && failed(checkBeginLoad(begin)))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
