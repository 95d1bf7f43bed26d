// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of ops on channels. Tiles are SSA values, so what is left to see is
// that acquire and commit, receive and release take turns, that a tile is used
// between the two and in the right direction, and who is on which side.
#include "CheckChannels.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

namespace {

/// One channel of a function.
class ChannelCheck {
public:
  explicit ChannelCheck(gdn::gpu::ChannelOp channel) : channel(channel) {}
  LogicalResult run();

private:
  LogicalResult collect();
  Operation *getRelease(gdn::gpu::ReceiveOp receive);
  LogicalResult checkPair(Operation *begin);
  LogicalResult checkEnd(Operation *end);
  LogicalResult checkUse(Operation *begin, Operation *end, OpOperand &use);
  LogicalResult checkPart(Operation *use);
  LogicalResult checkExchange(Operation *receive);
  LogicalResult checkCopies();
  LogicalResult checkReads(Value tile, Operation *end);
  enum class Turn { acquire, commit, unknown };
  LogicalResult checkTurns(Region &region, Turn &turn);
  LogicalResult checkLeader(Operation *op);
  bool isMemoryCopied();
  /// Whether `op` hands tiles on to the channel.
  bool isTo(Operation *op) {
    auto handOn = dyn_cast<gdn::gpu::HandOnOp>(op);
    return handOn && handOn.getTo() == channel.getChannel();
  }

  gdn::gpu::ChannelOp channel;
  SmallVector<Operation *> begins, ends; // of either side
  gdn::gpu::WarpsOp filler;
  // Some op that fills it.
  Operation *store = nullptr, *copy = nullptr, *box = nullptr;
};

} // namespace

static bool fills(Operation *op) {
  return isa<gdn::gpu::AcquireOp, gdn::gpu::CommitOp>(op);
}
static bool begins(Operation *op) {
  return isa<gdn::gpu::AcquireOp, gdn::gpu::ReceiveOp>(op);
}

/// (C2) of channel: who is on which side.
LogicalResult ChannelCheck::collect() {
  bool isEmptied = false;
  for (Operation *user : channel->getUsers()) {
    if (isa<gdn::gpu::ChannelOp>(user))
      continue; // led by this one
    if (!gdn::gpu::getRole(user))
      return user->emitOpError("expects to be inside a role of gdn_gpu.roles");
    if (isTo(user))
      continue;
    (::begins(user) ? begins : ends).push_back(user);
    isEmptied |= isa<gdn::gpu::ReceiveOp>(user);
  }
  for (Operation *op : begins) {
    if (!fills(op))
      continue;
    if (filler && filler != gdn::gpu::getRole(op)) {
      InFlightDiagnostic diag =
          op->emitOpError("expects one role to fill the channel");
      diag.attachNote(filler.getLoc()) << "other role that fills it";
      return diag;
    }
    filler = gdn::gpu::getRole(op);
  }
  if ((!filler && !channel.getMemory()) || (!isEmptied && !channel.getLeader()))
    return channel.emitOpError("expects a role that fills the channel and one "
                               "that empties it");
  const bool isExchanged = channel.getExchanged();
  for (Operation *op : begins)
    if (!fills(op) && (gdn::gpu::getRole(op) == filler) != isExchanged)
      return op->emitOpError("expects ")
             << (isExchanged ? "the" : "another")
             << " role to empty the channel "
             << (isExchanged ? "that" : "than the one that") << " fills it";
  return success();
}

/// Of an exchanged channel, a tile is given and taken in one go.
LogicalResult ChannelCheck::checkExchange(Operation *receive) {
  Operation *before = receive;
  do
    before = before->getPrevNode();
  while (before &&
         !llvm::is_contained(before->getOperands(), channel.getChannel()));
  return isa_and_nonnull<gdn::gpu::CommitOp>(before)
             ? success()
             : receive->emitOpError("expects to stand right behind the "
                                    "gdn_gpu.commit of the channel, which is "
                                    "exchanged");
}

/// The next or last op in the block that is of the same side of the channel.
static Operation *getNeighbour(Operation *op, Value channel, bool next) {
  Operation *at = op;
  while ((at = next ? at->getNextNode() : at->getPrevNode())) {
    bool isInside = false;
    at->walk([&](Operation *inner) {
      auto handOn = dyn_cast<gdn::gpu::HandOnOp>(inner);
      if (handOn && handOn.getTo() == channel) // what is of another role
        return;
      isInside |= llvm::is_contained(inner->getOperands(), channel) &&
                  fills(inner) == fills(op);
    });
    if (isInside)
      return at;
  }
  return nullptr;
}

/// Where parts go their own ways, each warp reads its own.
LogicalResult ChannelCheck::checkPart(Operation *use) {
  gdn::gpu::ChannelType type = channel.getChannel().getType();
  if (type.getParts() == 1)
    return success();
  auto load = dyn_cast<gdn::gpu::LoadSharedOp>(use);
  auto rows =
      load ? dyn_cast<gdn::gpu::RowsAttr>(load.getTile().getType().getLayout())
           : gdn::gpu::RowsAttr();
  // channel_c3
  if (!rows || rows.getCyclic() || load.getRow() ||
      rows.getWarps() != type.getParts() ||
      rows.getLocalRows(type.getShape()[0]) * rows.getGroups() *
              rows.getWarps() !=
          type.getShape()[0] ||
      load.getTile().getType().getShape() != type.getShape())
    return use->emitOpError(
               "expects a gdn_gpu.load_shared of the whole tile with a "
               "part in each warp, since the channel is in ")
           << type.getParts() << " parts";
  return success();
}

/// Whether the op reads the operand and does not write it.
static bool readsOnly(OpOperand &use) {
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto interface = dyn_cast<MemoryEffectOpInterface>(use.getOwner()))
    interface.getEffectsOnValue(use.get(), effects);
  return llvm::all_of(effects, [](const auto &effect) {
    return isa<MemoryEffects::Read>(effect.getEffect());
  });
}

/// The tile is used in its direction, and where the role has it: in the block
/// of `begin`, before `end` if that is there.
LogicalResult ChannelCheck::checkUse(Operation *begin, Operation *end,
                                     OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto reshape = dyn_cast<gdn::gpu::ReshapeOp>(user)) {
    for (OpOperand &inner : reshape->getUses())
      if (failed(checkUse(begin, end, inner)))
        return failure();
    return success();
  }
  bool isFilling = fills(begin);
  // A chunk by roles: it is changed in place.
  const bool changes =
      isa<gdn::gpu::DecayWithinOp, gdn::gpu::DecayBetweenOp,
          gdn::gpu::BlockInversesOp, gdn::gpu::JoinInversesOp>(user);
  bool reads = isa<gdn::gpu::LoadSharedOp, gdn::gpu::LoadSharedElementOp,
                   gdn::gpu::MatmulOp, gdn::gpu::StartMatmulOp>(user);
  // What is to be filled may serve as scratch before.
  bool fits =
      reads ||
      (changes && (isFilling || isa_and_nonnull<gdn::gpu::HandOnOp>(end) ||
                   readsOnly(use))) ||
      (isFilling &&
       isa<gdn::gpu::StoreSharedOp, gdn::gpu::CopyOp, gdn::gpu::BeginCopyOp>(
           user));
  if (!fits)
    return user->emitOpError("expects ")
           << (isFilling ? "to write a tile that was acquired"
                         : "to read a tile that was received")
           << ", by "
           << (isFilling
                   ? "gdn_gpu.store_shared, gdn_gpu.begin_copy or gdn_gpu.copy"
                   : "gdn_gpu.load_shared, gdn_gpu.load_shared_element or a "
                     "product");
  SmallVector<Operation *, 2> users = {user};
  if (auto start = dyn_cast<gdn::gpu::StartMatmulOp>(user))
    users.push_back(*start.getResult().user_begin());
  for (Operation *op : users) {
    Operation *at = begin->getBlock()->findAncestorOpInBlock(*op);
    if (!at || (end && !at->isBeforeInBlock(end))) {
      InFlightDiagnostic diag =
          op->emitOpError("expects a tile that has not been given up");
      diag.attachNote((end ? end : begin)->getLoc())
          << (end ? "given up here" : "taken here");
      return diag;
    }
  }
  if (isa<gdn::gpu::StoreSharedOp, gdn::gpu::BeginCopyOp>(user))
    store = user;
  if (auto begin = dyn_cast<gdn::gpu::BeginCopyOp>(user);
      begin && begin.getTensorMap())
    box = user;
  if (isa<gdn::gpu::CopyOp>(user)) {
    // copy_c5
    if (copy && copy->getBlock() == user->getBlock() &&
        copy->getOperands().back() == use.get())
      return user->emitOpError(
          "expects to be the only gdn_gpu.copy of its tile");
    if (user->getBlock() != begin->getBlock())
      return user->emitOpError("expects to be in the block of the "
                               "gdn_gpu.acquire of its tile");
    copy = user;
  }
  return isFilling ? success() : checkPart(user);
}

static bool isAhead(Operation *op) {
  auto receive = dyn_cast_or_null<gdn::gpu::ReceiveOp>(op);
  return receive && receive.getAhead();
}

/// The op that gives back what `receive` takes.
Operation *ChannelCheck::getRelease(gdn::gpu::ReceiveOp receive) {
  auto next = [&](Operation *op) {
    return op ? getNeighbour(op, channel.getChannel(), /*next=*/true) : op;
  };
  Operation *end = next(receive);
  if (isAhead(end) ||
      (isAhead(receive) && isa_and_nonnull<gdn::gpu::ReleaseOp>(end)))
    end = next(end);
  if (channel.getLeader()) { // which may be handed on
    auto handOn = dyn_cast_or_null<gdn::gpu::HandOnOp>(
        getNeighbour(receive, channel.getLeader(), /*next=*/true));
    if (handOn && (!end || handOn->isBeforeInBlock(end)))
      end = handOn;
  }
  return isa_and_nonnull<gdn::gpu::ReleaseOp, gdn::gpu::HandOnOp>(end)
             ? end
             : nullptr;
}

LogicalResult ChannelCheck::checkPair(Operation *begin) {
  Operation *end = getNeighbour(begin, channel.getChannel(), /*next=*/true);
  if (auto receive = dyn_cast<gdn::gpu::ReceiveOp>(begin)) {
    Operation *before =
        getNeighbour(begin, channel.getChannel(), /*next=*/false);
    // receive_c3
    if (receive.getAhead() &&
        (!isa_and_nonnull<gdn::gpu::ReceiveOp>(before) || isAhead(before)))
      return begin->emitOpError("expects to stand right behind a "
                                "gdn_gpu.receive of the channel that is not "
                                "ahead");
    // receive_c2
    end = getRelease(receive);
    if (!end)
      return begin->emitOpError("expects a gdn_gpu.release of the channel "
                                "behind it in the same block");
  }
  for (OpOperand &use : begin->getResult(0).getUses())
    if (failed(checkUse(begin, end, use)))
      return failure();
  if (isa<gdn::gpu::ReceiveOp>(begin) && channel.getExchanged() &&
      failed(checkExchange(begin)))
    return failure();
  if (isa<gdn::gpu::ReceiveOp>(begin)) {
    gdn::gpu::ChannelType type = channel.getChannel().getType();
    gdn::gpu::WarpsOp role = gdn::gpu::getRole(begin);
    // channel_c3
    if (type.getParts() > 1 && int64_t(role.getCount()) != type.getParts())
      return begin->emitOpError(
                 "expects a role of as many warps as the channel "
                 "has parts, which are ")
             << type.getParts() << ", but got " << role.getCount();
  }
  return success();
}

LogicalResult ChannelCheck::checkEnd(Operation *end) {
  if (isa<gdn::gpu::CommitOp>(end))
    return success(); // checkTurns
  // release_c1
  Operation *begin = getNeighbour(end, channel.getChannel(), /*next=*/false);
  if (isa_and_nonnull<gdn::gpu::ReleaseOp>(begin) &&
      isAhead(getNeighbour(begin, channel.getChannel(), /*next=*/false)))
    return success();
  if (begin && ::begins(begin))
    return success();
  return end->emitOpError("expects a gdn_gpu.receive of the channel before it "
                          "in the same block");
}

/// acquire_c2, commit_c1: by turns on every way. `turn` is that of `region`
/// before and behind.
LogicalResult ChannelCheck::checkTurns(Region &region, Turn &turn) {
  for (Operation &op : region.getOps()) {
    bool isOurs = llvm::is_contained(op.getOperands(), channel.getChannel());
    if (isOurs && isa<gdn::gpu::AcquireOp>(op)) {
      if (turn != Turn::acquire)
        return op.emitOpError("expects a gdn_gpu.commit of the channel on "
                              "every way from the gdn_gpu.acquire before it");
      turn = Turn::commit;
    } else if (isOurs && isa<gdn::gpu::CommitOp>(op)) {
      if (turn != Turn::commit)
        return op.emitOpError("expects a gdn_gpu.acquire of the channel on "
                              "every way before it");
      turn = Turn::acquire;
    }
    const Turn before = turn;
    bool isLoop = isa<scf::ForOp, scf::WhileOp, gdn::gpu::UnitsOp>(op);
    if (op.getNumRegions() == 0 || gdn::gpu::hasArithmetic(&op))
      continue;
    std::optional<Turn> after;
    if (isLoop)
      after = before;
    for (Region &inner : op.getRegions()) {
      Turn inside = before;
      if (failed(checkTurns(inner, inside)))
        return failure();
      if (isLoop && inside != before)
        return op.emitOpError("expects as many gdn_gpu.acquire as "
                              "gdn_gpu.commit of a channel in a turn");
      after = !after || *after == inside ? inside : Turn::unknown;
    }
    turn = *after;
  }
  return success();
}

/// channel's leader: its turn is around that of the others.
LogicalResult ChannelCheck::checkLeader(Operation *op) {
  Value leader = channel.getLeader();
  Operation *before = getNeighbour(op, leader, /*next=*/false);
  Operation *after = getNeighbour(op, leader, /*next=*/true);
  const bool isBehind = before && ::begins(before);
  const bool isAhead = after && !::begins(after);
  if (isBehind || (isAhead && !(before && ::begins(op))))
    return success();
  return op->emitOpError("expects to be behind the ")
         << (fills(op) ? "gdn_gpu.acquire" : "gdn_gpu.receive")
         << " of the channel's leader and before its "
         << (fills(op) ? "gdn_gpu.commit" : "gdn_gpu.release");
}

/// What fills a channel is either all of its tiles' rows by copies, whose bytes
/// are counted, or warps that arrive.
LogicalResult ChannelCheck::checkCopies() {
  if (copy && store)
    return store->emitOpError("expects a channel that gdn_gpu.copy does not "
                              "fill");
  if (copy && filler.getCount() != 1)
    return copy->emitOpError(
               "expects to be inside a role of one warp, but got ")
           << filler.getCount();
  for (Operation *op : begins)
    if (copy && fills(op) && op->getResult(0).use_empty())
      return op->emitOpError("expects a gdn_gpu.copy of the tile, since copies "
                             "fill the channel");
  if (!copy && channel.getChannel().getType().getParts() > 1)
    return channel.emitOpError("expects gdn_gpu.copy to fill a channel in "
                               "parts");
  return success();
}

/// release_c2: of what was loaded of `tile` something has been used. A load
/// alone may still be under way when the next copy writes the buffer.
LogicalResult ChannelCheck::checkReads(Value tile, Operation *end) {
  for (Operation *user : tile.getUsers()) {
    if (auto reshape = dyn_cast<gdn::gpu::ReshapeOp>(user)) {
      if (failed(checkReads(reshape.getResult(), end)))
        return failure();
      continue;
    }
    if (!isa<gdn::gpu::LoadSharedOp, gdn::gpu::LoadSharedElementOp>(user) ||
        user->use_empty())
      continue;
    bool isUsed = llvm::any_of(user->getUsers(), [&](Operation *of) {
      Operation *at = end->getBlock()->findAncestorOpInBlock(*of);
      return at && at->isBeforeInBlock(end);
    });
    if (isUsed)
      continue;
    InFlightDiagnostic diag =
        end->emitOpError("expects what was loaded to be used before, since ")
        << (copy ? "gdn_gpu.copy" : "gdn_gpu.begin_copy tensor_map")
        << " fills the channel";
    diag.attachNote(user->getLoc()) << "loaded here";
    return diag;
  }
  return success();
}

/// Whether copies fill the channel that this one is of.
bool ChannelCheck::isMemoryCopied() {
  if (!channel.getMemory())
    return false;
  for (Operation *user : channel.getMemory().getUsers())
    if (auto acquire = dyn_cast<gdn::gpu::AcquireOp>(user))
      for (Operation *use : acquire.getTile().getUsers()) {
        auto begin = dyn_cast<gdn::gpu::BeginCopyOp>(use);
        if (isa<gdn::gpu::CopyOp>(use) || (begin && begin.getTensorMap()))
          return true;
      }
  return false;
}

LogicalResult ChannelCheck::run() {
  if (failed(collect()))
    return failure();
  for (Operation *end : ends)
    if (failed(checkEnd(end)))
      return failure();
  for (Operation *begin : begins)
    if (failed(checkPair(begin)))
      return failure();
  // acquire_c2
  if (llvm::none_of(ends, fills))
    for (Operation *begin : begins)
      if (fills(begin))
        return begin->emitOpError(
            "expects a gdn_gpu.commit of the channel in its role");
  Turn turn = Turn::acquire;
  if (filler && failed(checkTurns(filler.getBody(), turn)))
    return failure();
  if (channel.getLeader())
    for (Operation *op : llvm::concat<Operation *>(begins, ends))
      if (failed(checkLeader(op)))
        return failure();
  if (failed(checkCopies()))
    return failure();
  for (Operation *begin : begins)
    if (auto receive = dyn_cast<gdn::gpu::ReceiveOp>(begin);
        receive && (copy || box || isMemoryCopied()))
      if (failed(checkReads(receive.getResult(), getRelease(receive))))
        return failure();
  return success();
}

LogicalResult gdn::checkChannels(FunctionOpInterface function) {
  for (auto channel : function.getFunctionBody().getOps<gdn::gpu::ChannelOp>())
    if (failed(ChannelCheck(channel).run()))
      return failure();
  // units_c4
  gdn::gpu::UnitsOp taken, dealt;
  SmallVector<Operation *> takers;
  function->walk([&](Operation *op) {
    if (auto units = dyn_cast<gdn::gpu::UnitsOp>(op))
      (units.getTaken() ? taken : dealt) = units;
    else if (isa<gdn::gpu::TakeUnitOp>(op))
      takers.push_back(op);
  });
  if (taken && (dealt || takers.size() != 1))
    return taken.emitOpError("expects all gdn_gpu.units of the function to be "
                             "taken, by one gdn_gpu.take_unit");
  // block_id_c2
  bool hasUnits = false;
  function->walk([&](gdn::gpu::UnitsOp) { hasUnits = true; });
  WalkResult walk = function->walk([&](gdn::gpu::BlockIdOp id) {
    if (!hasUnits || id->getParentOfType<gdn::gpu::UnitsOp>())
      return WalkResult::advance();
    id.emitOpError("expects to be inside a gdn_gpu.units, since the function "
                   "has some");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}
