// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which edges order two accesses to global memory: of a cluster, of two
// clusters by way of atomics, and of two launches.

#include "GlobalRaces.h"
#include "Paths.h"

using namespace ptx;

/// The clock of `clocks` by which a read or a write of another cluster is over.
static const Clock &clockOf(const OtherClocks &clocks, const GlobalEntry &entry,
                            bool isAsync, bool wasRead) {
  auto isIn = [&](const Clock &clock) {
    return entry.agent < clock.size() && entry.time <= clock[entry.agent];
  };
  const Clock &whole = isAsync ? clocks.async : clocks.all;
  if (!wasRead || isIn(whole))
    return whole;
  return isIn(clocks.reads) ? clocks.reads : clocks.used;
}

void ptx::noteGlobalOrder(const GlobalEntry &other, const GlobalAccess &access,
                          bool wasRead) {
  Paths &paths = *Paths::current;
  const Knowledge &known = *access.known;
  const GlobalEntry &mine = access.entry;
  const bool isAsync = access.isAsync && !wasRead;
  if (other.cluster < access.order->first) {
    // Lines of other kernels have no names here.
    if (other.cluster < access.order->known)
      paths.noteEdge(0, mine.line, Paths::kEndOfLaunch, Paths::kEndOfLaunch);
    const size_t launch = access.launchAgent;
    if (launch < known.all.size() && known.all[launch])
      paths.note(0, launch, 1, mine.line, known.all);
    return;
  }
  if (other.cluster != mine.cluster) {
    if (!known.others)
      return;
    auto found = known.others->find(other.cluster);
    if (found != known.others->end())
      paths.note(other.line, other.agent, other.time, mine.line,
                 clockOf(found->second, other, isAsync, wasRead), wasRead,
                 /*extraEdge=*/0, other.cluster);
    return;
  }
  if (other.agent != (wasRead ? access.ownReads : access.ownWrites))
    paths.note(other.line, other.agent, other.time, mine.line,
               isAsync ? known.async : known.all, wasRead);
  else if (areOthers(other.lane, mine.lane))
    paths.noteLanes(other.line, other.agent, other.time, mine.line, wasRead);
}
