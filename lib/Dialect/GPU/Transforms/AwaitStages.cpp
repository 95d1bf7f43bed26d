// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-await-stages: stages of a launch begin while those ahead of them end.
// See Passes.td.
#include "GlobalAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/GPU/Transforms/Passes.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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
  void order(func::FuncOp stage, bool isEarly, bool releases);
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
  return stage->walk([](gpu::EachWarpOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Whether `stage`, with `next` behind it, or null, begins before the one ahead
/// of it has ended: one in roles, or between such. One that overlaps with the
/// last one waits where it ends; and two that overlap begin behind what they
/// both read: 1 x 32,768 tokens took 1,300 us in place of 1,090 where the first
/// of them waited itself.
static bool mayBeginEarly(func::FuncOp stage, func::FuncOp next) {
  tile::StageFields fields(stage);
  return (hasRoles(stage) || (next && hasRoles(next))) && !isInPieces(stage) &&
         !fields.overlapsWith(tile::Neighbour::last) &&
         !fields.overlapsWith(tile::Neighbour::next);
}

void AwaitStages::order(func::FuncOp stage, bool isEarly, bool releases) {
  OpBuilder b(getFirstUse(stage));
  if (isEarly) {
    gpu::AwaitLaunchOp::create(b, stage.getLoc());
    ++numAwaits;
  }
  bool hasRelease =
      stage->walk([](gpu::ReleaseLaunchOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  if (releases && !hasRelease)
    gpu::ReleaseLaunchOp::create(b, stage.getLoc());
}

void AwaitStages::runOnOperation() {
  llvm::MapVector<StringAttr, SmallVector<func::FuncOp>> entries;
  for (auto stage : getOperation().getOps<func::FuncOp>())
    if (StringAttr entry = tile::StageFields(stage).getStageOf())
      entries[entry].push_back(stage);
  for (auto &[entry, stages] : entries) {
    for (func::FuncOp stage : stages) {
      bool isEarly = true, releases = true, isBesideRoles = false;
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
        isEarly &= own != 0 && mayBeginEarly(stage, at(own + 1));
        releases &= at(own + 1) && mayBeginEarly(at(own + 1), at(own + 2));
        isBesideRoles |= llvm::any_of(all, hasRoles);
      }
      if (isBesideRoles)
        order(stage, isEarly, releases);
    }
  }
}
