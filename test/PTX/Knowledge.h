// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an agent knows of the times of all agents. A warp is one, and so is what
// it starts on the side: copies by cp.async, products, bulk copies.

#ifndef GDN_TEST_PTX_KNOWLEDGE_H
#define GDN_TEST_PTX_KNOWLEDGE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace ptx {

struct Trail;

/// By agent: up to which of its times its work is over.
struct Clock : std::vector<uint32_t> {
  using vector::vector;
  Clock() = default;
  Clock(const Clock &other) : vector(other) { follow(other); }
  Clock(Clock &&) = default;
  Clock &operator=(const Clock &other) {
    if (this == &other)
      return *this;
    vector::operator=(other);
    follow(other);
    return *this;
  }
  Clock &operator=(Clock &&) = default;

  /// By which edges it knows that, where Paths are kept. A copy has one of its
  /// own.
  Trail *trail = nullptr;

private:
  void follow(const Clock &other) {
    trail = nullptr;
    if (other.trail)
      beginTrail(other);
  }
  void beginTrail(const Clock &other);
};

/// Learns of the end of what `agent` did up to `time`, or of all in `other`, or
/// of what that has of the agents from `begin` to `end`.
void raise(Clock &clock, size_t agent, uint32_t time);
void join(Clock &clock, const Clock &other, size_t begin = 0,
          size_t end = SIZE_MAX);
/// Whether paths are kept: what is shared has no trail of its own.
bool keepsPaths();

/// What is known of the agents of a cluster by way of atomics.
struct OtherClocks {
  Clock all, async;
  /// Reads that are over, whatever else is: what an atomic tells that releases
  /// nothing. Of `used`, only those on whose values the atomic depends.
  Clock reads, used;

  void add(const OtherClocks &other) {
    join(all, other.all);
    join(async, other.async);
    join(reads, other.reads);
    join(used, other.used);
  }
};

/// By cluster; numbers of clusters are never used again. Beyond so many, all
/// clusters count as known: a counter of thousands of blocks would take
/// minutes.
using Others = std::map<uint32_t, OtherClocks>;
constexpr size_t kMostOthers = 64;
constexpr uint32_t kAllOthers = ~uint32_t(0);

inline bool hasAll(const Others &others) {
  return !others.empty() && others.rbegin()->first == kAllOthers;
}

/// What is over, and of that what accesses of the asynchronous proxy find: what
/// threads did themselves counts there only behind a fence.
struct Knowledge {
  Clock all, async;
  /// Of other clusters of the launch; null: nothing.
  std::shared_ptr<const Others> others;
  /// Clusters with lower numbers are over, as their launches are; and whether
  /// the launch ahead is.
  uint32_t launches = 0;
  bool isAheadOver = false;

  void reset(size_t agents) {
    all.assign(agents, 0);
    async.assign(agents, 0);
    all.trail = async.trail = nullptr;
    others = nullptr;
    launches = 0;
    isAheadOver = false;
  }
  void clear() { *this = {}; }
  void add(const Knowledge &other) {
    join(all, other.all);
    join(async, other.async);
    addOthers(other.others);
    launches = launches < other.launches ? other.launches : launches;
    isAheadOver |= other.isAheadOver;
  }
  void addOthers(const std::shared_ptr<const Others> &more) {
    if (!more || more == others || (others && hasAll(*others)))
      return;
    if (hasAll(*more) || (!others && !keepsPaths())) {
      others = more;
      return;
    }
    auto joined =
        others ? std::make_shared<Others>(*others) : std::make_shared<Others>();
    for (const auto &[cluster, clocks] : *more)
      (*joined)[cluster].add(clocks);
    if (joined->size() > kMostOthers)
      *joined = {{kAllOthers, {}}};
    others = std::move(joined);
  }
  /// The end of what `agent` did in the asynchronous proxy: both find it.
  void addEnd(size_t agent, uint32_t time) {
    raise(all, agent, time);
    raise(async, agent, time);
  }
  /// fence.proxy.async: a fence anywhere on the way from an access to a later
  /// one is enough. Agents from `begin` to `end`, and those of other clusters,
  /// which access global memory alone.
  void fence(size_t begin, size_t end, bool fencesOthers) {
    join(async, all, begin, end);
    if (!fencesOthers || !others)
      return;
    auto fenced = std::make_shared<Others>(*others);
    for (auto &[cluster, clocks] : *fenced)
      join(clocks.async, clocks.all);
    others = std::move(fenced);
  }
};

} // namespace ptx

#endif // GDN_TEST_PTX_KNOWLEDGE_H
