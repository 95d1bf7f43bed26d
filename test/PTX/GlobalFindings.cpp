// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said of two accesses to global memory that are not in order: both
// instructions, of whichever launch, the bytes, and what would have ordered
// them.

#include "Machine.h"

#include <sstream>

using namespace ptx;

static std::string nameWarp(const Cluster &cluster, size_t warp) {
  const size_t perBlock = cluster.blocks[0].warps.size();
  std::string text = "warp " + std::to_string(warp % perBlock);
  if (cluster.blocks.size() > 1)
    text += " of the cluster's block " + std::to_string(warp / perBlock);
  return text;
}

namespace {
/// Who made an access of the launch: a warp, or what works for it.
struct Agent {
  enum Kind { warp, laneCopies, stores, copies };

  Agent(const Cluster &cluster, const GlobalEntry &entry) : lane(entry.lane) {
    size_t number = entry.agent % cluster.numWarps();
    if (entry.agent >= cluster.readsOf(0)) {
      const size_t behind = entry.agent - cluster.readsOf(0);
      number = behind % cluster.numWarps();
      kind = behind >= 2 * cluster.numWarps() ? stores : warp;
    } else {
      const Cluster::Side side = cluster.sideOf(entry.agent);
      kind = side == Cluster::Side::copies   ? copies
             : side == Cluster::Side::stores ? stores
                                             : laneCopies;
    }
    name = nameWarp(cluster, number);
  }
  std::string text() const {
    switch (kind) {
    case warp:
      return lane < kLanes ? name + ", lane " + std::to_string(lane) : name;
    case laneCopies:
      return "a copy by cp.async of " + name;
    case stores:
      return "a bulk copy to memory of " + name;
    case copies:
      return "a bulk copy that a barrier is told of";
    }
    return name;
  }

  Kind kind = warp;
  std::string name;
  unsigned lane;
};
} // namespace

/// What would have ordered two accesses of the same cluster.
static std::string edgeInCluster(const Cluster &cluster,
                                 const GlobalAccess &access,
                                 const GlobalConflict &conflict) {
  const GlobalEntry &other = conflict.other;
  if (conflict.isOfLanes)
    return "no bar.warp.sync between lanes of the warp";
  if (conflict.kind != Conflict::writesRead &&
      other.time <= access.known->all[other.agent])
    return "a barrier orders the two, but no fence.proxy.async does";
  const Agent agent(cluster, other);
  switch (agent.kind) {
  case Agent::warp:
    return "no barrier behind it: of " + agent.name + " up to time " +
           std::to_string(access.known->all[other.agent]) +
           " is known here, and this was at " + std::to_string(other.time);
  case Agent::laneCopies:
    return "no cp.async.wait_group of " + agent.name + " that others know of";
  case Agent::stores:
    return "no cp.async.bulk.wait_group, other than .read, of " + agent.name +
           ", for a group that was committed, that others know of";
  case Agent::copies:
    return "no wait for the end of a phase of its barrier";
  }
  return "";
}

static std::string edgeOf(const Cluster &cluster, const GlobalAccess &access,
                          const GlobalConflict &conflict) {
  const GlobalEntry &other = conflict.other;
  const LaunchOrder &order = *access.order;
  if (conflict.isReadOnly)
    return "ld.global.nc is for what nobody writes while the kernel runs";
  if (other.cluster == access.entry.cluster)
    return edgeInCluster(cluster, access, conflict);
  if (other.cluster < order.first)
    return !access.known->isAheadOver
               ? "no griddepcontrol.wait before it here"
               : "the launch ahead has not waited for that one";
  if (other.cluster >= order.first + order.count)
    return "no order of the two launches";
  if (access.isAsync && access.known->others &&
      access.known->others->count(other.cluster) &&
      conflict.kind != Conflict::writesRead)
    return "no release and acquire, and fence.proxy.async, of atomics between "
           "the blocks";
  if (conflict.kind == Conflict::writesRead)
    return "no fence and atomic of a counter behind it, nor an atomic that "
           "depends on what was read, which is seen here";
  return "no fence and an atomic of a counter behind it (or a release) which "
         "is seen here by an atomic and a fence (or an acquire)";
}

void ptx::reportGlobal(const Warp &warp, const GlobalAccess &access,
                       const GlobalConflict &conflict, unsigned bytes) {
  Cluster &cluster = *warp.block->cluster;
  const Launch &launch = cluster.launch;
  const GlobalEntry &mine = access.entry, &other = conflict.other;
  const bool isOfLaunch =
      other.cluster >= launch.order->first &&
      other.cluster < launch.order->first + launch.order->count;
  const int kind = conflict.isReadOnly ? kReadOnly
                   : isOfLaunch        ? static_cast<int>(conflict.kind)
                                       : kOtherLaunch;
  std::string &text = cluster.findings[{mine.line, other.line, kind}];
  if (!text.empty())
    return;
  const Kernel &kernel = *launch.kernel;
  std::ostringstream out;
  out << kernel.name << ": block " << warp.block->id[0] << ", "
      << Agent(cluster, mine).text() << ", " << atLine(kernel, mine.line)
      << ": a race with ";
  if (isOfLaunch) {
    out << atLine(kernel, other.line) << " (" << Agent(cluster, other).text();
    if (other.cluster != mine.cluster)
      out << " of block "
          << (other.cluster - launch.order->first) * launch.cluster;
    out << ")";
  } else {
    auto owner = cluster.memory.races().launchOf(other.cluster);
    out << (owner ? owner->kernel->name + ", " +
                        atLine(*owner->kernel, other.line)
                  : "PTX line " + std::to_string(other.line))
        << " (an earlier launch)";
  }
  const Range range = cluster.memory.find(conflict.address);
  out << " over global memory at byte " << conflict.address - range.begin
      << " of an allocation of " << range.end - range.begin << ", of " << bytes
      << " bytes: "
      << (conflict.kind == Conflict::readsWrite    ? "reads what that writes"
          : conflict.kind == Conflict::writesWrite ? "writes what that writes"
                                                   : "writes what that reads")
      << "; " << edgeOf(cluster, access, conflict);
  text = out.str();
}
