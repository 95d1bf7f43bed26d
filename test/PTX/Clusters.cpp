// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks and clusters: whose turn it is, barriers that all of a block meet at,
// and bulk copies, which are made when no warp can go on.

#include "Machine.h"
#include "Paths.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

using namespace ptx;

/// Instructions a warp runs before the next one's turn.
static constexpr uint64_t kTurn = 2000;
/// Rounds in which nothing moves before that counts as a deadlock.
static constexpr int kIdleRounds = 1000;

bool Block::arrive(int id, int threads, Warp &warp, bool waits) {
  Barrier &barrier = barriers[static_cast<size_t>(id)];
  int expected = threads ? threads : numThreads;
  if (barrier.arrived > 0 && barrier.expected != expected)
    throw Fault("barrier " + std::to_string(id) + " expects " +
                std::to_string(barrier.expected) + " threads, and now " +
                std::to_string(expected));
  barrier.expected = expected;
  barrier.arrived += std::min(kLanes, numThreads);
  if (barrier.arrived > expected)
    throw Fault("barrier " + std::to_string(id) + ": " +
                std::to_string(barrier.arrived) + " threads, expected " +
                std::to_string(expected));
  bool opens = barrier.arrived == expected;
  warp.release(barrier.known, warp.alive);
  if (opens) {
    if (waits)
      warp.acquire(barrier.known, warp.alive);
    for (Warp *other : barrier.waiting) {
      other->isAtBarrier = false;
      other->acquire(barrier.known, other->alive);
    }
    barrier = {};
  } else if (waits) {
    barrier.waiting.push_back(&warp);
  }
  return opens;
}

/// What warps and blocks that have ended leave to the next, as it is: megabytes
/// each, whose pages would otherwise be made anew for every block.
namespace {
template <typename T> class Spare {
public:
  static void take(T &to) {
    std::lock_guard lock(mutex);
    if (left.empty())
      return;
    to = std::move(left.back());
    left.pop_back();
  }
  static void give(T &&from) {
    std::lock_guard lock(mutex);
    left.push_back(std::move(from));
  }

private:
  static inline std::mutex mutex;
  static inline std::vector<T> left;
};
} // namespace

Cluster::~Cluster() {
  for (Block &block : blocks) {
    Spare<Races>::give(std::move(block.races));
    for (Warp &warp : block.warps)
      Spare<std::vector<Lanes>>::give(std::move(warp.values));
  }
}

Cluster::Cluster(const Launch &launch, const Memory &memory)
    : launch(launch), memory(memory), blocks(launch.cluster) {
  const Kernel &kernel = *launch.kernel;
  auto [x, y, z] = launch.threads;
  int numThreads = static_cast<int>(x * y * z);
  for (uint32_t rank = 0; rank < launch.cluster; ++rank) {
    Block &block = blocks[rank];
    block.cluster = this;
    block.rank = rank;
    Spare<Races>::take(block.races);
    block.numThreads = numThreads;
    block.shared.resize(kernel.staticSharedBytes + launch.dynamicSharedBytes);
    block.warps.resize(static_cast<size_t>((numThreads + 31) / 32));
    for (Warp &warp : block.warps) {
      warp.block = &block;
      warp.index = static_cast<int>(&warp - block.warps.data());
      // PTX has a register for each value, and reads none that it has not
      // written.
      Spare<std::vector<Lanes>>::take(warp.values);
      warp.values.resize(static_cast<size_t>(kernel.numValues));
      for (auto [index, bits] : kernel.constants)
        warp.values[static_cast<size_t>(index)].fill(bits);
      for (auto [index, address] : kernel.sharedSymbols)
        warp.values[static_cast<size_t>(index)].fill(
            address | uint64_t(rank) << kSharedRankBit);
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        uint32_t thread = static_cast<uint32_t>(warp.index) * kLanes + lane;
        auto set = [&](Special special, uint64_t value) {
          warp.values[special][lane] = value;
        };
        set(kTidX, thread % x);
        set(kTidY, thread / x % y);
        set(kTidZ, thread / (x * y));
        set(kNtidX, x);
        set(kNtidY, y);
        set(kNtidZ, z);
        set(kNctaidX, launch.grid[0]);
        set(kNctaidY, launch.grid[1]);
        set(kNctaidZ, launch.grid[2]);
        set(kLaneid, lane);
        set(kWarpid, static_cast<uint64_t>(warp.index));
        Mask bit = Mask(1) << lane;
        set(kLanemaskEq, bit);
        set(kLanemaskLt, bit - 1);
        set(kLanemaskLe, bit | (bit - 1));
        set(kLanemaskGt, ~(bit | (bit - 1)));
        set(kLanemaskGe, ~(bit - 1));
        set(kClusterCtaRank, rank);
        set(kClusterNctaRank, launch.cluster);
        set(kClusterCtaIdX, rank);
        set(kClusterNctaIdX, launch.cluster);
        set(kNclusterIdX, launch.grid[0] / launch.cluster);
        set(kDynamicSmemSize, launch.dynamicSharedBytes);
      }
      warp.local.resize(kernel.localBytes * kLanes);
    }
  }
}

void Cluster::run(uint32_t first) {
  pendingReads.assign(numWarps(), {});
  number = launch.order->first + first / launch.cluster;
  if (Paths::current)
    Paths::current->begin(number, launchAgent() + 1);
  for (Block &block : blocks) {
    uint32_t number = first + block.rank;
    auto [x, y, z] = launch.grid;
    block.id = {number % x, number / x % y, number / x / y};
    // What nobody wrote is no number.
    std::fill(block.shared.begin(), block.shared.end(), char(0xff));
    block.barriers = {};
    block.phases.clear();
    size_t agents = numAgents();
    block.races.reset(block.shared.size(), agents, launch.findsUnwritten);
    block.visits.assign(agents, {});
    block.leaving.reset(numTimes());
    block.hasReleased = false;
    for (Warp &warp : block.warps) {
      warp.self.agent =
          block.rank * block.warps.size() + static_cast<size_t>(warp.index);
      warp.self.time = 1;
      warp.self.meetTime = warp.self.exchangeTime = 0;
      warp.knowledge.reset(numTimes());
      warp.known.clear();
      warp.knowledge.launches = launch.order->known;
      for (size_t own : {warp.self.agent, readsOf(warp.self.agent),
                         writesOf(warp.self.agent)})
        warp.knowledge.all[own] = 1;
      warp.global = {};
      warp.as = &warp.self;
      warp.knowing = warp.wrote = warp.read = 0;
      warp.wroteTime = warp.readTime = warp.copyTime = 0;
      int left = block.numThreads - warp.index * kLanes;
      warp.alive = left >= kLanes ? kAllLanes : (Mask(1) << left) - 1;
      warp.waiting = warp.tired = 0;
      warp.isAtBarrier = warp.hasArrived = false;
      warp.places.fill(0);
      warp.copies.clear();
      warp.groups.fill(0);
      warp.groupTime = warp.groupDone = 0;
      warp.groupEnds.clear();
      warp.sums.clear();
      warp.registers.clear();
      warp.registerFences.clear();
      warp.storeTime = 0;
      warp.stores.fill(0);
      warp.storeGroups.fill({});
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        for (unsigned axis = 0; axis < 3; ++axis)
          warp.values[kCtaidX + axis][lane] = block.id[axis];
        warp.values[kClusterIdX][lane] = block.id[0] / launch.cluster;
      }
    }
  }
  order.clear();
  for (Block &block : blocks)
    for (Warp &warp : block.warps)
      order.push_back(&warp);
  chosen = launch.seed + first;
  atClusterBarrier.clear();
  clusterKnown.clear();
  clusterArriving.clear();
  numCopied = 0;
  copyTimes.fill(0);
  int idle = 0;
  for (bool ended = false; !ended;) {
    if (launch.limit && executed > launch.limit)
      throw Fault(launch.kernel->name + ": more than " +
                  std::to_string(launch.limit) + " instructions");
    if (turn(ended)) {
      idle = 0;
      continue;
    }
    if (!bulk.empty()) {
      makeBulkCopy();
      idle = 0;
    } else if (!ended && ++idle > kIdleRounds) {
      reportDeadlock();
    }
  }
  reportVisits();
  for (Block &block : blocks)
    if (!block.hasReleased) {
      launch.order->release(block.leaving.launches);
      if (Paths *paths = Paths::current)
        paths->noteEdge(0, 0, Paths::kEndOfLaunch, Paths::kEndOfLaunch);
    }
}

void Cluster::makeBulkCopy() {
  // The copy's end is not what an instruction tells.
  Paths *paths = Paths::current;
  const int last = paths ? std::exchange(paths->edge, 0) : 0;
  BulkCopy copy = std::move(bulk.front());
  bulk.pop_front();
  size_t bytes = 0;
  for (const BulkCopy::Piece &piece : copy.pieces) {
    if (piece.from)
      std::memcpy(piece.to, piece.from, piece.bytes);
    else
      std::memset(piece.to, 0, piece.bytes);
    bytes += piece.bytes;
  }
  if (copy.barrier) {
    PhaseClock &clocks = copy.block->phases[copy.barrier];
    clocks.arriving.addEnd(copy.agent, copy.time);
    completeTransaction(*copy.barrier, clocks, static_cast<int64_t>(bytes));
  }
  if (paths)
    paths->edge = last;
}

uint64_t Cluster::choose(uint64_t end) {
  if (!launch.seed)
    return 0;
  // Linear congruences of Knuth's; the upper bits are the better ones.
  chosen = chosen * 6364136223846793005u + 1442695040888963407u;
  return (chosen >> 33) % end;
}

/// One turn for each warp; whether something moved.
bool Cluster::turn(bool &ended) {
  bool hasMoved = false;
  ended = true;
  if (launch.seed)
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[choose(i)]);
  auto isLate = [&](const Warp &warp) {
    return launch.late >> (warp.index % 64) & 1;
  };
  for (Warp *warp : order) {
    ended &= !warp->alive;
    if (!isLate(*warp))
      hasMoved |= turnOf(*warp);
  }
  for (auto warp = order.begin();
       launch.late && !hasMoved && bulk.empty() && warp != order.end(); ++warp)
    if (isLate(**warp))
      hasMoved |= turnOf(**warp);
  return hasMoved;
}

/// Whether the warp went on.
bool Cluster::turnOf(Warp &warp) {
  if (!warp.alive || warp.isAtBarrier)
    return false;
  // Some stay behind by rounds, and some go on alone.
  if (launch.seed && choose(4) == 0)
    return false;
  bool hasMoved = warp.run(*launch.kernel, executed,
                           launch.seed ? uint64_t(64) << choose(8) : kTurn) !=
                  Warp::Outcome::idle;
  if (launch.seed && !bulk.empty() && choose(4) == 0)
    makeBulkCopy();
  return hasMoved;
}

void Cluster::reportDeadlock() const {
  std::string text = launch.kernel->name + ": nothing moves any more";
  for (const Block &block : blocks)
    for (const Warp &warp : block.warps)
      if (warp.alive)
        text +=
            "\n  " +
            describe(
                warp, *launch.kernel,
                warp.places[static_cast<size_t>(__builtin_ctz(warp.alive))]) +
            (warp.isAtBarrier ? " (at a barrier before it)" : "");
  throw Fault(text);
}

void ptx::runKernel(const Launch &given, const Memory &memory, Paths *paths) {
  uint32_t numBlocks = given.grid[0] * given.grid[1] * given.grid[2];
  Launch launch = given;
  std::shared_ptr<LaunchOrder> order =
      memory.races().begin(launch.kernel, numBlocks / launch.cluster,
                           launch.isDependent, launch.stream);
  launch.order = order.get();
  std::atomic<uint32_t> next{0};
  std::mutex lock;
  std::string message;
  Findings::All findings;
  auto work = [&] {
    Cluster cluster(launch, memory);
    Paths own(*launch.kernel);
    Paths::current = paths ? &own : nullptr;
    std::string wrong;
    try {
      for (uint32_t first;
           (first = next.fetch_add(launch.cluster)) < numBlocks;)
        cluster.run(first);
    } catch (const std::exception &error) {
      wrong = error.what();
      next = numBlocks;
    }
    Paths::current = nullptr;
    std::lock_guard<std::mutex> guard(lock);
    if (paths)
      paths->merge(own);
    findings.merge(cluster.findings);
    if (message.empty())
      message = wrong;
  };
  // Paths go from one cluster to others.
  uint32_t numThreads =
      paths ? 1
            : std::min<uint32_t>(
                  std::max(std::thread::hardware_concurrency(), 1u),
                  numBlocks / launch.cluster);
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < numThreads; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  if (paths)
    memory.races().endPaths();
  if (!findings.empty()) {
    std::string text = describeFindings(findings) + message;
    throw Findings(text, std::move(findings));
  }
  if (!message.empty())
    throw Fault(message);
}
