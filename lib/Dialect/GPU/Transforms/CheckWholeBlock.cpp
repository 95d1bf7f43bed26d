// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What holds of ops that all warps of a block or role run: layouts of
// fragments, and tiles that boxes are read from.
#include "CheckOrder.h"
#include "SharedAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

using namespace mlir;
using namespace gdn;

/// Outside gdn_gpu.warps all warps of the block run an op.
LogicalResult gdn::checkLayouts(FunctionOpInterface function) {
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
LogicalResult gdn::checkTensorMapStores(FunctionOpInterface function) {
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
