// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers of blocks (bar), of clusters, and in shared memory (mbarrier).

#include "LaneOps.h"
#include "Paths.h"

#include <algorithm>

using namespace ptx;

//===----------------------------------------------------------------------===//
// bar.sync, bar.arrive
//===----------------------------------------------------------------------===//

template <bool waits>
static Step blockBarrier(Warp &warp, const Instruction &i, Mask mask) {
  if (!allHere(warp, mask))
    return Step::waits;
  unsigned lane = static_cast<unsigned>(__builtin_ctz(mask));
  int id = static_cast<int>(warp.at(i.operands[0])[lane]);
  int threads = i.operands.size() > 1
                    ? static_cast<int>(warp.at(i.operands[1])[lane])
                    : 0;
  if (id < 0 || id > 15 || threads % kLanes)
    throw Fault("no such barrier");
  bool opens = warp.block->arrive(id, threads, warp, waits);
  return waits && !opens ? Step::barrier : Step::next;
}

/// One that is relaxed tells nothing of what was written before it.
template <bool releases>
static Step clusterArrive(Warp &warp, const Instruction &, Mask mask) {
  if (!allHere(warp, mask))
    return Step::waits;
  if (warp.hasArrived)
    throw Fault("comes to the barrier of the cluster twice without a wait");
  warp.hasArrived = true;
  Cluster &cluster = *warp.block->cluster;
  cluster.atClusterBarrier.push_back(&warp);
  if (releases)
    warp.release(cluster.clusterArriving, mask);
  return Step::next;
}

/// Spins, so that a warp may arrive and wait later.
static Step clusterWait(Warp &warp, const Instruction &, Mask mask) {
  if (!allHere(warp, mask))
    return Step::waits;
  if (!warp.hasArrived)
    throw Fault("waits at the barrier of the cluster without having come");
  Cluster &cluster = *warp.block->cluster;
  size_t all = cluster.blocks.size() * warp.block->warps.size();
  std::vector<Warp *> &arrived = cluster.atClusterBarrier;
  if (arrived.size() == all) {
    arrived.clear();
    cluster.clusterKnown.add(cluster.clusterArriving);
  }
  if (std::find(arrived.begin(), arrived.end(), &warp) == arrived.end()) {
    warp.hasArrived = false;
    warp.acquire(cluster.clusterKnown, mask);
    return Step::next;
  }
  return Step::again;
}

//===----------------------------------------------------------------------===//
// mbarrier
//===----------------------------------------------------------------------===//

/// What was told up to here is known to who waits for the phase.
static void endPhase(PhaseClock &clocks) {
  Paths *paths = Paths::current;
  const int last = paths ? std::exchange(paths->edge, 0) : 0;
  clocks.ended.add(clocks.arriving);
  ++clocks.phase;
  if (paths)
    paths->edge = last;
}

namespace {
/// The word of a barrier: how many arrivals a phase wants, how many it still
/// wants, bytes under way, and the parity of the phase.
struct Counts {
  uint32_t expected, pending;
  int32_t bytes;
  uint32_t phase;

  static constexpr int32_t kBias = 1 << 20;
  static Counts of(uint64_t word) {
    return {static_cast<uint32_t>(word & 0xfffff),
            static_cast<uint32_t>(word >> 20 & 0xfffff),
            static_cast<int32_t>(word >> 40 & 0x3fffff) - kBias,
            static_cast<uint32_t>(word >> 62 & 1)};
  }
  uint64_t word() const {
    return uint64_t(expected) | uint64_t(pending) << 20 |
           uint64_t(static_cast<uint32_t>(bytes + kBias)) << 40 |
           uint64_t(phase) << 62;
  }
  void arrive(uint32_t count, PhaseClock &clocks) {
    if (count > pending)
      throw Fault("more arrivals at a barrier than it expects");
    pending -= count;
    close(clocks);
  }
  void close(PhaseClock &clocks) {
    if (pending == 0 && bytes == 0) {
      phase ^= 1;
      pending = expected;
      endPhase(clocks);
    }
  }
};
} // namespace

void ptx::completeTransaction(uint64_t &barrier, PhaseClock &clocks,
                              int64_t bytes) {
  Counts counts = Counts::of(barrier);
  counts.bytes -= static_cast<int32_t>(bytes);
  counts.close(clocks);
  barrier = counts.word();
}

uint64_t &ptx::barrierWord(Warp &warp, uint64_t address, unsigned lane,
                           Block *&owner) {
  char *place = warp.resolve(address >> 48 ? Space::generic : Space::shared,
                             address, 8, static_cast<int>(lane), Use::barrier);
  owner = nullptr;
  for (Block &block : warp.block->cluster->blocks)
    if (place >= block.shared.data() &&
        place < block.shared.data() + block.shared.size())
      owner = &block;
  if (!owner)
    throw Fault("a barrier outside of shared memory");
  return *reinterpret_cast<uint64_t *>(place);
}

namespace {
/// A barrier that an operand names, and what is known through it.
struct Named {
  Named(Warp &warp, const Operand &operand, unsigned lane, bool isNew = false)
      : word(barrierWord(warp,
                         warp.at(operand)[lane] +
                             static_cast<uint64_t>(operand.offset),
                         lane, owner)),
        clocks(owner->phases[&word]), counts(Counts::of(word)) {
    if (!isNew)
      checkBarrier(warp, lane, word, *owner, /*isCopy=*/false);
  }

  Block *owner = nullptr;
  uint64_t &word;
  PhaseClock &clocks;
  Counts counts;
};
} // namespace

static Step initialise(Warp &warp, const Instruction &i, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    uint32_t count = static_cast<uint32_t>(warp.at(i.operands[1])[l]);
    if (count == 0 || count > 0xfffff)
      throw Fault("a barrier of " + std::to_string(count) + " arrivals");
    Named barrier(warp, i.operands[0], l, /*isNew=*/true);
    barrier.word = Counts{count, count, 0, 0}.word();
    size_t copies = barrier.clocks.copies;
    barrier.clocks = {};
    barrier.clocks.copies = copies;
    barrier.clocks.isInitialised = true;
    barrier.clocks.agent = warp.self.agent;
    barrier.clocks.time = warp.self.time;
    barrier.clocks.line = warp.self.line;
    warp.wrote |= Mask(1) << l;
    warp.wroteTime = warp.self.time;
  });
  return Step::next;
}

static Step invalidate(Warp &warp, const Instruction &i, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    Named barrier(warp, i.operands[0], l);
    barrier.word = ~uint64_t(0);
    barrier.clocks.isInitialised = false;
  });
  return Step::next;
}

void ptx::checkBarrier(Warp &warp, unsigned lane, const uint64_t &word,
                       Block &owner, bool isCopy) {
  const PhaseClock &clocks = owner.phases[const_cast<uint64_t *>(&word)];
  if (!clocks.isInitialised)
    throw Fault("a barrier that nobody has initialised");
  const Knowledge &known = warp.knowledgeOf(lane);
  Paths *paths = Paths::current;
  if (const Clock &clock = isCopy ? known.async : known.all;
      clocks.time <= clock[clocks.agent]) {
    if (paths && (isCopy || clocks.agent != warp.self.agent))
      paths->note(clocks.line, clocks.agent, clocks.time, warp.self.line,
                  clock);
    if (paths && isCopy && clocks.fenceTime)
      paths->noteTold(clocks.line, warp.self.line, clocks.fence);
    return;
  }
  if (isCopy && clocks.fenceTime &&
      clocks.fenceTime <= known.all[clocks.agent]) {
    if (paths)
      paths->note(clocks.line, clocks.agent, clocks.fenceTime, warp.self.line,
                  known.all, /*isRead=*/false, clocks.fence);
    return;
  }
  warp.block->cluster->reportBarrier(
      warp, owner,
      static_cast<size_t>(reinterpret_cast<const char *>(&word) -
                          owner.shared.data()),
      clocks, isCopy);
}

/// arrive [b], arrive s, [b], {n}, and with expect_tx, whose number is bytes.
/// One that is relaxed tells nothing of what was written before it.
template <bool expects>
static Step arriveAt(Warp &warp, const Instruction &i, Mask mask) {
  size_t first = i.detail & 1;
  forLanes(mask, [&](unsigned l) {
    Named barrier(warp, i.operands[first], l);
    uint64_t phase = barrier.counts.phase;
    if (!(i.detail & 2))
      warp.release(barrier.clocks.arriving, mask);
    uint32_t number =
        i.operands.size() > first + 1
            ? static_cast<uint32_t>(warp.at(i.operands[first + 1])[l])
            : 1;
    if (expects)
      barrier.counts.bytes += static_cast<int32_t>(number);
    barrier.counts.arrive(expects ? 1 : number, barrier.clocks);
    barrier.word = barrier.counts.word();
    if (first && i.operands[0].value >= 0)
      warp.at(i.operands[0])[l] = phase;
  });
  return Step::next;
}

template <bool completes>
static Step countBytes(Warp &warp, const Instruction &i, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    Named barrier(warp, i.operands[0], l);
    int64_t bytes = static_cast<int64_t>(warp.at(i.operands[1])[l]);
    completeTransaction(barrier.word, barrier.clocks,
                        completes ? bytes : -bytes);
  });
  return Step::next;
}

/// try_wait p, [b], state or parity: whether that phase has ended.
template <bool acquires>
static Step testPhase(Warp &warp, const Instruction &i, Mask mask) {
  bool waits = false;
  const PhaseClock *one = nullptr;
  bool isOne = true;
  forLanes(mask, [&](unsigned l) {
    Named barrier(warp, i.operands[1], l);
    bool ended = barrier.counts.phase != (warp.at(i.operands[2])[l] & 1);
    warp.at(i.operands[0])[l] = ended;
    isOne &= ended && (!one || one == &barrier.clocks);
    one = &barrier.clocks;
    waits |= !ended;
  });
  if (acquires && isOne)
    warp.acquire(one->ended, mask);
  else if (acquires)
    forLanes(mask, [&](unsigned l) {
      if (warp.at(i.operands[0])[l])
        warp.acquire(Named(warp, i.operands[1], l).clocks.ended, Mask(1) << l);
    });
  return waits ? Step::yields : Step::next;
}

/// cp.async.mbarrier.arrive: after the lane's copies, of whose end the lane
/// itself learns nothing.
static Step arriveAfterCopies(Warp &warp, const Instruction &i, Mask mask) {
  size_t copies = warp.block->cluster->agentOf(warp, Cluster::Side::laneCopies);
  forLanes(mask, [&](unsigned l) {
    warp.makeCopies(static_cast<int>(l), INT64_MAX);
    Named barrier(warp, i.operands[0], l);
    raise(barrier.clocks.arriving.all, copies, warp.copyTime);
    if (!i.detail)
      ++barrier.counts.pending;
    barrier.counts.arrive(1, barrier.clocks);
    barrier.word = barrier.counts.word();
  });
  return Step::next;
}

Execute ptx::findBarrier(const Parts &parts, Instruction &instruction) {
  const std::string &op = parts[0];
  if (op == "bar" || op == "barrier") {
    if (has(parts, "cluster"))
      return has(parts, "arrive") ? has(parts, "relaxed") ? clusterArrive<false>
                                                          : clusterArrive<true>
             : has(parts, "wait") ? clusterWait
                                  : nullptr;
    if (has(parts, "sync"))
      return blockBarrier<true>;
    if (has(parts, "arrive"))
      return blockBarrier<false>;
    return nullptr;
  }
  if (op == "cp" && has(parts, "mbarrier") && has(parts, "arrive")) {
    instruction.detail = has(parts, "noinc");
    return arriveAfterCopies;
  }
  if (op != "mbarrier")
    return nullptr;
  const std::string &what = parts[1];
  if (what == "init")
    return initialise;
  if (what == "inval")
    return invalidate;
  if (what == "try_wait" || what == "test_wait")
    return has(parts, "relaxed") ? testPhase<false> : testPhase<true>;
  if (what == "expect_tx")
    return countBytes<false>;
  if (what == "complete_tx")
    return countBytes<true>;
  if (what == "arrive") {
    bool expects = has(parts, "expect_tx");
    // A state or _ comes first unless the barrier may be another block's.
    instruction.detail = instruction.operands.size() > (expects ? 2u : 1u);
    if (!expects && instruction.operands.size() == 2 &&
        has(parts, "shared::cluster"))
      instruction.detail = instruction.operands[0].value < 0;
    if (has(parts, "relaxed"))
      instruction.detail |= 2;
    return expects ? arriveAt<true> : arriveAt<false>;
  }
  return nullptr;
}
