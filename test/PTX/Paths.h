// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which edges order two accesses: for scripts that take one away and ask which
// other one orders the same accesses. Kept only where a launch asks for it.

#ifndef GDN_TEST_PTX_PATHS_H
#define GDN_TEST_PTX_PATHS_H

#include "Knowledge.h"
#include "Program.h"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

namespace ptx {

/// An instruction as one number: its line, and which one of the line it is.
inline int edgeOf(const Instruction &instruction) {
  return instruction.line * 8 + instruction.part;
}

/// Where a clock has its times from. Nothing is taken out of it, so that
/// another trail can begin at what it was at some time.
struct Trail {
  struct Step {
    uint32_t time;
    /// The instruction by which that time became known; 0: none.
    int edge;
    /// Whose clock told it, and how many steps that had then.
    const Trail *from;
    size_t fromSteps;
    /// Whether some lanes of a warp told it, who know of others' accesses
    /// because all have met.
    bool isOfLanes;
  };
  /// By agent, in the order of times.
  std::vector<std::vector<Step>> steps;
  /// By agent, edges and the last time that each of them told, known or not.
  std::vector<std::vector<std::pair<int, uint32_t>>> told;
};

/// Accesses in two lines that are in order.
struct OrderedPair {
  /// Sets of edges that ordered them, each edge the first one that did.
  std::set<std::vector<int>> paths;
  /// Edges that told the second of the first, be it known already.
  std::set<int> told;
};

/// What one thread has seen of a launch.
class Paths {
public:
  /// That of this thread, if paths are kept.
  static inline thread_local Paths *current = nullptr;
  /// As an edge: a launch was over before the next one began.
  static constexpr int kEndOfLaunch = 0;

  /// The instruction that is executed, and whether it tells what some lanes
  /// know.
  int edge = 0;
  bool isOfLanes = false;

  explicit Paths(const Kernel &kernel)
      : kernel_(kernel), runs_(kernel.code.size()) {}
  /// Another cluster: clocks of its own have learned nothing.
  void begin(uint32_t cluster, size_t agents);
  void execute(size_t place) {
    edge = edgeOf(kernel_.code[place]);
    ++runs_[place];
  }
  void raise(Clock &clock, size_t agent, uint32_t time) {
    step(clock, agent, time, nullptr);
  }
  void join(Clock &clock, const Clock &other, size_t begin, size_t end);
  /// A copy of a clock knows what that knew, by its edges.
  void copy(Clock &clock, const Clock &other);
  /// Lanes of a warp are in order up to a time, or what they have read is.
  void meet(size_t agent, uint32_t time, uint32_t exchangeTime);
  /// What an agent was asked to do up to `time` is a group.
  void commit(size_t agent, uint32_t time);

  /// What `agent` did at `time` in `line` is in order with what is done in
  /// `otherLine`, as `clock` knows. The agent is one of another `cluster`
  /// unless that is 0.
  void note(int line, size_t agent, uint32_t time, int otherLine,
            const Clock &clock, bool isRead = false, int extraEdge = 0,
            uint32_t cluster = 0);
  /// The same with lanes of a warp.
  void noteLanes(int line, size_t agent, uint32_t time, int otherLine,
                 bool isRead);
  /// The same with one edge, and a later one that tells what was known.
  void noteEdge(int line, int otherLine, int edge, int laterEdge);
  /// The same with an edge that tells what was known.
  void noteTold(int line, int otherLine, int edge) {
    pairs_[{line, otherLine}].told.insert(edge);
  }
  void merge(const Paths &other);
  /// An object of JSON in a line for the edges, with how often each was
  /// executed and which others told the same again; and one for each pair.
  std::string json() const;

private:
  struct Meeting {
    uint32_t time;
    int edge;
  };
  /// By edge, those by which the same agents knew what it told without it: the
  /// one before if it told nothing new, and else the next one. An edge behind
  /// which nothing more is told has the end of the launch.
  using Repeats = std::map<int, std::set<int>>;
  void addRepeats(Repeats &repeats) const;
  void step(Clock &clock, size_t agent, uint32_t time, const Clock *from);
  bool isNew(int line, size_t agent, uint32_t time, int otherLine,
             const void *by);

  const Kernel &kernel_;
  std::vector<uint64_t> runs_;
  std::deque<Trail> trails_;
  /// Of the agents of a cluster, by agent.
  struct Order {
    std::vector<std::vector<Meeting>> meetings, exchanges, commits;
  };
  /// By the number of the cluster; numbers are those of GlobalRaces.
  std::map<uint32_t, Order> orders_;
  uint32_t cluster_ = 0;
  std::unordered_set<uint64_t> seen_;
  std::map<std::pair<int, int>, OrderedPair> pairs_;
  /// Of those that were merged.
  Repeats repeats_;
};

} // namespace ptx

#endif // GDN_TEST_PTX_PATHS_H
