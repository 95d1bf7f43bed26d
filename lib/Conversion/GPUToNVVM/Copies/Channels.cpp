// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who arrives how often follows from the roles: a warp that has shared into a
// tile, or loaded from it, meets and one of its threads arrives for it. A copy
// arrives once for each part, with the number of bytes that are to come. A role
// keeps its stage in a ring and the parity of the round; the filling role
// starts with the parity of a round that has ended, so that the first round of
// stages is free.
//
// What a warp has read from a tile that copies fill is ordered before the next
// copy by the barrier; such a copy reads nothing that threads write.
//
// Rings of two blocks, and bulk copies, are in ChannelCopies.cpp.
#include "Copies/Channels.h"

#include "Fragments/SharedMatrix.h"
#include "Kernel/Assembly.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t barrierBytes = 8;

Channels::Channels(func::FuncOp program, bool everyThreadArrives)
    : everyThreadArrives(everyThreadArrives) {
  for (auto channel : program.getBody().getOps<gpu::ChannelOp>())
    countRing(channel, everyThreadArrives ? gpu::warpThreads : 1);
}

/// Who arrives at the barriers of a channel: `perWarp` for each warp. Of a
/// role in turns one is there each time.
void Channels::countRing(gpu::ChannelOp channel, int64_t perWarp) {
  Ring ring;
  ring.type = channel.getChannel().getType();
  ring.leader = channel.getLeader();
  ring.memory = channel.getMemory();
  ring.isZeroed = channel.getZeroed();
  ring.isPaired = channel.getPaired();
  ring.isExchanged = channel.getExchanged();
  llvm::SetVector<Operation *> readers, changers;
  auto countWarps = [](Operation *op) {
    return cast<gpu::WarpsOp>(op).getTurnWarps();
  };
  for (Operation *user : channel->getUsers()) {
    gpu::WarpsOp role = gpu::getRole(user);
    if (auto acquire = dyn_cast<gpu::AcquireOp>(user)) {
      for (Operation *use : acquire.getTile().getUsers())
        ring.isCopied |= isa<gpu::CopyOp>(use);
      ring.filling = ring.isCopied ? 1 : countWarps(role) * perWarp;
    } else if (isa<gpu::ReleaseOp>(user)) {
      readers.insert(role);
    } else if (auto handOn = dyn_cast<gpu::HandOnOp>(user);
               handOn && handOn.getTo() == channel.getChannel()) {
      changers.insert(role);
    }
  }
  for (Operation *changer : changers)
    ring.filling += countWarps(changer) * perWarp;
  // Of a role that reads parts, one warp arrives for each.
  for (Operation *reader : readers) {
    auto role = cast<gpu::WarpsOp>(reader);
    hasAlternate |= role.getAlternate();
    int64_t arrivals =
        perWarp * (ring.type.getParts() > 1 ? 1 : countWarps(reader));
    // Of both blocks, where a role empties what both fill.
    if (ring.isPaired && !role.getAlternate())
      arrivals *= 2;
    (ring.memory ? getRing(ring.memory) : ring).emptying += arrivals;
    ring.alternate += role.getAlternate() ? arrivals : 0;
  }
  rings.insert({channel.getChannel(), ring});
}

int64_t Channels::assign(int64_t offset) {
  // What begins at larger multiples comes first.
  for (bool swizzled : {true, false})
    for (auto &[channel, ring] : rings) {
      if (ring.type.getSwizzled() != swizzled || ring.memory)
        continue;
      offset = llvm::alignTo(offset, swizzled ? 1024 : 128);
      ring.tiles = offset;
      // Buffers begin where copies may.
      offset += ring.type.getDepth() *
                int64_t(llvm::alignTo(ring.type.getTileBytes(), 16));
    }
  for (auto &[channel, ring] : rings) {
    if (ring.leader)
      continue;
    int64_t barriers = ring.type.getDepth() * ring.type.getParts();
    ring.full = llvm::alignTo(offset, barrierBytes);
    ring.empty = ring.full + barriers * barrierBytes;
    // What is free, the channel with the memory knows.
    offset = ring.memory ? ring.empty : ring.empty + barriers * barrierBytes;
  }
  return offset;
}

void Channels::begin(OpBuilder &b, Location loc, Value sharedBase) {
  if (rings.empty())
    return;
  Arithmetic a{b, loc};
  base = sharedBase;
  address = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), base);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  if (hasAlternate || llvm::any_of(rings, [](auto &entry) {
        return entry.second.isPaired || entry.second.isExchanged;
      }))
    rank = emitAssembly(b, loc, b.getI32Type(), {},
                        "mov.u32 $0, %cluster_ctarank;", "=r",
                        /*hasSideEffects=*/false);
  for (auto &[channel, ring] : rings) {
    if (ring.leader)
      continue;
    // Registers, once LLVM has seen them.
    ring.stage = LLVM::AllocaOp::create(b, loc, pointer, b.getI32Type(),
                                        a.i32(1), /*alignment=*/4);
    ring.parity = LLVM::AllocaOp::create(b, loc, pointer, b.getI32Type(),
                                         a.i32(1), /*alignment=*/4);
  }
}

/// How many arrivals the barriers of stage `number` count.
void Channels::countArrivals(OpBuilder &b, Location loc, const Ring &ring,
                             Value number, Value &filling, Value &emptying) {
  Arithmetic a{b, loc};
  filling = a.i32(ring.filling);
  emptying = a.i32(ring.emptying);
  if (ring.isExchanged) // and the other block, with the bytes that are to come
    filling = a.i32(ring.filling + 1);
  if (!ring.isPaired && ring.alternate == 0)
    return;
  Value turn = arith::AndIOp::create(
      b, loc, arith::XOrIOp::create(b, loc, number, rank), a.i32(1));
  Value isOwn = a.isEqual(turn, a.i32(0));
  if (ring.isPaired) // else the other block says how many bytes are to come
    filling = arith::SelectOp::create(b, loc, isOwn, filling, a.i32(1));
  else
    emptying = arith::SelectOp::create(b, loc, isOwn, emptying,
                                       a.i32(ring.emptying - ring.alternate));
}

/// By all threads of the block, 16 bytes each.
void Channels::zero(OpBuilder &b, Location loc, const Ring &ring,
                    const BlockThreads &threads, int64_t numWarps) {
  constexpr int64_t pieceBytes = 16;
  Arithmetic a{b, loc};
  const int64_t bytes = ring.type.getDepth() *
                        int64_t(llvm::alignTo(ring.type.getTileBytes(), 16));
  Value thread =
      a.add(a.mul(threads.warp, a.i32(gpu::warpThreads)), threads.lane);
  auto type = VectorType::get({pieceBytes / 4}, b.getI32Type());
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  auto loop = scf::ForOp::create(b, loc, thread, a.i32(bytes / pieceBytes),
                                 a.i32(numWarps * gpu::warpThreads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value offset = a.add(a.mul(loop.getInductionVar(), a.i32(pieceBytes)),
                       a.i32(ring.tiles));
  LLVM::StoreOp::create(b, loc, zeros, a.advance(base, offset),
                        /*alignment=*/pieceBytes);
}

void Channels::initialise(OpBuilder &b, Location loc,
                          const BlockThreads &threads, int64_t numWarps) {
  Arithmetic a{b, loc};
  for (auto &[channel, ring] : rings)
    if (ring.isZeroed)
      zero(b, loc, ring, threads, numWarps);
  int64_t warp = 0; // one for each ring
  for (auto &[channel, ring] : rings) {
    if (ring.leader)
      continue;
    int64_t barriers = ring.type.getDepth() * ring.type.getParts();
    Value isHere = a.isEqual(threads.warp, a.i32(warp++ % numWarps));
    for (int64_t first = 0; first < barriers; first += gpu::warpThreads) {
      Value number = arith::AddIOp::create(b, loc, threads.lane, a.i32(first));
      auto branch = scf::IfOp::create(
          b, loc, a.both(isHere, a.isLess(number, a.i32(barriers))),
          /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value offset = a.mul(number, a.i32(barrierBytes)), filling, emptying;
      countArrivals(b, loc, ring, number, filling, emptying);
      for (auto [start, count] :
           {std::pair{ring.full, filling}, {ring.empty, emptying}}) {
        if (ring.memory && start == ring.empty)
          continue;
        emitAssembly(b, loc, Type(),
                     {a.add(address, a.add(offset, a.i32(start))), count},
                     "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}",
                     /*hasSideEffects=*/true);
      }
    }
  }
  emitAssembly(b, loc, Type(), {},
               "fence.mbarrier_init.release.cluster; "
               "fence.proxy.async.shared::cta;",
               "~{memory}", /*hasSideEffects=*/true);
  if (rank)
    emitClusterBarrier(b, loc);
  else
    NVVM::Barrier0Op::create(b, loc);
}

void Channels::enterRole(OpBuilder &b, gpu::WarpsOp role, Value warp) {
  alternates = role.getAlternate();
  turns = role.getInTurns();
  for (auto &[channel, ring] : rings) {
    if (ring.leader)
      continue;
    for (Operation *user : channel.getUsers()) {
      auto handOn = dyn_cast<gpu::HandOnOp>(user);
      if (gpu::getRole(user) != role || (handOn && handOn.getTo() == channel))
        continue;
      Arithmetic a{b, role.getLoc()};
      bool fills = isa<gpu::AcquireOp, gpu::CommitOp>(user) &&
                   !ring.isExchanged; // which is waited for when it is full
      Value turn =
          arith::DivUIOp::create(b, a.loc, warp, a.i32(role.getTurnWarps()));
      Value first = alternates ? rank : turns > 1 ? turn : a.i32(0);
      LLVM::StoreOp::create(b, a.loc, first, ring.stage);
      LLVM::StoreOp::create(b, a.loc, a.i32(fills ? 1 : 0), ring.parity);
      break;
    }
  }
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

static Value loadNumber(OpBuilder &b, Location loc, Value memory) {
  return LLVM::LoadOp::create(b, loc, b.getI32Type(), memory);
}

/// The part that concerns this thread; null if there are no parts. To fill, a
/// lane takes one each; to empty, a warp.
Value Channels::getPart(OpBuilder &b, Location loc, const Ring &ring,
                        const BlockThreads &threads) {
  return ring.type.getParts() > 1 ? threads.warp : Value();
}

/// Where the role is, or the position behind that; of a ring that has a leader,
/// the leader's.
Channels::Position Channels::getPosition(OpBuilder &b, Location loc,
                                         const Ring &ring, bool ahead) {
  if (ring.leader)
    return getPosition(b, loc, getRing(ring.leader), ahead);
  Arithmetic a{b, loc};
  Value stage = loadNumber(b, loc, ring.stage);
  Value parity = loadNumber(b, loc, ring.parity);
  if (!ahead)
    return {stage, parity};
  Value next = a.add(stage, a.i32(alternates ? 2 : turns));
  Value depth = a.i32(ring.type.getDepth());
  if (turns > 1) {
    Value isBefore = a.isLess(next, depth);
    return {arith::SelectOp::create(b, loc, isBefore, next,
                                    arith::SubIOp::create(b, loc, next, depth)),
            arith::SelectOp::create(
                b, loc, isBefore, parity,
                arith::XOrIOp::create(b, loc, parity, a.i32(1)))};
  }
  Value isOver = alternates ? a.isLess(depth, a.add(next, a.i32(1)))
                            : a.isEqual(next, depth);
  Value other = arith::XOrIOp::create(b, loc, parity, a.i32(1));
  Value first = alternates ? rank : a.i32(0);
  return {arith::SelectOp::create(b, loc, isOver, first, next),
          arith::SelectOp::create(b, loc, isOver, other, parity)};
}

Value Channels::getBarrier(OpBuilder &b, Location loc, const Ring &ring,
                           const Position &at, int64_t first, Value part) {
  Arithmetic a{b, loc};
  Value number = a.mul(at.stage, a.i32(ring.type.getParts()));
  if (part)
    number = a.add(number, part);
  return a.add(a.add(address, a.i32(first)),
               a.mul(number, a.i32(barrierBytes)));
}

Value Channels::getTile(OpBuilder &b, Location loc, const Ring &ring,
                        const Position &at) {
  Arithmetic a{b, loc};
  int64_t bytes = llvm::alignTo(ring.type.getTileBytes(), 16);
  Value offset =
      a.add(a.mul(at.stage, a.i32(bytes)), a.i32(getMemory(ring)->tiles));
  return a.advance(base, offset);
}

Value Channels::getFull(OpBuilder &b, Location loc, gpu::AcquireOp op) {
  const Ring &ring = getRing(op.getChannel());
  const Ring &leader = ring.leader ? getRing(ring.leader) : ring;
  return getBarrier(b, loc, leader, getPosition(b, loc, leader), leader.full,
                    Value());
}

void Channels::advance(OpBuilder &b, Location loc, const Ring &ring) {
  Position next = getPosition(b, loc, ring, /*ahead=*/true);
  LLVM::StoreOp::create(b, loc, next.stage, ring.stage);
  LLVM::StoreOp::create(b, loc, next.parity, ring.parity);
}

//===----------------------------------------------------------------------===//
// Waiting and arriving
//===----------------------------------------------------------------------===//

/// Until the phases have ended; `phases` are barriers and their parities in
/// turn. What has ended is not waited for one after the other: an answer takes
/// as long as several questions.
static void wait(OpBuilder &b, Location loc, ValueRange phases) {
  std::string code = "{\n.reg .pred done", constraints;
  code += phases.size() > 2 ? ", also;\nWAIT:\n" : ";\nWAIT:\n";
  for (size_t i = 0; i < phases.size(); i += 2) {
    code += llvm::formatv("mbarrier.try_wait.parity.shared::cta.b64 {0}, "
                          "[${1}], ${2};\n",
                          i == 0 ? "done" : "also", i, i + 1);
    if (i > 0)
      code += "and.pred done, done, also;\n";
    constraints += "r,r,";
  }
  code += "@done bra DONE;\n"
          "bra WAIT;\n"
          "DONE:\n"
          "}";
  emitAssembly(b, loc, Type(), phases, code, constraints + "~{memory}",
               /*hasSideEffects=*/true);
}

/// A warp for itself, when all of its threads have come so far.
/// At a barrier that may be of the other block if `isOther`.
void Channels::arrive(OpBuilder &b, Location loc, const BlockThreads &threads,
                      Value barrier, bool isOther) {
  Arithmetic a{b, loc};
  OpBuilder::InsertionGuard guard(b);
  if (!everyThreadArrives) {
    NVVM::SyncWarpOp::create(b, loc, a.i32(-1));
    auto first = scf::IfOp::create(b, loc, a.isEqual(threads.lane, a.i32(0)),
                                   /*withElseRegion=*/false);
    b.setInsertionPointToStart(first.thenBlock());
  }
  emitAssembly(b, loc, Type(), barrier,
               isOther ? "mbarrier.arrive.shared::cluster.b64 _, [$0];"
                       : "mbarrier.arrive.shared::cta.b64 _, [$0];",
               "r,~{memory}", /*hasSideEffects=*/true);
}

Value Channels::acquire(OpBuilder &b, const BlockThreads &threads,
                        gpu::AcquireOp op) {
  Location loc = op.getLoc();
  Arithmetic a{b, loc};
  const Ring &ring = getRing(op.getChannel());
  OpBuilder::InsertionGuard guard(b);
  Position at = getPosition(b, loc, ring);
  Value tile = getTile(b, loc, ring, at);
  if (ring.leader || ring.isExchanged)
    return tile;
  Value part;
  if (ring.isCopied) {
    // A lane asks for each part, so it alone has to wait.
    part = ring.type.getParts() > 1 ? threads.lane : Value();
    auto branch = scf::IfOp::create(
        b, loc, a.isLess(threads.lane, a.i32(ring.type.getParts())),
        /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  wait(b, loc, {getBarrier(b, loc, ring, at, ring.empty, part), at.parity});
  return tile;
}

Value Channels::receive(OpBuilder &b, const BlockThreads &threads,
                        gpu::ReceiveOp op) {
  Location loc = op.getLoc();
  const Ring &ring = getRing(op.getChannel());
  // The first of some waits for all.
  SmallVector<Value> phases;
  if (!ring.leader && !awaited.contains(op))
    for (auto next = op; next;
         next = dyn_cast_or_null<gpu::ReceiveOp>(next->getNextNode())) {
      const Ring &other = getRing(next.getChannel());
      if (other.leader)
        continue;
      Position there = getPosition(b, loc, other, next.getAhead());
      phases.push_back(getBarrier(b, loc, other, there, other.full,
                                  getPart(b, loc, other, threads)));
      phases.push_back(there.parity);
      if (next != op)
        awaited.insert(next);
    }
  if (!phases.empty())
    wait(b, loc, phases);
  return getTile(b, loc, ring, getPosition(b, loc, ring, op.getAhead()));
}

Value Channels::commit(OpBuilder &b, const BlockThreads &threads,
                       gpu::CommitOp op) {
  Location loc = op.getLoc();
  const Ring &ring = getRing(op.getChannel());
  Position at = getPosition(b, loc, ring);
  Value tile = op.getTile() ? getTile(b, loc, ring, at) : Value();
  if (ring.leader)
    return tile;
  if (!ring.isCopied) { // else the copy has arrived
    if (emitsFence(op) || ring.isPaired || ring.isExchanged)
      emitAssembly(b, loc, Type(), {}, "fence.proxy.async.shared::cta;",
                   "~{memory}", /*hasSideEffects=*/true);
    if (ring.isPaired || ring.isExchanged)
      send(b, threads, op, ring, at);
    arrive(b, loc, threads, getBarrier(b, loc, ring, at, ring.full, Value()));
  }
  if (!ring.isExchanged) // else it is received first
    advance(b, loc, ring);
  return tile;
}

void Channels::release(OpBuilder &b, const BlockThreads &threads,
                       gpu::ReleaseOp op) {
  Location loc = op.getLoc();
  const Ring &ring = getRing(op.getChannel());
  if (ring.leader)
    return;
  if (ring.isExchanged)
    return advance(b, loc, ring);
  Value part = getPart(b, loc, ring, threads);
  Position at = getPosition(b, loc, ring);
  Value barrier = getBarrier(b, loc, ring, at, getMemory(ring)->empty, part);
  // The block that fills the stage.
  const bool isOther = ring.isPaired && !alternates;
  if (isOther) {
    Arithmetic a{b, loc};
    Value turn = arith::AndIOp::create(b, loc, at.stage, a.i32(1));
    barrier = getRemote(b, loc, barrier, turn);
  }
  arrive(b, loc, threads, barrier, isOther);
  advance(b, loc, ring);
}

/// The last roles may take the tile by products, which read past the caches of
/// what threads have written.
void Channels::handOn(OpBuilder &b, const BlockThreads &threads,
                      gpu::HandOnOp op) {
  Location loc = op.getLoc();
  const Ring &from = getRing(op.getFrom()), &to = getRing(op.getTo());
  emitAssembly(b, loc, Type(), {}, "fence.proxy.async.shared::cta;",
               "~{memory}", /*hasSideEffects=*/true);
  arrive(b, loc, threads,
         getBarrier(b, loc, to, getPosition(b, loc, from), to.full, Value()));
  advance(b, loc, from);
}
