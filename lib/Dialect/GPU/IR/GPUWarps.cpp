// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of gdn_gpu.warps and gdn_gpu.each_warp; (Cn) are the constraints
// that GPUOps.td lists.
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/TileChecks.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gdn::gpu;

/// True if `user` runs on the warps of `warps` alone, in an op of its kind.
template <typename OpTy>
static bool runsOnSameWarps(Operation *user, OpTy warps) {
  auto around = user->getParentOfType<OpTy>();
  return around && around.getFirstAttr() == warps.getFirstAttr() &&
         around.getCountAttr() == warps.getCountAttr();
}

/// (C1) to (C4) of both; `layoutWarps` is the number of warps of the layouts
/// inside.
template <typename OpTy>
static LogicalResult verifyWarps(OpTy op, int64_t layoutWarps) {
  // warps_c1, each_warp_c1
  for (Operation *around = op->getParentOp(); around;
       around = around->getParentOp())
    if (isa<WarpsOp, EachWarpOp>(around) &&
        !isa_and_nonnull<RolesOp>(around->getParentOp()))
      return op.emitOpError("expects to be outside other ")
             << around->getName();
  auto function = op->template getParentOfType<FunctionOpInterface>();
  std::optional<int64_t> warps = countWarps(op);
  if (KernelFields(function).getThreads() == 0 || !warps)
    return op.emitOpError(
        "expects a function with 'threads' of 'gdn_gpu.kernel' around it");
  const uint64_t last = op.getFirst() + op.getCount(); // both are below 2^63
  WarpsOp role = getRole(op);
  if (last > uint64_t(*warps))
    return op.emitOpError("expects warps below ")
           << *warps << ", "
           << (role ? "those of its role"
                    : "set by 'threads' of 'gdn_gpu.kernel' of the function")
           << ", but got warps up to " << last - 1;
  // warps_c2, each_warp_c2
  auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
  if (failed(gdn::verifyYield(yield, op.getResultTypes(),
                              "the type of its result")))
    return failure();
  // warps_c3, each_warp_c3
  for (OpResult result : op->getResults())
    for (Operation *user : result.getUsers())
      if (!runsOnSameWarps(user, op)) {
        InFlightDiagnostic diag = op.emitOpError("expects result ")
                                  << result.getResultNumber()
                                  << " to be used on the same warps only";
        diag.attachNote(user->getLoc()) << "other use";
        return diag;
      }
  // warps_c4, each_warp_c4
  WalkResult walk =
      op.getBody().template walk<WalkOrder::PreOrder>([&](Operation *inner) {
        if (isa<WarpsOp, EachWarpOp>(inner))
          return WalkResult::skip(); // sees to itself
        for (Value value :
             llvm::concat<Value>(inner->getOperands(), inner->getResults()))
          if (auto type = dyn_cast<FragmentType>(value.getType()))
            if (type.getRows().getWarps() != layoutWarps) {
              inner->emitOpError("expects fragments laid out over ")
                  << layoutWarps << " warps, set by the " << op->getName()
                  << " around it, but got " << type;
              return WalkResult::interrupt();
            }
        return WalkResult::advance();
      });
  return failure(walk.wasInterrupted());
}

/// (C7) of warps.
static LogicalResult verifyTurns(WarpsOp role) {
  const int64_t count = role.getCount(), turns = role.getInTurns();
  if (!isa_and_nonnull<RolesOp>(role->getParentOp()) || role.getAlternate() ||
      count % turns != 0)
    return role.emitOpError("expects to be a role, not alternate, of as many "
                            "warps for each of its turns");
  WalkResult walk = role.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<ChannelType>(operand.getType());
      if (!type)
        continue;
      auto each = op->getParentOfType<EachWarpOp>();
      if (!each || int64_t(each.getCount()) != count) {
        op->emitOpError("expects a role that is not in turns, or to be inside "
                        "gdn_gpu.each_warp of all its warps");
        return WalkResult::interrupt();
      }
      if (int64_t(type.getDepth()) < turns) {
        op->emitOpError("expects a channel of a depth of at least ")
            << turns << ", a place for each turn";
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult WarpsOp::verifyRegions() {
  // warps_c6
  if (getAlternate()) {
    auto function = (*this)->getParentOfType<FunctionOpInterface>();
    if (!isa_and_nonnull<RolesOp>((*this)->getParentOp()) ||
        KernelFields(function).getCluster() != 2)
      return emitOpError(
          "expects to be a role of a function with "
          "'cluster' of 'gdn_gpu.kernel' = 2 where it is alternate");
  }
  // warps_c7
  if (getInTurns() > 1 && failed(verifyTurns(*this)))
    return failure();
  // warps_c5
  if (getRegisters()) {
    int64_t registers = *getRegisters();
    bool isWhole = getFirst() % groupWarps == 0 && getCount() % groupWarps == 0;
    bool isPart = getFirst() % groupWarps + getCount() <= groupWarps;
    if (!isa_and_nonnull<RolesOp>((*this)->getParentOp()) ||
        !(isWhole || isPart))
      return emitOpError("expects 'registers' in a role of whole groups of "
                         "four warps, or of a part of one");
    if (registers < 24 || registers > 256 || registers % 8 != 0)
      return emitOpError("expects 'registers' to be a multiple of 8 from 24 "
                         "to 256, but got ")
             << registers;
  }
  return verifyWarps(*this, getCount());
}

LogicalResult EachWarpOp::verifyRegions() {
  // each_warp_c5
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 || !body.getArgument(0).getType().isIndex())
    return emitOpError("expects the body to have one argument, the number of "
                       "the warp, an index");
  return verifyWarps(*this, 1);
}
