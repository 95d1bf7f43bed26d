// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of roles, units and channels; (Cn) are the constraints that
// GPURoleOps.td and GPUChannelOps.td list. The order of ops on a channel is a
// matter of the whole function: gdn-gpu-check.
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gdn::gpu;

WarpsOp gdn::gpu::getRole(Operation *op) {
  auto warps = op->getParentOfType<WarpsOp>();
  while (warps && !isa_and_nonnull<RolesOp>(warps->getParentOp()))
    warps = warps->getParentOfType<WarpsOp>();
  return warps;
}

bool gdn::gpu::isInSomeWarps(Operation *op) {
  auto warps = op->getParentOfType<WarpsOp>();
  return warps && !isa_and_nonnull<RolesOp>(warps->getParentOp());
}

LogicalResult gdn::gpu::verifyOutsideWarps(Operation *op) {
  if (isInSomeWarps(op))
    return op->emitOpError("expects to be outside gdn_gpu.warps, which only "
                           "some warps enter");
  if (op->getParentOfType<EachWarpOp>())
    return op->emitOpError(
        "expects to be outside gdn_gpu.each_warp, where each "
        "warp goes its own way");
  return success();
}

std::optional<int64_t> gdn::gpu::countWarps(Operation *op) {
  if (WarpsOp role = getRole(op)) {
    IntegerAttr count = role.getCountAttr();
    return count ? std::optional(count.getInt()) : std::nullopt;
  }
  auto function = op->getParentOfType<FunctionOpInterface>();
  const int64_t threads = KernelFields(function).getThreads();
  return threads != 0 ? std::optional(threads / warpThreads) : std::nullopt;
}

LogicalResult RolesOp::verifyRegions() {
  // roles_c1
  Operation *around = (*this)->getParentOp();
  auto function = dyn_cast_or_null<FunctionOpInterface>(around);
  if (!function)
    return emitOpError("expects to be directly in a function, but is in '")
           << (around ? around->getName().getStringRef() : "nothing") << "'";
  for (auto other : function.getFunctionBody().getOps<RolesOp>())
    if (other != *this)
      return emitOpError(
          "expects to be the only gdn_gpu.roles of its function");
  // roles_c2
  DenseSet<uint64_t> taken;
  for (Operation &op : getBody().front()) {
    auto role = dyn_cast<WarpsOp>(op);
    if (!role)
      return op.emitOpError("expects to be in a gdn_gpu.warps: a gdn_gpu.roles "
                            "has nothing else");
    if (role.getNumResults() != 0)
      return role.emitOpError("expects no results of a role, but got ")
             << role.getNumResults();
    for (uint64_t i = 0; i < role.getCount(); ++i)
      if (!taken.insert(role.getFirst() + i).second)
        return role.emitOpError("expects warps that no other role has, but got "
                                "warp ")
               << role.getFirst() + i << " again";
  }
  // roles_c3
  for (auto role : getBody().getOps<WarpsOp>()) {
    if (!role.getRegisters() || role.getCount() % groupWarps == 0)
      continue;
    const uint64_t group = role.getFirst() / groupWarps;
    uint64_t together = 0;
    for (auto other : getBody().getOps<WarpsOp>())
      if (other.getFirst() / groupWarps == group &&
          other.getRegisters() == role.getRegisters())
        together += other.getCount();
    if (together != groupWarps)
      return role.emitOpError("expects roles of as many registers on the other "
                              "warps of its group of four");
  }
  // roles_c6
  const KernelFields fields(function);
  const int64_t warps = fields.getThreads() / warpThreads;
  const bool areGiven =
      llvm::all_of(getBody().getOps<WarpsOp>(), [](WarpsOp role) {
        return role.getRegisters().has_value();
      });
  if (warps == 0 || !areGiven)
    return success();
  const int64_t ofWarp = multiprocessorRegisters / warpThreads / warps /
                         std::max<int64_t>(1, fields.getMinBlocks());
  int64_t wanted = 0;
  for (auto role : getBody().getOps<WarpsOp>())
    wanted += int64_t(role.getCount() * *role.getRegisters());
  const int64_t given = std::min<int64_t>(ofWarp / 8 * 8, 256) * warps;
  if (wanted > given)
    return emitOpError("expects roles of at most ")
           << given * warpThreads
           << " registers together, those that the block begins with, but got "
           << wanted * warpThreads;
  return success();
}

LogicalResult UnitsOp::verifyRegions() {
  // units_c1
  if (!getRole(*this) || (*this)->getParentOfType<UnitsOp>())
    return emitOpError(
        "expects to be inside a role of gdn_gpu.roles, and in no "
        "other gdn_gpu.units");
  // units_c2
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  if (KernelFields(function).getBlocksPerSm() < 1)
    return emitOpError("expects a function with 'blocks_per_sm' of "
                       "'gdn_gpu.kernel' of at least 1 around it");
  // units_c3
  auto given = dyn_cast_or_null<YieldOp>(
      getBody().front().empty() ? nullptr : &getBody().front().back());
  const bool givesNext = given && given.getNumOperands() == 1 &&
                         given.getOperand(0).getType().isIndex();
  if (getTaken() ? !givesNext || getContiguous() : bool(given))
    return emitOpError("expects a gdn_gpu.yield of the next unit, an index, at "
                       "its end where it is taken, and only there, and units "
                       "that are not contiguous then");
  return success();
}

LogicalResult TakeUnitOp::verify() {
  // take_unit_c1
  auto units = dyn_cast<UnitsOp>((*this)->getParentOp());
  WarpsOp role = getRole(*this);
  IntegerAttr warps = role ? role.getCountAttr() : IntegerAttr();
  if (!units || !units.getTaken() || !warps || warps.getInt() != 1)
    return emitOpError("expects to be in the body of a gdn_gpu.units that is "
                       "taken, of a role of one warp");
  // take_unit_c2
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  ArrayAttr counters = KernelFields(function).getCounters();
  if (!counters || counters.size() != 1)
    return emitOpError("expects a function with one of 'counters' of "
                       "'gdn_gpu.kernel' around it");
  return success();
}

/// (C8) of channel.
static LogicalResult verifyMemory(ChannelOp channel) {
  auto memory = channel.getMemory().getDefiningOp<ChannelOp>();
  if (!memory || memory.getMemory())
    return channel.emitOpError("expects to be of a gdn_gpu.channel that has "
                               "memory of its own");
  ChannelType type = channel.getChannel().getType(),
              other = channel.getMemory().getType();
  if (type.getShape() != other.getShape() ||
      type.getDepth() != other.getDepth() || type.getParts() != 1 ||
      other.getParts() != 1 || type.getSwizzled() != other.getSwizzled() ||
      type.getTileBytes() != other.getTileBytes())
    return channel.emitOpError("expects the shape, depth and bytes of the "
                               "channel that it is of, and no parts, but got ")
           << type << " of " << other;
  for (ChannelOp each : {channel, memory}) {
    bool isAlternate = llvm::any_of(each->getUsers(), [](Operation *user) {
      WarpsOp role = getRole(user);
      return role && role.getAlternate();
    });
    if (each.getPaired() || each.getExchanged() || isAlternate)
      return channel.emitOpError("expects no pairs of blocks where a channel "
                                 "is of another one");
  }
  Value leader;
  if (auto own = channel.getLeader())
    if (auto leading = own.getDefiningOp<ChannelOp>())
      leader = leading.getMemory();
  if (leader != memory.getLeader())
    return channel.emitOpError("expects a leader, of the leader of the channel "
                               "that it is of, if and only if that has one");
  bool isFilled = channel.getLeader() != nullptr;
  for (Operation *user : channel->getUsers()) {
    if (isa<AcquireOp, CommitOp>(user))
      return user->emitOpError("expects a channel with memory of its own");
    // Users are verified behind: one may lack operands.
    if (auto handOn = dyn_cast<HandOnOp>(user))
      isFilled |= handOn->getNumOperands() == 2 &&
                  handOn.getTo() == channel.getChannel();
  }
  return isFilled ? success()
                  : channel.emitOpError("expects a gdn_gpu.hand_on to it");
}

LogicalResult HandOnOp::verify() {
  // hand_on_c1
  auto from = getFrom().getDefiningOp<ChannelOp>(),
       to = getTo().getDefiningOp<ChannelOp>();
  if (!from || !to || !to.getMemory() || from.getLeader() || to.getLeader() ||
      from == to ||
      to.getMemory() != (from.getMemory() ? from.getMemory() : getFrom()))
    return emitOpError("expects channels of the same memory, without leaders");
  if (!from->isBeforeInBlock(to))
    return emitOpError("expects the channel that it hands tiles on to behind "
                       "the other one");
  return success();
}

LogicalResult ChannelOp::verify() {
  // channel_c1
  if (failed(verifyDirectlyInFunction(*this)))
    return failure();
  // channel_c7
  ChannelType own = getChannel().getType();
  if (getExchanged()) {
    bool isAlternate = llvm::any_of((*this)->getUsers(), [](Operation *user) {
      WarpsOp role = getRole(user);
      return role && role.getAlternate();
    });
    if (own.getDepth() < 2 || own.getParts() != 1 || own.getSwizzled() ||
        own.getShape().size() != 2 || own.getShape()[0] != 2 ||
        own.getTileBytes() % 32 != 0 || getLeader() || getPaired() ||
        isAlternate)
      return emitOpError("expects two rows of a multiple of 16 bytes, a depth "
                         "of at least 2, and neither leader, parts, swizzle "
                         "nor alternate roles where it is exchanged, but got ")
             << own;
  }
  // channel_c6
  bool isShared = getPaired(), isReceived = false, isReceivedByAll = false;
  for (Operation *user : (*this)->getUsers()) {
    WarpsOp role = getRole(user);
    if (!role)
      continue;
    isShared |= role.getAlternate();
    if (isa<ReceiveOp>(user)) {
      isReceived = true;
      isReceivedByAll |= !role.getAlternate();
    }
    auto acquire = dyn_cast<AcquireOp>(user);
    if (acquire && role.getAlternate() != getPaired())
      return emitOpError("expects to be paired if, and only if, the role that "
                         "fills it is alternate");
    if (acquire && getPaired() &&
        llvm::any_of(acquire->getUsers(), llvm::IsaPred<CopyOp, BeginCopyOp>))
      return emitOpError("expects to be filled by threads where it is paired, "
                         "not by copies");
  }
  if (isShared && isReceived && !isReceivedByAll && !getLeader())
    return emitOpError("expects a role that receives each of its tiles beside "
                       "those that are alternate");
  if (isShared && (getChannel().getType().getDepth() % 2 != 0 ||
                   getChannel().getType().getParts() != 1))
    return emitOpError("expects an even depth and no parts where roles are "
                       "alternate, but got ")
           << getChannel().getType();
  // channel_c8
  if (getMemory() && failed(verifyMemory(*this)))
    return failure();
  // channel_c5
  if (!getLeader())
    return success();
  auto leader = getLeader().getDefiningOp<ChannelOp>();
  if (!leader || leader.getLeader())
    return emitOpError("expects its leader to be a gdn_gpu.channel that has "
                       "none");
  if (leader.getPaired() != getPaired())
    return emitOpError("expects its leader to be paired as well, or neither");
  ChannelType type = getChannel().getType(), other = getLeader().getType();
  if (type.getDepth() != other.getDepth() || type.getParts() != 1 ||
      other.getParts() != 1)
    return emitOpError("expects the depth of its leader, and no parts, but "
                       "got ")
           << type << " beside " << other;
  return success();
}

/// (C1) of acquire and receive, and of what commit gives.
static LogicalResult verifyTileOf(Operation *op, ChannelType channel,
                                  SharedType tile) {
  if (tile.getElementType() == channel.getElementType() &&
      ShapedType::getNumElements(tile.getShape()) ==
          ShapedType::getNumElements(channel.getShape()))
    return success();
  return op->emitOpError("expects a tile of the element type and size of ")
         << channel.getTile() << ", but got " << tile;
}

LogicalResult AcquireOp::verify() {
  return verifyTileOf(*this, getChannel().getType(), getTile().getType());
}
LogicalResult CommitOp::verify() {
  return getTile()
             ? verifyTileOf(*this, getChannel().getType(), getTile().getType())
             : success();
}
LogicalResult ReceiveOp::verify() {
  // receive_c3
  ChannelType channel = getChannel().getType();
  WarpsOp role = getRole(*this);
  bool isAlternate = role && role.getAlternate();
  if (getAhead() &&
      (channel.getParts() > 1 || channel.getDepth() < (isAlternate ? 4 : 2)))
    return emitOpError("expects a channel of at least ")
           << (isAlternate ? "four" : "two")
           << " ring stages and no parts to receive ahead from, but got "
           << channel;
  return verifyTileOf(*this, channel, getTile().getType());
}
