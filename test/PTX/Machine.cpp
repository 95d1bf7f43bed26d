// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Machine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <sstream>
#include <thread>

using namespace ptx;

/// Instructions a warp runs before the next one's turn.
static constexpr uint64_t kTurn = 2000;
/// A turn of so few instructions is one more look at a barrier, or at several.
static constexpr uint64_t kIdleTurn = 32;
/// Rounds in which nothing moves before that counts as a deadlock.
static constexpr int kIdleRounds = 1000;

static std::string describe(const Warp &warp, const Kernel &kernel, int place) {
  std::ostringstream text;
  text << kernel.name << ": block " << warp.block->id[0] << ", warp "
       << warp.index << ", ";
  if (place < static_cast<int>(kernel.code.size()))
    text << "PTX line " << kernel.code[static_cast<size_t>(place)].line << ": "
         << kernel.code[static_cast<size_t>(place)].opcode;
  else
    text << "the end";
  return text.str();
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

char *Warp::resolve(Space space, uint64_t address, unsigned bytes, int lane,
                    Use use) {
  auto fail = [&](const char *what) -> char * {
    std::ostringstream text;
    text << what << " address 0x" << std::hex << address << std::dec << " of "
         << bytes << " bytes, lane " << lane;
    throw Fault(text.str());
  };
  if (address % bytes)
    return fail("misaligned");
  if (space == Space::generic) {
    uint64_t window = address >> 48 << 48;
    if (window == kSharedWindow) {
      space = Space::shared;
      address -= kSharedWindow;
    } else if (window == kLocalWindow) {
      space = Space::local;
      address -= kLocalWindow;
    } else if (window == kParameterWindow) {
      space = Space::parameter;
      address -= kParameterWindow;
    } else {
      space = Space::global;
    }
  }
  if (space == Space::shared) {
    uint64_t rank = address >> kSharedRankBit;
    if (rank >= block->cluster->blocks.size())
      return fail("no block of the cluster has shared");
    Block *target = &block->cluster->blocks[rank];
    uint64_t offset = address - (rank << kSharedRankBit) - kSharedBase;
    if (offset >= target->shared.size() ||
        bytes > target->shared.size() - offset)
      return fail("outside of shared memory:");
    if (use != Use::barrier) {
      int other = use == Use::write
                      ? target->races.write(offset, bytes, agent, clock, line)
                      : target->races.read(offset, bytes, agent, clock, line);
      if (other)
        throw Fault("a race with PTX line " + std::to_string(other) +
                    " over shared memory at " + std::to_string(offset));
    }
    return target->shared.data() + offset;
  }
  if (space == Space::local) {
    size_t each = local.size() / kLanes;
    if (address >= each || bytes > each - address)
      return fail("outside of local memory:");
    return local.data() + static_cast<size_t>(lane) * each + address;
  }
  if (space == Space::parameter) {
    if (use == Use::write)
      return fail("read-only:");
    std::vector<char> &parameters =
        const_cast<std::vector<char> &>(block->cluster->launch.parameters);
    if (address >= parameters.size() || bytes > parameters.size() - address)
      return fail("outside of the parameters:");
    return parameters.data() + address;
  }
  if (!lastRange.holds(address, bytes)) {
    lastRange = block->cluster->memory.find(address);
    if (!lastRange.holds(address, bytes))
      return fail("outside of all allocations:");
  }
  return reinterpret_cast<char *>(address);
}

void Warp::makeCopies(int lane, int64_t end) {
  auto isMine = [&](const LaneCopy &copy) {
    return copy.lane == lane && copy.group < end;
  };
  for (const LaneCopy &copy : copies) {
    if (!isMine(copy))
      continue;
    char *to = resolve(Space::shared, copy.to, copy.bytes, lane, Use::write);
    std::memset(to, 0, copy.bytes);
    // Where nothing is read, the address may be anything.
    if (copy.bytesFrom > 0)
      std::memcpy(
          to, resolve(Space::global, copy.from, copy.bytes, lane, Use::read),
          copy.bytesFrom);
  }
  copies.erase(std::remove_if(copies.begin(), copies.end(), isMine),
               copies.end());
}

/// The lanes at the earliest place where somebody can go on, and the next
/// place at which others stand.
bool Warp::choose(Mask &lanes, int &place, int &next) const {
  constexpr int kNone = INT32_MAX;
  place = next = kNone;
  for (int lane = 0; lane < kLanes; ++lane) {
    Mask bit = Mask(1) << lane;
    if ((alive & bit) && !((waiting | tired) & bit))
      place = std::min(place, places[static_cast<size_t>(lane)]);
  }
  if (place == kNone)
    return false;
  lanes = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    int own = places[static_cast<size_t>(lane)];
    Mask bit = Mask(1) << lane;
    if (!(alive & bit))
      continue;
    if (own == place)
      lanes |= bit;
    else if (own > place)
      next = std::min(next, own);
  }
  return true;
}

Warp::Outcome Warp::run(const Kernel &kernel, uint64_t &executed) {
  uint64_t begin = executed, end = begin + kTurn;
  Mask lanes = 0;
  int place = 0, next = 0;
  auto setPlaces = [&](Mask mask, int value) {
    for (; mask; mask &= mask - 1)
      places[static_cast<size_t>(__builtin_ctz(mask))] = value;
  };
  while (alive && executed < end) {
    if (!choose(lanes, place, next)) {
      if (!tired)
        throw Fault(
            describe(*this, kernel,
                     places[static_cast<size_t>(__builtin_ctz(waiting))]) +
            ": lanes of a warp wait for others that went elsewhere");
      tired = 0;
      return executed - begin > kIdleTurn ? Outcome::running : Outcome::idle;
    }
    waiting &= ~lanes;
    tired &= ~lanes;
    bool inStep = true;
    while (inStep && executed < end) {
      if (place >= static_cast<int>(kernel.code.size()))
        throw Fault(kernel.name + ": runs past its last instruction");
      const Instruction &instruction = kernel.code[static_cast<size_t>(place)];
      Mask mask = lanes;
      if (instruction.guard >= 0) {
        const Lanes &guard = values[static_cast<size_t>(instruction.guard)];
        Mask holds = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane)
          holds |= static_cast<Mask>(guard[lane] & 1) << lane;
        mask &= instruction.isGuardNegated ? ~holds : holds;
      }
      ++executed;
      line = instruction.line;
      Step step = Step::next;
      if (mask) {
        try {
          step = instruction.execute(*this, instruction, mask);
        } catch (const Fault &fault) {
          throw Fault(describe(*this, kernel, place) + ": " + fault.what());
        }
      }
      switch (step) {
      case Step::next:
        if (alive == 0)
          return Outcome::ended;
        if ((lanes & alive) != lanes) { // some have returned
          setPlaces(lanes, place + 1);
          inStep = false;
          break;
        }
        if (++place == next) {
          setPlaces(lanes, place);
          inStep = false;
        }
        break;
      case Step::jumped:
        setPlaces(lanes & ~mask, place + 1);
        setPlaces(mask, instruction.target);
        if (mask == alive)
          place = instruction.target; // nobody to meet
        else
          inStep = false;
        break;
      case Step::placed:
        inStep = false;
        break;
      case Step::waits:
        setPlaces(lanes, place);
        waiting |= lanes;
        inStep = false;
        break;
      case Step::yields:
      case Step::again:
        setPlaces(lanes, step == Step::again ? place : place + 1);
        tired |= lanes;
        inStep = false;
        break;
      case Step::barrier:
        setPlaces(lanes, place + 1);
        isAtBarrier = true;
        return Outcome::blocked;
      }
    }
    if (inStep)
      setPlaces(lanes, place);
  }
  return alive ? Outcome::running : Outcome::ended;
}

//===----------------------------------------------------------------------===//
// Blocks and clusters
//===----------------------------------------------------------------------===//

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
  warp.release(barrier.known);
  if (opens) {
    if (waits)
      warp.acquire(barrier.known);
    for (Warp *other : barrier.waiting) {
      other->isAtBarrier = false;
      other->acquire(barrier.known);
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
  for (Block &block : blocks) {
    uint32_t number = first + block.rank;
    auto [x, y, z] = launch.grid;
    block.id = {number % x, number / x % y, number / x / y};
    // What nobody wrote is no number.
    std::fill(block.shared.begin(), block.shared.end(), char(0xff));
    block.barriers = {};
    block.phases.clear();
    size_t agents = 3 * numWarps() + 1;
    block.races.reset(block.shared.size(), agents);
    for (Warp &warp : block.warps) {
      warp.agent =
          block.rank * block.warps.size() + static_cast<size_t>(warp.index);
      warp.clock.assign(agents, 0);
      warp.clock[warp.agent] = 1;
      int left = block.numThreads - warp.index * kLanes;
      warp.alive = left >= kLanes ? kAllLanes : (Mask(1) << left) - 1;
      warp.waiting = warp.tired = 0;
      warp.isAtBarrier = false;
      warp.places.fill(0);
      warp.copies.clear();
      warp.groups.fill(0);
      warp.groupTime = 0;
      warp.groupEnds.clear();
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
  atClusterBarrier.clear();
  clusterKnown.clear();
  clusterArriving.clear();
  copyTime = 0;
  fenced.assign(numWarps(), 0);
  int idle = 0;
  for (bool ended = false; !ended;) {
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
}

size_t Cluster::groupAgent(const Warp &warp) const {
  return copyAgent() + 1 + warp.block->rank * warp.block->warps.size() +
         static_cast<size_t>(warp.index);
}

void Cluster::makeBulkCopy() {
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
  if (!copy.barrier)
    return;
  PhaseClock &clocks = copy.block->phases[copy.barrier];
  join(clocks.arriving, copy.clock);
  completeTransaction(*copy.barrier, clocks, static_cast<int64_t>(bytes));
}

/// One turn for each warp; whether something moved.
bool Cluster::turn(bool &ended) {
  bool hasMoved = false;
  ended = true;
  for (Block &block : blocks)
    for (Warp &warp : block.warps) {
      if (!warp.alive)
        continue;
      ended = false;
      if (warp.isAtBarrier)
        continue;
      hasMoved |= warp.run(*launch.kernel, executed) != Warp::Outcome::idle;
    }
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

void ptx::runKernel(const Launch &launch, const Memory &memory) {
  uint32_t numBlocks = launch.grid[0] * launch.grid[1] * launch.grid[2];
  std::atomic<uint32_t> next{0};
  std::mutex lock;
  std::string message;
  auto work = [&] {
    try {
      Cluster cluster(launch, memory);
      for (uint32_t first;
           (first = next.fetch_add(launch.cluster)) < numBlocks;)
        cluster.run(first);
    } catch (const std::exception &error) {
      std::lock_guard<std::mutex> guard(lock);
      if (message.empty())
        message = error.what();
      next = numBlocks;
    }
  };
  uint32_t numThreads =
      std::min<uint32_t>(std::max(std::thread::hardware_concurrency(), 1u),
                         numBlocks / launch.cluster);
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < numThreads; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  if (!message.empty())
    throw Fault(message);
}
