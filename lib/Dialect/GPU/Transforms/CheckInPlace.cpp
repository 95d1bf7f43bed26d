// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles that several roles have at the same time and one of them changes: who
// uses the same part goes behind a channel.
#include "CheckOrder.h"
#include "SharedAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace gdn;

using gdn::gpu::CommitOp;
using gdn::gpu::ReceiveOp;

namespace {

/// An op that uses a tile that its role has received.
struct Use {
  ReceiveOp receive;
  Operation *op;
  bool writes;

  /// `op`, or what it is in, in the block of the receive.
  Operation *getTurn() const {
    return receive->getBlock()->findAncestorOpInBlock(*op);
  }
};

} // namespace

static void collectUses(ReceiveOp receive, Value tile,
                        SmallVectorImpl<Use> &uses) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    if (auto reshape = dyn_cast<gdn::gpu::ReshapeOp>(user)) {
      collectUses(receive, reshape.getResult(), uses);
      continue;
    }
    SmallVector<MemoryEffects::EffectInstance> effects;
    if (auto interface = dyn_cast<MemoryEffectOpInterface>(user))
      interface.getEffectsOnValue(use.get(), effects);
    const bool writes = llvm::any_of(effects, [](const auto &effect) {
      return isa<MemoryEffects::Write>(effect.getEffect());
    });
    uses.push_back({receive, user, writes});
  }
}

/// Steps on a chunk that are made for running beside each other.
static bool haveOwnParts(Operation *op, Operation *other) {
  auto isPair = [](Operation *between, Operation *inverses) {
    return isa<gdn::gpu::DecayBetweenOp>(between) &&
           isa<gdn::gpu::BlockInversesOp>(inverses);
  };
  return isPair(op, other) || isPair(other, op);
}

/// Whether the role of `first` commits a tile behind it that the role of
/// `second` receives ahead, both in the turn in which they have the shared one.
static bool isOrdered(const Use &first, const Use &second) {
  Operation *before = first.getTurn(), *behind = second.getTurn();
  if (!before || !behind)
    return false;
  for (Operation &op : *first.receive->getBlock()) {
    auto commit = dyn_cast<CommitOp>(op);
    if (!commit || !before->isBeforeInBlock(commit))
      continue;
    if (llvm::any_of(commit.getChannel().getUsers(), [&](Operation *user) {
          return isa<ReceiveOp>(user) &&
                 user->getBlock() == second.receive->getBlock() &&
                 second.receive->isBeforeInBlock(user) &&
                 user->isBeforeInBlock(behind);
        }))
      return true;
  }
  return false;
}

/// channel_c9
static LogicalResult checkChannel(gdn::gpu::ChannelOp channel) {
  SmallVector<Use> uses;
  for (Operation *user : channel->getUsers())
    if (auto receive = dyn_cast<ReceiveOp>(user))
      collectUses(receive, receive.getResult(), uses);
  for (const Use &use : uses)
    for (const Use &other : uses) {
      if (!other.writes ||
          gdn::gpu::getRole(use.op) == gdn::gpu::getRole(other.op) ||
          haveOwnParts(use.op, other.op) || isOrdered(other, use) ||
          isOrdered(use, other))
        continue;
      InFlightDiagnostic diag = use.op->emitOpError(
          "expects a gdn_gpu.channel between it and the role that has received "
          "the same tile and writes it");
      diag.attachNote(other.op->getLoc()) << "written here";
      return diag;
    }
  return success();
}

/// Inverses in a role: what they are of comes from another one.
static LogicalResult checkOrigins(FunctionOpInterface function) {
  WalkResult walk = function->walk([](Operation *op) {
    // block_inverses_c4, join_inverses_c3
    if (!isa<gdn::gpu::BlockInversesOp, gdn::gpu::JoinInversesOp>(op) ||
        !gdn::gpu::getRole(op))
      return WalkResult::advance();
    for (Value operand : op->getOperands())
      if (isa<gdn::gpu::SharedType>(operand.getType()) &&
          getSharedTile(operand).getDefiningOp<gdn::gpu::AllocOp>()) {
        op->emitOpError("expects tiles of channels inside a role of "
                        "gdn_gpu.roles, but got one of gdn_gpu.alloc");
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult gdn::checkInPlace(FunctionOpInterface function) {
  for (auto channel : function.getFunctionBody().getOps<gdn::gpu::ChannelOp>())
    if (failed(checkChannel(channel)))
      return failure();
  return checkOrigins(function);
}
