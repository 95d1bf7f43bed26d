// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers of channels count the warps of roles that hand tiles on or release
// them, each once for each tile. So a role ends what it receives from a channel
// in one way.
#include "CheckOrder.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace gdn;

using gdn::gpu::HandOnOp;
using gdn::gpu::WarpsOp;

/// Of one channel.
static LogicalResult checkChannel(gdn::gpu::ChannelOp channel) {
  const Value value = channel.getChannel();
  llvm::SmallMapVector<WarpsOp, Operation *, 4> ends, givers;
  for (Operation *user : channel->getUsers()) {
    auto handOn = dyn_cast<HandOnOp>(user);
    if (!handOn && !isa<gdn::gpu::ReleaseOp>(user))
      continue;
    WarpsOp role = gdn::gpu::getRole(user);
    if (handOn && handOn.getTo() == value) {
      // hand_on_c4
      auto [other, isNew] = givers.try_emplace(role, user);
      if (!isNew && cast<HandOnOp>(other->second).getFrom() != handOn.getFrom())
        return handOn.emitOpError("expects a role to hand tiles on to a "
                                  "channel from one other channel alone");
      continue;
    }
    // hand_on_c3
    auto [other, isNew] = ends.try_emplace(role, user);
    auto before = dyn_cast<HandOnOp>(other->second);
    if (!isNew && (bool(before) != bool(handOn) ||
                   (handOn && before.getTo() != handOn.getTo())))
      return user->emitOpError(
          "expects a role to give all tiles of a channel back, or to hand all "
          "of them on to the same channel");
  }
  // hand_on_c5
  for (Operation *user : channel->getUsers())
    if (isa<gdn::gpu::ReceiveOp>(user) &&
        givers.contains(gdn::gpu::getRole(user)))
      return user->emitOpError("expects another role to receive what this one "
                               "hands on");
  return success();
}

LogicalResult gdn::checkHandedOn(FunctionOpInterface function) {
  for (auto channel : function.getFunctionBody().getOps<gdn::gpu::ChannelOp>())
    if (failed(checkChannel(channel)))
      return failure();
  return success();
}
