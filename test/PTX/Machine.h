// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs kernels: warps of 32 lanes, blocks of warps, clusters of blocks. Lanes
// of a warp that went apart run the earliest place first and meet again where
// their places are equal. Copies that a GPU makes on the side are made as late
// as the program allows, so that a wait that is missing shows.

#ifndef GDN_TEST_PTX_MACHINE_H
#define GDN_TEST_PTX_MACHINE_H

#include "Memory.h"
#include "Program.h"
#include "Races.h"

#include <deque>
#include <map>

namespace ptx {

struct Block;
struct Cluster;

/// What an access does with the bytes: those of barriers are not watched.
enum class Use { read, write, barrier };

/// A copy by cp.async of one lane, and the lane's group that it belongs to.
struct LaneCopy {
  int lane = 0;
  int64_t group = 0;
  uint64_t to = 0, from = 0;
  unsigned bytes = 0, bytesFrom = 0;
};

struct Warp {
  Block *block = nullptr;
  int index = 0;
  /// Lanes that have not returned.
  Mask alive = kAllLanes;
  /// Lanes that stand at an instruction others have to come to.
  Mask waiting = 0;
  /// Lanes whose last wait was in vain.
  Mask tired = 0;
  std::array<int, kLanes> places{};
  bool isAtBarrier = false;
  std::vector<Lanes> values;
  std::vector<LaneCopy> copies;
  std::array<int64_t, kLanes> groups{};
  /// Local memory, lane after lane.
  std::vector<char> local;
  /// The allocation that was used last.
  Range lastRange;
  /// What the warp knows of the others' times, its own number among them, and
  /// the PTX line where it is.
  Clock clock;
  size_t agent = 0;
  int line = 0;
  /// Products of warpgroups: how many were issued, and the last one of each
  /// group that was committed and not waited for.
  uint32_t groupTime = 0;
  std::vector<uint32_t> groupEnds;
  /// Bulk copies to memory: how many were begun, and by lane the last one of
  /// the lane and of each group that it committed.
  uint32_t storeTime = 0;
  std::array<uint32_t, kLanes> stores{};
  std::array<std::vector<uint32_t>, kLanes> storeGroups;

  Lanes &at(const Operand &operand) {
    return values[static_cast<size_t>(operand.value)];
  }
  /// The bytes at an address of `space`, or a Fault.
  char *resolve(Space space, uint64_t address, unsigned bytes, int lane,
                Use use);
  /// What was done up to here becomes known to whom `clock` is given.
  void release(Clock &known) {
    join(known, clock);
    ++clock[agent];
  }
  void acquire(const Clock &known) { join(clock, known); }
  /// Makes the copies of `lane` whose group is before `end`.
  void makeCopies(int lane, int64_t end);

  enum class Outcome { ended, blocked, idle, running };
  /// Runs until the warp waits, or for a while.
  Outcome run(const Kernel &kernel, uint64_t &executed);

private:
  bool choose(Mask &lanes, int &place, int &next) const;
};

/// A barrier of a block, as bar.sync knows it.
struct Barrier {
  int arrived = 0, expected = 0;
  std::vector<Warp *> waiting;
  Clock known;
};

/// What those who arrive at a barrier in shared memory know, in this phase and
/// in those before.
struct PhaseClock {
  Clock arriving, ended;
};

struct Block {
  Cluster *cluster = nullptr;
  uint32_t rank = 0;
  std::array<uint32_t, 3> id{};
  std::vector<char> shared;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  std::map<uint64_t *, PhaseClock> phases;
  Races races;

  /// A warp's threads come to barrier `id`; `threads` are expected, 0: all.
  /// True if that opened it.
  bool arrive(int id, int threads, Warp &warp, bool waits);
  int numThreads = 0;
};

/// A bulk copy under way.
struct BulkCopy {
  struct Piece {
    char *to = nullptr;
    /// Null: zeros.
    const char *from = nullptr;
    size_t bytes = 0;
  };
  std::vector<Piece> pieces;
  /// What is told of its end, or null, and the block it is in.
  uint64_t *barrier = nullptr;
  Block *block = nullptr;
  /// Who makes it, and what that one knows.
  size_t agent = 0;
  Clock clock;
};

struct Launch {
  const Kernel *kernel = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1}, threads{1, 1, 1};
  uint32_t cluster = 1;
  size_t dynamicSharedBytes = 0;
  std::vector<char> parameters;
};

/// Blocks that run at the same time.
struct Cluster {
  Cluster(const Launch &launch, const Memory &memory);
  Cluster(const Cluster &) = delete;
  ~Cluster();

  /// Runs the blocks from `first` on to their ends.
  void run(uint32_t first);

  const Launch &launch;
  const Memory &memory;
  std::vector<Block> blocks;
  std::deque<BulkCopy> bulk;
  uint64_t executed = 0;
  /// Warps that have come to the barrier of the cluster.
  std::vector<Warp *> atClusterBarrier;
  Clock clusterKnown, clusterArriving;
  /// Bulk copies that tell a barrier, so far: the time of the agent that makes
  /// them.
  uint32_t copyTime = 0;
  size_t numWarps() const { return blocks.size() * blocks[0].warps.size(); }
  size_t copyAgent() const { return numWarps(); }
  /// By warp: the time up to which its writes are behind a fence, so that
  /// copies to memory find them.
  std::vector<uint32_t> fenced;
  /// The agent that makes a warp's products.
  size_t groupAgent(const Warp &warp) const;
  /// The agent that makes a warp's bulk copies to memory.
  size_t storeAgent(const Warp &warp) const {
    return groupAgent(warp) + numWarps();
  }
  /// Makes the oldest bulk copy.
  void makeBulkCopy();

private:
  bool turn(bool &ended);
  [[noreturn]] void reportDeadlock() const;
};

/// Runs a kernel over its grid; throws the first Fault.
void runKernel(const Launch &launch, const Memory &memory);

// Barriers in shared memory (mbarrier): a word of counts, see Barriers.cpp.
uint64_t &barrierWord(Warp &warp, uint64_t address, unsigned lane,
                      Block *&owner);
void completeTransaction(uint64_t &barrier, PhaseClock &clocks, int64_t bytes);

/// A bulk copy without bytes, by an agent that knows what the warp knows. One
/// to memory is of a lane, and knows what is behind a fence.
BulkCopy beginBulkCopy(Warp &warp);
BulkCopy beginBulkStore(Warp &warp, unsigned lane);
/// Looks at bytes that a bulk copy reads or writes, as the agent that makes it.
char *watch(Warp &warp, BulkCopy &copy, uint64_t address, unsigned bytes,
            Space space, unsigned lane, Use use);

} // namespace ptx

#endif // GDN_TEST_PTX_MACHINE_H
