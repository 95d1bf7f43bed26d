// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-await-stages: stages of a launch begin while those ahead of them end.
// See Passes.td.
#include "GlobalAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/GPU/IR/Launches.h"
#include "gdn/Dialect/GPU/Transforms/Passes.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace gdn {
#define GEN_PASS_DEF_AWAITSTAGES
#include "gdn/Dialect/GPU/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

struct AwaitStages final : gdn::impl::AwaitStagesBase<AwaitStages> {
  void runOnOperation() override;
  void order(func::FuncOp stage, bool isEarly, bool releases, bool isFollowed,
             const DenseSet<StringAttr> &written);
};

} // namespace

/// Whether blocks of the stage work in roles.
static bool hasRoles(func::FuncOp stage) {
  return stage->walk([](gpu::RolesOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// The first op of the program that asks for global memory, but for numbers of
/// the call.
static Operation *getFirstUse(func::FuncOp stage) {
  for (Operation &op : stage.getBody().front()) {
    WalkResult uses = op.walk([](Operation *inner) {
      GlobalAccess access = GlobalAccess::get(inner);
      return access.op && !access.isNumber() ? WalkResult::interrupt()
                                             : WalkResult::advance();
    });
    if (uses.wasInterrupted())
      return &op;
  }
  return stage.getBody().front().getTerminator();
}

/// Whether the stage has a warp for each piece of tokens. There are many such
/// blocks, and those that begin early crowd on the few multiprocessors that are
/// free: on an H200 a norm behind a recurrence took 20 us in place of 16.
static bool isInPieces(func::FuncOp stage) {
  return stage
      ->walk([](gpu::EachWarpOp each) {
        // Of a role, warps take turns.
        return gpu::getRole(each) ? WalkResult::advance()
                                  : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Whether `stage`, with `next` behind it, or null, begins before the one ahead
/// of it has ended: one in roles, or between such. One that overlaps with the
/// last one waits where it ends; and two that overlap begin behind what they
/// both read: 1 x 32,768 tokens took 1,300 us in place of 1,090 where the first
/// of them waited itself.
static bool mayBeginEarly(func::FuncOp stage, func::FuncOp next) {
  tile::StageFields fields(stage);
  if (fields.getFollows())
    return true;
  return (hasRoles(stage) || (next && hasRoles(next))) && !isInPieces(stage) &&
         !fields.overlapsWith(tile::Neighbour::last) &&
         !fields.overlapsWith(tile::Neighbour::next);
}

namespace {

/// Lets each role of a stage wait for itself, where it first has to.
class RoleAwaits {
public:
  /// `written` are arguments of the call that stages ahead of this one write.
  explicit RoleAwaits(const DenseSet<StringAttr> &written) : written(written) {}
  /// False if what stands around the roles has to wait.
  bool place(func::FuncOp stage);

private:
  bool hasToWait(Operation *op) const;
  bool containsWait(Operation *op) const;
  /// Whether who comes through `block` waits on every way.
  bool placeIn(Block &block) const;

  const DenseSet<StringAttr> &written;
};

} // namespace

/// Whether `op` uses memory in a way that has to wait for the stage ahead of
/// it: it writes, or reads what a stage has written.
bool RoleAwaits::hasToWait(Operation *op) const {
  GlobalAccess access = GlobalAccess::get(op);
  if (!access.op || access.isNumber())
    return false;
  StringAttr name = getNameInCall(access.root);
  return access.writes || !name || written.contains(name);
}

bool RoleAwaits::containsWait(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        return hasToWait(inner) ? WalkResult::interrupt()
                                : WalkResult::advance();
      })
      .wasInterrupted();
}

bool RoleAwaits::placeIn(Block &block) const {
  for (Operation &op : block) {
    if (!containsWait(&op))
      continue;
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch) {
      OpBuilder b(&op);
      gpu::AwaitLaunchOp::create(b, op.getLoc());
      return true;
    }
    bool onEveryWay = true;
    for (Region &region : branch->getRegions())
      onEveryWay &= !region.empty() && placeIn(region.front());
    if (onEveryWay)
      return true;
  }
  return false;
}

bool RoleAwaits::place(func::FuncOp stage) {
  gpu::RolesOp roles;
  for (Operation &op : stage.getBody().front())
    if (auto found = dyn_cast<gpu::RolesOp>(op))
      roles = found;
    else if (containsWait(&op))
      return false;
  if (!roles || !containsWait(roles))
    return false;
  bool someWaits = false; // in every block
  for (auto role : roles.getBody().getOps<gpu::WarpsOp>())
    someWaits |= placeIn(role.getBody().front());
  // Where all blocks have nothing to do, none has waited.
  OpBuilder b(stage.getBody().front().getTerminator());
  if (!someWaits)
    gpu::awaitInFirstBlock(b, stage.getLoc(),
                           tile::StageFields(stage).getGrid().size());
  return true;
}

/// Adds the arguments of the call that `stage` writes.
static void addWritten(func::FuncOp stage, DenseSet<StringAttr> &written) {
  stage->walk([&](Operation *op) {
    GlobalAccess access = GlobalAccess::get(op);
    StringAttr name =
        access.op && access.writes ? getNameInCall(access.root) : StringAttr();
    if (name)
      written.insert(name);
  });
}

/// Lets the next stage begin as soon as a role has waited.
static void releaseInRoles(func::FuncOp stage) {
  SmallVector<gpu::AwaitLaunchOp> awaits;
  stage->walk([&](gpu::AwaitLaunchOp await) {
    gpu::WarpsOp role = gpu::getRole(await);
    if (role && (awaits.empty() || gpu::getRole(awaits.front()) == role))
      awaits.push_back(await);
  });
  for (gpu::AwaitLaunchOp await : awaits) {
    OpBuilder b(await->getContext());
    b.setInsertionPointAfter(await);
    gpu::ReleaseLaunchOp::create(b, await.getLoc());
  }
}

/// The branch that has all uses of global memory of a stage without roles,
/// where there is one: other blocks have nothing to do.
static scf::IfOp getOnlyBranch(func::FuncOp stage) {
  if (hasRoles(stage))
    return nullptr;
  auto branch = dyn_cast<scf::IfOp>(getFirstUse(stage));
  bool isOnly = branch && branch.getElseRegion().empty() &&
                isa<func::ReturnOp>(branch->getNextNode());
  return isOnly ? branch : nullptr;
}

/// Lets blocks of the stage wait where they have something to do, and release
/// the next one there or where they end. The first block waits in any case,
/// since who comes next waits for this stage alone.
static void awaitIn(scf::IfOp branch, func::FuncOp stage, bool releases) {
  Location loc = stage.getLoc();
  OpBuilder b = branch.getThenBodyBuilder();
  b.setInsertionPointToStart(branch.thenBlock());
  gpu::AwaitLaunchOp::create(b, loc);
  if (releases)
    gpu::ReleaseLaunchOp::create(b, loc);
  b.setInsertionPointAfter(branch);
  if (releases)
    gpu::ReleaseLaunchOp::create(b, loc);
  gpu::awaitInFirstBlock(b, loc, tile::StageFields(stage).getGrid().size());
}

void AwaitStages::order(func::FuncOp stage, bool isEarly, bool releases,
                        bool isFollowed, const DenseSet<StringAttr> &written) {
  const bool hasRelease =
      stage->walk([](gpu::ReleaseLaunchOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  releases &= !hasRelease;
  OpBuilder b(getFirstUse(stage));
  if (tile::StageFields(stage).getFollows()) {
    // What it reads it awaits by signals; who comes next waits for it alone.
    OpBuilder end(stage.getBody().front().getTerminator());
    if (isEarly)
      gpu::awaitInFirstBlock(end, stage.getLoc(),
                             tile::StageFields(stage).getGrid().size());
    numAwaits += isEarly;
    isEarly = false;
  }
  if (isEarly) {
    tile::StageFields(stage).setAwaitsStage();
    scf::IfOp branch = getOnlyBranch(stage);
    // A release stands behind a wait. Recurrences of whole heads have no
    // registers left in their loops: with waits in roles they spill more there.
    // With copies ahead it was not measured.
    const bool canBeInRoles = (!releases || isFollowed) && !hasRelease &&
                              !gpu::KernelFields(stage).getKeepLoops() &&
                              !tile::StageFields(stage).getCopiesAhead();
    if (branch) {
      awaitIn(branch, stage, releases);
      releases = false;
    } else if (!canBeInRoles || !RoleAwaits(written).place(stage)) {
      gpu::AwaitLaunchOp::create(b, stage.getLoc());
    } else if (releases) {
      releaseInRoles(stage);
      releases = false;
    }
    ++numAwaits;
  }
  if (releases)
    gpu::ReleaseLaunchOp::create(b, stage.getLoc());
}

void AwaitStages::runOnOperation() {
  llvm::MapVector<StringAttr, SmallVector<func::FuncOp>> entries;
  for (auto stage : getOperation().getOps<func::FuncOp>())
    if (StringAttr entry = tile::StageFields(stage).getStageOf())
      entries[entry].push_back(stage);
  for (auto &[entry, stages] : entries) {
    for (func::FuncOp stage : stages) {
      bool isEarly = true, releases = true, isFollowed = true,
           isBesideRoles = false;
      DenseSet<StringAttr> written;
      for (StringAttr variant : tile::StageFields(stage).getVariants()) {
        SmallVector<func::FuncOp> all = llvm::filter_to_vector(
            stages, [&, variant = variant](func::FuncOp other) {
              return llvm::is_contained(tile::StageFields(other).getVariants(),
                                        variant);
            });
        auto at = [&](size_t i) {
          return i < all.size() ? all[i] : func::FuncOp();
        };
        size_t own = llvm::find(all, stage) - all.begin();
        for (func::FuncOp ahead : ArrayRef(all).take_front(own))
          addWritten(ahead, written);
        isEarly &= own != 0 && mayBeginEarly(stage, at(own + 1));
        releases &= at(own + 1) && mayBeginEarly(at(own + 1), at(own + 2));
        isFollowed &=
            at(own + 1) && tile::StageFields(at(own + 1)).getFollows();
        isBesideRoles |= llvm::any_of(all, hasRoles);
      }
      if (isBesideRoles)
        order(stage, isEarly, releases, isFollowed, written);
    }
  }
}
