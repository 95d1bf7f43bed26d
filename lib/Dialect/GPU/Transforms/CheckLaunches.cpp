// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of a launch behind those ahead of it in the stream: what a program
// may do before its gdn_gpu.await_launch, and that it does not end before them.
// A program without one begins when the launches ahead have ended, so nothing
// is asked of it. A stage that overlaps with a neighbour touches nothing that
// the neighbour writes.
#include "CheckOrder.h"
#include "GlobalAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn;

namespace {

class LaunchWalk {
public:
  explicit LaunchWalk(FunctionOpInterface function);
  LogicalResult run();
  AheadOfWait ahead;

private:
  void keepPools();
  LogicalResult walk(Region &region);
  LogicalResult visit(Operation &op);
  LogicalResult visitBranches(Operation &op);
  LogicalResult visitAccess(Operation &op);
  InFlightDiagnostic needsAwait(Operation &op);

  FunctionOpInterface function;
  Operation *await = nullptr; // some gdn_gpu.await_launch
  llvm::DenseSet<Value> kept; // pools, and what the program writes, too
  bool isAwaited = false;     // on every way here
  bool awaitsSignals = false; // of the launch ahead, which may still run
  bool overlapsWithNext = false, overlapsWithLast = false;
  bool awaitsStage = false; // of the same call
};

} // namespace

LaunchWalk::LaunchWalk(FunctionOpInterface function) : function(function) {
  tile::StageFields stage(function);
  overlapsWithNext = stage.overlapsWith(tile::Neighbour::next);
  overlapsWithLast = stage.overlapsWith(tile::Neighbour::last);
  function->walk([&](Operation *op) {
    if (isa<gdn::gpu::AwaitLaunchOp>(op) && !await)
      await = op;
    awaitsSignals |= isa<gdn::gpu::AwaitSignalsOp>(op);
    if (GlobalAccess access = GlobalAccess::get(op); access.writes)
      kept.insert(access.root);
  });
  keepPools();
  // Behind the first stage of a call its arguments are there, but for those
  // that a stage writes (`checkStages`).
  awaitsStage = stage.getAwaitsStage();
  if (awaitsStage)
    for (BlockArgument argument : function.getArguments())
      if (getNameInCall(argument))
        kept.insert(argument);
}

/// Pools have a slot that is none's. Which launches may stand between one that
/// writes a pool and one that reads it is the caller's business.
void LaunchWalk::keepPools() {
  llvm::StringMap<Value> byName;
  auto getName = [&](unsigned number) {
    auto name = function.getArgAttrOfType<StringAttr>(number, "gdn.name");
    return name ? name.getValue() : StringRef();
  };
  for (BlockArgument argument : function.getArguments())
    byName[getName(argument.getArgNumber())] = argument;
  for (BlockArgument argument : function.getArguments()) {
    StringRef name = getName(argument.getArgNumber());
    if (name.consume_back("_null_slot") && byName.contains(name))
      kept.insert(byName[name]);
  }
}

InFlightDiagnostic LaunchWalk::needsAwait(Operation &op) {
  InFlightDiagnostic diag =
      op.emitOpError("expects a gdn_gpu.await_launch before it on every way, ");
  diag.attachNote(await->getLoc()) << "the program awaits the launch here";
  return diag;
}

/// await_launch_c2, await_launch_c3
LogicalResult LaunchWalk::visitAccess(Operation &op) {
  GlobalAccess access = GlobalAccess::get(&op);
  if (!access.op || isAwaited)
    return success();
  ahead.accesses.push_back(access);
  if (overlapsWithLast)
    return success();
  if (access.writes)
    return needsAwait(op) << "since an earlier launch may use what it writes";
  if (access.isNumber() || kept.contains(access.root))
    return success();
  return needsAwait(op) << "since an earlier launch may write what it reads";
}

/// Runs once or not at all for each region, or one of two regions.
LogicalResult LaunchWalk::visitBranches(Operation &op) {
  const bool before = isAwaited;
  bool after = true;
  for (Region &region : op.getRegions()) {
    isAwaited = before;
    if (failed(walk(region)))
      return failure();
    after &= isAwaited;
  }
  isAwaited = after;
  return success();
}

LogicalResult LaunchWalk::visit(Operation &op) {
  if (isa<gdn::gpu::AwaitLaunchOp, gdn::gpu::AwaitSignalsOp>(op)) {
    isAwaited = true;
    return success();
  }
  if (isa<gdn::gpu::ReleaseLaunchOp>(op)) { // release_launch_c2
    if (awaitsSignals)
      return op.emitOpError("expects no gdn_gpu.await_signals in the program, "
                            "since the next launch waits for this one alone");
    if (isAwaited)
      return success();
    if (!ahead.release)
      ahead.release = &op;
    if (overlapsWithNext || overlapsWithLast || awaitsStage)
      return success(); // `checkStages` looks at who is next
    return needsAwait(op) << "since the next launch may begin behind it, and "
                             "waits for this one alone";
  }
  if (isa<scf::IfOp>(op))
    return visitBranches(op);
  const bool before = isAwaited;
  for (Region &region : op.getRegions()) {
    // A role waits for itself.
    if (isa_and_nonnull<gdn::gpu::RolesOp>(op.getParentOp()))
      isAwaited = before;
    if (failed(walk(region)))
      return failure();
  }
  if (op.getNumRegions() != 0) {
    if (isa<scf::ForOp, scf::WhileOp, gdn::gpu::UnitsOp>(op) ||
        isa_and_nonnull<gdn::gpu::RolesOp>(op.getParentOp()))
      isAwaited = before; // there may be no turn
    return success();
  }
  return visitAccess(op);
}

LogicalResult LaunchWalk::walk(Region &region) {
  for (Block &block : region)
    for (Operation &op : block)
      if (failed(visit(op)))
        return failure();
  return success();
}

/// Whether `condition` holds in the first block of a launch.
static bool holdsInFirstBlock(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return holdsInFirstBlock(both.getLhs()) && holdsInFirstBlock(both.getRhs());
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  auto isFirst = [](Value id, Value number) {
    return id.getDefiningOp<gdn::gpu::BlockIdOp>() &&
           matchPattern(number, m_Zero());
  };
  return compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
         (isFirst(compare.getLhs(), compare.getRhs()) ||
          isFirst(compare.getRhs(), compare.getLhs()));
}

/// Whether some warp awaits the launch on every way through `code`, in every
/// block of the launch or in the first one. There may be no turn of a loop.
static bool someWarpAwaits(Block &code) {
  return llvm::any_of(code, [](Operation &op) {
    if (isa<gdn::gpu::AwaitLaunchOp>(op))
      return true;
    if (auto roles = dyn_cast<gdn::gpu::RolesOp>(op))
      return llvm::any_of(roles.getBody().getOps<gdn::gpu::WarpsOp>(),
                          [](gdn::gpu::WarpsOp role) {
                            return someWarpAwaits(role.getBody().front());
                          });
    auto branch = dyn_cast<scf::IfOp>(op);
    return branch && someWarpAwaits(*branch.thenBlock()) &&
           (holdsInFirstBlock(branch.getCondition()) ||
            (branch.elseBlock() && someWarpAwaits(*branch.elseBlock())));
  });
}

LogicalResult LaunchWalk::run() {
  if (!await)
    return success();
  if (failed(walk(function.getFunctionBody())))
    return failure();
  if (someWarpAwaits(function.getFunctionBody().front())) // await_launch_c4
    return success();
  return await->emitOpError(
      "expects some warp to await the launch on every way to the end of the "
      "program, in every block or in the first one, since the next launch "
      "waits for this one alone");
}

LogicalResult gdn::checkLaunches(FunctionOpInterface function) {
  return LaunchWalk(function).run();
}

AheadOfWait gdn::getAheadOfWait(FunctionOpInterface function) {
  LaunchWalk launch(function);
  return succeeded(launch.run()) ? launch.ahead : AheadOfWait();
}
