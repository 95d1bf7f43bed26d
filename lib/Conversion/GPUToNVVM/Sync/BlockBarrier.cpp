// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers of the block and of a role, and the fences that they need:
// what threads wrote to shared memory, warpgroups read by another way. A fence
// waits for all that its thread has written, to global memory too, so it stands
// where a tile of such a product was written since the barrier before.
#include "Fragments/SharedMatrix.h"
#include "Kernel/Assembly.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace gdn;

/// The tiles that `buffer` may be.
static void addTiles(Value buffer, SetVector<Value> &tiles) {
  if (auto reshape = buffer.getDefiningOp<gdn::gpu::ReshapeOp>())
    return addTiles(reshape.getBuffer(), tiles);
  // Another role has the tiles of a channel under other names.
  Operation *op = buffer.getDefiningOp();
  if (isa_and_nonnull<gdn::gpu::AcquireOp, gdn::gpu::CommitOp,
                      gdn::gpu::ReceiveOp>(op))
    buffer = op->getOperand(0);
  tiles.insert(buffer);
}

/// The tiles that products of warpgroups read.
static SetVector<Value> getOperandTiles(func::FuncOp func) {
  SetVector<Value> tiles;
  func.walk([&](Operation *op) {
    if (auto matmul = dyn_cast<gdn::gpu::MatmulOp>(op);
        matmul && matmul.getWarpgroup())
      addTiles(matmul.getRhs(), tiles);
    if (auto start = dyn_cast<gdn::gpu::StartMatmulOp>(op))
      for (Value buffer : start.getBuffers())
        addTiles(buffer, tiles);
  });
  return tiles;
}

/// The tile that `store` fills for other roles alone: the commit orders that.
static gdn::gpu::AcquireOp getCommitted(gdn::gpu::StoreSharedOp store) {
  auto acquire = store.getBuffer().getDefiningOp<gdn::gpu::AcquireOp>();
  return acquire && llvm::all_of(acquire.getTile().getUsers(),
                                 llvm::IsaPred<gdn::gpu::StoreSharedOp>)
             ? acquire
             : gdn::gpu::AcquireOp();
}

static bool isOneOf(Value buffer, const SetVector<Value> &operands) {
  SetVector<Value> tiles;
  addTiles(buffer, tiles);
  return llvm::any_of(tiles,
                      [&](Value tile) { return operands.contains(tile); });
}

/// Whether copies that `await` waits for may have written one of `operands`.
static bool copiesOperand(gdn::gpu::AwaitCopiesOp await,
                          const SetVector<Value> &operands) {
  Operation *around = gdn::gpu::getRole(await);
  if (!around)
    return true;
  return around
      ->walk([&](gdn::gpu::BeginCopyOp copy) {
        return isOneOf(copy.getBuffer(), operands) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether `op` writes one of `operands`, or has copied one.
static bool writesOperand(Operation *op, const SetVector<Value> &operands) {
  return op
      ->walk([&](Operation *inner) {
        auto await = dyn_cast<gdn::gpu::AwaitCopiesOp>(inner);
        bool writes = await && copiesOperand(await, operands);
        if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(inner);
            store && !getCommitted(store))
          writes = isOneOf(store.getBuffer(), operands);
        return writes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a tile of a product was shared for those that receive it since the
/// acquire of the channel.
static bool hasShared(gdn::gpu::CommitOp commit) {
  SetVector<Value> operands =
      getOperandTiles(commit->getParentOfType<func::FuncOp>());
  for (Operation *op = commit->getPrevNode(); op; op = op->getPrevNode()) {
    if (auto acquire = dyn_cast<gdn::gpu::AcquireOp>(op);
        acquire && acquire.getChannel() == commit.getChannel())
      return false;
    bool fills = false;
    op->walk([&](gdn::gpu::StoreSharedOp store) {
      gdn::gpu::AcquireOp filled = getCommitted(store);
      fills |= filled && operands.contains(filled.getChannel());
    });
    if (fills)
      return true;
  }
  return false;
}

/// Whether copies that count their bytes fill `channel`: no warp arrives then.
static bool isCopied(Value channel) {
  return llvm::any_of(channel.getUsers(), [](Operation *user) {
    auto acquire = dyn_cast<gdn::gpu::AcquireOp>(user);
    return acquire && llvm::any_of(acquire.getTile().getUsers(),
                                   llvm::IsaPred<gdn::gpu::CopyOp>);
  });
}

/// Whether warps arrive for what `commit` shares: a channel with a leader has
/// no barrier, and copies that count their bytes need no warp to arrive.
static bool arrives(gdn::gpu::CommitOp commit) {
  auto channel = commit.getChannel().getDefiningOp<gdn::gpu::ChannelOp>();
  return !(channel && channel.getLeader()) && !isCopied(commit.getChannel());
}

namespace {
enum class Before { fence, write, start };
} // namespace

/// Whether a tile of a channel is given within `op`.
static bool hasCommit(Operation *op) {
  return op->walk([](gdn::gpu::CommitOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// What comes last before `op`, of its block and those around it within the
/// role: a write to a tile of a product, or a fence behind it.
static Before findBefore(Operation *op, Operation *end,
                         const SetVector<Value> &operands) {
  for (;;) {
    Operation *before = op->getPrevNode();
    if (!before) {
      Operation *parent = op->getParentOp();
      if (isa<func::FuncOp>(parent) ||
          isa<gdn::gpu::RolesOp>(parent->getParentOp()))
        return Before::start;
      // The turn before, unless that is where this one came from.
      if (auto loop = dyn_cast<scf::ForOp>(parent); loop && parent != end)
        if (Before last =
                findBefore(loop.getBody()->getTerminator(), parent, operands);
            last != Before::start)
          return last;
      if (parent == end)
        return Before::start;
      op = parent;
      continue;
    }
    op = before;
    // Where they need a fence, they have one.
    auto commit = dyn_cast<gdn::gpu::CommitOp>(op);
    if (isa<gdn::gpu::BarrierOp>(op) || (commit && arrives(commit)))
      return Before::fence;
    if (writesOperand(op, operands))
      return Before::write;
    // A loop or branch may have no barrier at its end. What is committed in a
    // branch has its fence there, and it writes nothing else.
    if (isa<scf::IfOp>(op) && hasCommit(op))
      continue;
    if (op->getNumRegions() > 0 && !gdn::gpu::hasArithmetic(op) &&
        !isa<gdn::gpu::WarpsOp>(op))
      return Before::write;
  }
}

/// Whether a tile of a product may have been written between `barrier` and the
/// one before it.
static bool needsFence(Operation *barrier) {
  SetVector<Value> operands =
      getOperandTiles(barrier->getParentOfType<func::FuncOp>());
  return !operands.empty() &&
         findBefore(barrier, nullptr, operands) == Before::write;
}

/// The named barrier of gdn_gpu.arrive: the last one; roles have the first.
static constexpr int64_t arrivalsBarrier = 15;

static bool usesWarpgroups(Operation *op) {
  return gdn::gpu::KernelFields(op->getParentOfType<func::FuncOp>())
      .getWarpgroups();
}

/// One half of a barrier: the warp that waits, or the others that do not.
static void emitHalf(OpBuilder &b, Operation *op, const BlockThreads &threads) {
  Location loc = op->getLoc();
  int64_t count =
      gdn::gpu::KernelFields(op->getParentOfType<func::FuncOp>()).getThreads();
  auto of = llvm::formatv(" {0}, {1};", arrivalsBarrier, count).str();
  auto arrive = dyn_cast<gdn::gpu::ArriveOp>(op);
  if (!arrive)
    return (void)emitAssembly(b, loc, Type(), {}, "bar.sync" + of, "~{memory}",
                              /*hasSideEffects=*/true);
  Arithmetic a{b, loc};
  emitAssembly(
      b, loc, Type(), {threads.warp, a.i32(int64_t(arrive.getWarp()))},
      "{ .reg .pred other; setp.ne.s32 other, $0, $1; @other bar.arrive" + of +
          " }",
      "r,r,~{memory}", /*hasSideEffects=*/true);
}

void gdn::emitBarrier(OpBuilder &b, Operation *op,
                      const BlockThreads &threads) {
  Location loc = op->getLoc();
  if (isa<gdn::gpu::ArriveOp, gdn::gpu::AwaitArrivalsOp>(op))
    return emitHalf(b, op, threads);
  // Barriers within other ops order what they write for themselves.
  if (usesWarpgroups(op) && isa<gdn::gpu::BarrierOp>(op) && needsFence(op))
    emitAssembly(b, loc, Type(), {}, "fence.proxy.async.shared::cta;",
                 "~{memory}", /*hasSideEffects=*/true);
  if (!threads.isRole)
    return (void)NVVM::Barrier0Op::create(b, loc);
  Arithmetic a{b, loc};
  if (threads.numThreads == gpu::warpThreads)
    return (void)NVVM::SyncWarpOp::create(b, loc, a.i32(-1));
  // Barrier 0 is the block's, then come those of roles, of two warps at least.
  NVVM::BarrierOp::create(b, loc, TypeRange(), a.i32(1 + threads.firstWarp / 2),
                          a.i32(threads.numThreads),
                          NVVM::BarrierReductionAttr(), Value());
}

void gdn::emitClusterBarrier(OpBuilder &b, Location loc) {
  emitAssembly(b, loc, Type(), {},
               "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
               "~{memory}", /*hasSideEffects=*/true);
}

bool gdn::emitsFence(gdn::gpu::CommitOp commit) {
  return usesWarpgroups(commit) && (hasShared(commit) || needsFence(commit));
}
