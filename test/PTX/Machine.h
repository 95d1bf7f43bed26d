// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs kernels: warps of 32 lanes, blocks of warps, clusters of blocks. Lanes
// of a warp that went apart run the earliest place first and meet again where
// their places are equal. Copies that a GPU makes on the side are made as late
// as the program allows, so that a wait that is missing shows.

#ifndef GDN_TEST_PTX_MACHINE_H
#define GDN_TEST_PTX_MACHINE_H

#include "GlobalRaces.h"
#include "Memory.h"
#include "Program.h"
#include "Races.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace ptx {

struct Block;
struct Cluster;
class Paths;

/// What an access does with the bytes: those of barriers are not watched.
/// Strong ones, in global memory, are in no race with each other.
enum class Use { read, write, barrier, strongRead, strongWrite, readOnly };

/// A copy by cp.async of one lane, and the lane's group that it belongs to.
struct LaneCopy {
  int lane = 0;
  int64_t group = 0;
  /// When it was asked for, by the time of the agent that makes it.
  uint32_t time = 0;
  uint64_t to = 0, from = 0;
  unsigned bytes = 0, bytesFrom = 0;
};

/// How a register was used, in kernels with products of warpgroups.
struct RegisterUse {
  /// When another instruction has used it last: before which wgmma.fence,
  /// counted from 1, in which line, and whether that has written it.
  uint32_t used = 0;
  int line = 0;
  bool isWritten = false;
  /// Constants and special registers are none.
  bool isRegister = true;
  /// The last product that has it as part of A, with its line.
  uint32_t source = 0;
  int sourceLine = 0;
  /// The columns of the last product that adds to it, and when that was.
  uint32_t columns = 0, added = 0;
};

/// What a warp's own times were when something was told: for shared memory, and
/// for reads and writes of global memory.
struct OwnTimes {
  uint32_t shared = 0, reads = 0, writes = 0;
};

/// As a warp has it for shared memory: which lanes have used global memory.
struct GlobalUse {
  Mask wrote = 0, read = 0;
  uint32_t wroteTime = 0, readTime = 0, meetTime = 0, exchangeTime = 0;
  /// What lanes knew at a fence: an atomic behind it tells that.
  struct Fence {
    Mask lanes = 0;
    Scope scope = Scope::gpu;
    Knowledge known;
    std::array<OwnTimes, kLanes> times;
  };
  std::vector<Fence> fences;
  /// What lanes have seen through atomics: a fence behind those learns it.
  struct Seen {
    Mask lanes = 0;
    Told told;
  };
  std::vector<Seen> seen;
  /// What of that lanes know to be read: others write what depends on it once
  /// they have exchanged values.
  Knowledge readsSeen;
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
  /// The instruction that it runs, as an edge.
  int edge = 0;
  bool isAtBarrier = false;
  /// Whether it has come to the cluster's barrier and not yet waited.
  bool hasArrived = false;
  std::vector<Lanes> values;
  std::vector<LaneCopy> copies;
  std::array<int64_t, kLanes> groups{};
  /// Local memory, lane after lane.
  std::vector<char> local;
  /// The allocation that was used last.
  Range lastRange;
  /// What all lanes of the warp know, and what some know that have waited
  /// while others have not.
  Knowledge knowledge, known;
  Mask knowing = 0;
  /// The warp as it accesses memory, and who does so for it.
  Access self;
  const Access *as = &self;
  /// Lanes that wrote since all have met, or read since they have exchanged
  /// values, and when the last one did.
  Mask wrote = 0, read = 0;
  uint32_t wroteTime = 0, readTime = 0;
  GlobalUse global;
  /// Copies by cp.async: how many instructions asked for some.
  uint32_t copyTime = 0;
  /// Products of warpgroups: how many were issued, and the last one of each
  /// group that was committed and not waited for.
  uint32_t groupTime = 0;
  std::vector<uint32_t> groupEnds;
  /// By value, the last product that adds to it, with its line, and the last
  /// one that is over.
  std::vector<std::pair<uint32_t, int>> sums;
  uint32_t groupDone = 0;
  /// By value, how products and others use it; and the wgmma.fence that were
  /// executed, as edges.
  std::vector<RegisterUse> registers;
  std::vector<int> registerFences;
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
  /// What `lanes` did up to here becomes known to whom `to` is given.
  void release(Knowledge &to, Mask lanes);
  void acquire(const Knowledge &from, Mask lanes);
  /// A load to the first `count` operands begins, maybe from shared memory.
  void beginLoad(const Instruction &instruction, unsigned count);
  PendingReads &pendingReads();
  /// fence.proxy.async by `lanes`.
  void fence(Mask lanes, bool ofShared, bool ofGlobal);
  /// griddepcontrol.wait by `lanes`: clusters below `launches` are over.
  void endLaunchAhead(uint32_t launches, Mask lanes);
  /// The last times of which `lanes` can tell: others may have written since
  /// all met, or read.
  OwnTimes releasable(Mask lanes) const;
  /// Puts the warp's own times into a clock.
  void setTimes(Clock &clock, const OwnTimes &times) const;
  /// A new time: what comes now was not told before.
  void tick();
  /// All lanes are in order now, or what they have read is.
  void meet();
  void exchange();
  /// The end, up to `time`, of what `agent` does for `lanes`.
  void learnEnd(size_t agent, uint32_t time, bool isAsync, Mask lanes);
  const Knowledge &knowledgeOf(unsigned lane) const {
    return knowing >> (lane % kLanes) & 1 && lane < kLanes ? known : knowledge;
  }
  /// An agent that works for a lane and knows what that one knows.
  Access sideOf(size_t agent, uint32_t time, unsigned lane, bool isAsync) const;
  /// Calls f() with accesses made by `side`.
  template <typename F> void accessAs(const Access &side, F f) {
    as = &side;
    try {
      f();
    } catch (...) {
      as = &self;
      throw;
    }
    as = &self;
  }
  /// Makes the copies of `lane` whose group is before `end`.
  void makeCopies(int lane, int64_t end);

  enum class Outcome { ended, blocked, idle, running };
  /// Runs until the warp waits, or for a while.
  Outcome run(const Kernel &kernel, uint64_t &executed, uint64_t turn);

private:
  bool choose(const Kernel &kernel, Mask &lanes, int &place, int &next) const;
  OwnTimes timesIn(const Clock &clock) const;
  void setMeetTime(uint32_t time, uint32_t exchangeTime);
  void setGlobalMeetTime(uint32_t time, uint32_t exchangeTime);
  template <typename F> void learn(Mask lanes, F f);
};

/// Follows an access to global memory of a lane, or of who works for it.
void watchGlobal(Warp &warp, uint64_t address, unsigned bytes, unsigned lane,
                 Use use);
/// An atomic of a lane tells what it knows into a word's `to`, or learns what
/// that has. The word is locked.
void tellByAtomic(Warp &warp, Told &to, unsigned lane, Scope scope,
                  bool releases);
void learnByAtomic(Warp &warp, const Told &from, unsigned lane, Scope scope,
                   bool acquires);
/// fence.acq_rel, fence.sc, membar.
void fenceMemory(Warp &warp, Mask lanes, Scope scope);

/// Reports `instruction` if it uses sums of products that may not be there, or
/// writes what such products read.
void checkSums(Warp &warp, const Instruction &instruction);
/// Reports a product whose registers were used behind the last wgmma.fence:
/// `sums` and, if `hasRegisters`, A.
void checkRegisters(Warp &warp, const Instruction &product, unsigned columns,
                    bool hasRegisters);
/// Keeps which registers `instruction`, which is no product, has used.
void noteUses(Warp &warp, const Instruction &instruction);

/// A barrier of a block, as bar.sync knows it.
struct Barrier {
  int arrived = 0, expected = 0;
  std::vector<Warp *> waiting;
  Knowledge known;
};

/// What those who arrive at a barrier in shared memory know, in this phase and
/// in those before.
struct PhaseClock {
  Knowledge arriving, ended;
  uint32_t phase = 0;
  /// Who makes the copies that it is told of; 0: there are none.
  size_t copies = 0;
  /// Who has initialised it, when, and when that was fenced for others.
  bool isInitialised = false;
  size_t agent = 0;
  uint32_t time = 0, fenceTime = 0;
  int line = 0, fence = 0;
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
  /// By agent, when and in which line one from outside used the shared memory
  /// last, and what warps knew when they ended.
  std::vector<std::pair<uint32_t, int>> visits;
  Knowledge leaving;
  /// Whether it has let the next launch begin.
  bool hasReleased = false;

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
  /// Who makes it, and when.
  size_t agent = 0;
  uint32_t time = 0;
};

struct Launch {
  const Kernel *kernel = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1}, threads{1, 1, 1};
  uint32_t cluster = 1;
  size_t dynamicSharedBytes = 0;
  std::vector<char> parameters;
  /// Whether reads of bytes of shared memory are told that nobody has written.
  /// Their values may go nowhere.
  bool findsUnwritten = true;
  /// Of whose turn it is, for how long, and when bulk copies are made; 0: warps
  /// in their order, and copies as late as the program allows.
  uint64_t seed = 0;
  /// Warps, by bits, that stay behind: it is their turn where no other can go
  /// on.
  uint64_t late = 0;
  /// The most instructions of a cluster's warps together; 0: any number.
  uint64_t limit = 0;
  /// Whether it may begin before the launch ahead in its stream has ended.
  bool isDependent = false;
  const void *stream = nullptr;
  /// Its place among launches, which runKernel() sets.
  LaunchOrder *order = nullptr;
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
  Knowledge clusterKnown, clusterArriving;
  size_t numWarps() const { return blocks.size() * blocks[0].warps.size(); }
  // Agents: warps, and for each one what makes its copies by cp.async, its
  // products, and its bulk copies to memory; then those that make the bulk
  // copies that a barrier is told of.
  enum class Side { warp, laneCopies, products, stores, copies };
  static constexpr size_t kCopyAgents = 32;
  size_t numAgents() const { return 4 * numWarps() + kCopyAgents; }
  size_t agentOf(const Warp &warp, Side side) const {
    return static_cast<size_t>(side) * numWarps() + warp.self.agent;
  }
  Side sideOf(size_t agent) const {
    return static_cast<Side>(std::min<size_t>(agent / numWarps(), 4));
  }
  /// The agent of a barrier's copies; barriers beyond share agents.
  size_t copyAgent(PhaseClock &clocks) {
    if (!clocks.copies)
      clocks.copies = 4 * numWarps() + numCopied++ % kCopyAgents;
    return clocks.copies;
  }
  size_t numCopied = 0;
  /// By warp.
  std::vector<PendingReads> pendingReads;
  std::array<uint32_t, kCopyAgents> copyTimes{};
  // Behind those, what warps read and write in global memory, whose lanes meet
  // at other times, and what bulk copies write there, which is over later than
  // what they read.
  size_t readsOf(size_t warp) const { return numAgents() + warp; }
  size_t writesOf(size_t warp) const { return readsOf(warp) + numWarps(); }
  size_t storesOf(size_t warp) const { return readsOf(warp) + 2 * numWarps(); }
  size_t numTimes() const { return readsOf(3 * numWarps()); }
  /// Where paths are kept, one more stands for the launch ahead, whose end it
  /// tells at time 1.
  size_t launchAgent() const { return numTimes(); }
  /// Its number among the clusters of all launches, and pages it has used.
  uint32_t number = 0;
  GlobalPages pages;

  /// What is wrong, by the two PTX lines and the kind: each pair once.
  std::map<std::tuple<int, int, int>, std::string> findings;
  /// Keeps what is wrong with an access of `warp` to shared memory of `owner`.
  void report(const Warp &warp, const Block &owner, const Access &access,
              const Conflict &conflict, unsigned bytes);
  /// The same with sums of products that may not be there.
  void reportSums(const Warp &warp);
  /// The same with blocks that end before others have used their memory.
  void reportVisits();
  /// The same with a barrier, at byte `offset`.
  void reportBarrier(const Warp &warp, const Block &owner, size_t offset,
                     const PhaseClock &clocks, bool isCopy);
  /// Makes the oldest bulk copy.
  void makeBulkCopy();

private:
  /// The next number of the schedule's, below `end`; 0 without a seed.
  uint64_t choose(uint64_t end);
  uint64_t chosen = 0;
  std::vector<Warp *> order;
  bool turn(bool &ended);
  bool turnOf(Warp &warp);
  [[noreturn]] void reportDeadlock() const;
};

/// Kinds of findings behind those of Conflict::Kind and of barriers, sums and
/// visits, with the names that JSON has for them.
enum FindingKind { kReadOnly = 8, kOtherLaunch, kRegisters };

/// What was found in a launch, by PTX lines and kind.
struct Findings : Fault {
  using All = std::map<std::tuple<int, int, int>, std::string>;
  Findings(const std::string &text, All all)
      : Fault(text), all(std::move(all)) {}
  /// Each as an object of JSON in a line of its own.
  std::string json(const Kernel &kernel) const;
  All all;
};

/// A line for each.
std::string describeFindings(const Findings::All &findings);

/// "PTX line 2: ld.shared.b32"
std::string atLine(const Kernel &kernel, int line);
/// "<kernel>: block 0, warp 1, PTX line 2: ld.shared.b32"
std::string describe(const Warp &warp, const Kernel &kernel, int place);

/// Runs a kernel over its grid; throws what was found, or the first Fault.
/// Adds what orders accesses to `paths`, if it is there.
void runKernel(const Launch &launch, const Memory &memory,
               Paths *paths = nullptr);

/// Keeps what is wrong with an access to global memory.
void reportGlobal(const Warp &warp, const GlobalAccess &access,
                  const GlobalConflict &conflict, unsigned bytes);

// Barriers in shared memory (mbarrier): a word of counts, see Barriers.cpp.
uint64_t &barrierWord(Warp &warp, uint64_t address, unsigned lane,
                      Block *&owner);
void completeTransaction(uint64_t &barrier, PhaseClock &clocks, int64_t bytes);

/// Begins a bulk copy that tells a barrier, or one of a lane to memory.
void beginBulkCopy(Warp &warp, BulkCopy &copy, uint64_t barrier, unsigned lane);
void beginBulkStore(Warp &warp, BulkCopy &copy, unsigned lane);
/// Whether the warp, or a bulk copy that it starts, finds the barrier ready.
void checkBarrier(Warp &warp, unsigned lane, const uint64_t &word, Block &owner,
                  bool isCopy);

} // namespace ptx

#endif // GDN_TEST_PTX_MACHINE_H
