// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles run at the same time, so a shared tile that is no channel's, and that
// one of them writes, is the business of this role alone. The same holds of the
// elements of an array, as far as indices show that they are the same.
#include "CheckOrder.h"
#include "GlobalAccess.h"
#include "SharedAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace gdn;

static InFlightDiagnostic refuseOtherRole(Operation *op, Operation *other,
                                          StringRef what) {
  InFlightDiagnostic diag = op->emitOpError("expects a gdn_gpu.channel between "
                                            "its role and the other one that "
                                            "uses the ")
                            << what << ", of which one writes it";
  diag.attachNote(other->getLoc()) << "use in the other role";
  return diag;
}

namespace {

/// The ops of roles that use a tile of gdn_gpu.alloc.
struct TileUses {
  SmallVector<Operation *> ops;
  Operation *writer = nullptr;
};

} // namespace

static bool writesBuffer(Operation *op, Value buffer) {
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
    interface.getEffects(effects);
  return llvm::any_of(effects, [&](const auto &effect) {
    return isa<MemoryEffects::Write>(effect.getEffect()) &&
           (!effect.getValue() || effect.getValue() == buffer);
  });
}

/// roles_c4
static LogicalResult checkTiles(FunctionOpInterface function) {
  llvm::MapVector<Value, TileUses> tiles;
  function->walk([&](Operation *op) {
    if (!gdn::gpu::getRole(op) || isa<gdn::gpu::ReshapeOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (isa<gdn::gpu::SharedType>(operand.getType())) {
        Value tile = getSharedTile(operand);
        if (!tile.getDefiningOp<gdn::gpu::AllocOp>())
          continue;
        tiles[tile].ops.push_back(op);
        if (writesBuffer(op, operand))
          tiles[tile].writer = op;
      }
  });
  for (auto &[tile, uses] : tiles)
    for (Operation *op : uses.ops)
      if (uses.writer &&
          gdn::gpu::getRole(op) != gdn::gpu::getRole(uses.writer))
        return refuseOtherRole(op, uses.writer, "shared tile");
  return success();
}

/// roles_c5
static LogicalResult checkArrays(FunctionOpInterface function) {
  SmallVector<GlobalAccess> accesses;
  function->walk([&](Operation *op) {
    if (GlobalAccess access = GlobalAccess::get(op);
        access.op && gdn::gpu::getRole(op))
      accesses.push_back(access);
  });
  for (const GlobalAccess &write : accesses) {
    if (!write.writes)
      continue;
    for (const GlobalAccess &other : accesses)
      if (gdn::gpu::getRole(write.op) != gdn::gpu::getRole(other.op) &&
          getOverlap(write, other) == Overlap::some)
        return refuseOtherRole(other.op, write.op, "elements");
  }
  return success();
}

LogicalResult gdn::checkRoles(FunctionOpInterface function) {
  if (failed(checkTiles(function)))
    return failure();
  return checkArrays(function);
}
