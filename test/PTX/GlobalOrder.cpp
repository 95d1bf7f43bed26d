// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp in global memory: its accesses, and what lanes tell each other by
// atomics with release and acquire, or by fences around relaxed ones.

#include "Machine.h"
#include "Paths.h"

using namespace ptx;

/// Atomics, before a fence, of which a warp keeps what they have seen.
static constexpr size_t kMostSeen = 64;

void ptx::watchGlobal(Warp &warp, uint64_t address, unsigned bytes,
                      unsigned lane, Use use) {
  Cluster &cluster = *warp.block->cluster;
  const Access *as = warp.as;
  const size_t self = warp.self.agent;
  GlobalUse &global = warp.global;
  const bool writes = use == Use::write || use == Use::strongWrite;
  GlobalAccess access;
  access.known = &warp.knowledgeOf(lane);
  access.order = cluster.launch.order;
  access.launchAgent = cluster.launchAgent();
  GlobalEntry &entry = access.entry;
  entry.cluster = cluster.number;
  entry.time = as->time;
  entry.line = warp.self.line;
  entry.flags = use == Use::strongRead || use == Use::strongWrite
                    ? GlobalEntry::strong
                : use == Use::readOnly ? GlobalEntry::readOnly
                                       : uint8_t(0);
  if (as == &warp.self) {
    access.ownReads = cluster.readsOf(self);
    access.ownWrites = cluster.writesOf(self);
    access.meetTime = global.meetTime;
    access.exchangeTime = global.exchangeTime;
    entry.agent =
        static_cast<uint16_t>(writes ? access.ownWrites : access.ownReads);
    entry.lane = static_cast<uint8_t>(lane);
    (writes ? global.wrote : global.read) |= Mask(1) << lane;
    (writes ? global.wroteTime : global.readTime) = warp.self.time;
  } else {
    // Bulk copies to memory have written later than they have read.
    const bool isStore =
        writes && cluster.sideOf(as->agent) == Cluster::Side::stores;
    entry.agent =
        static_cast<uint16_t>(isStore ? cluster.storesOf(self) : as->agent);
    entry.lane = kWholeWarp;
    access.isAsync = as->writes != as->reads;
  }
  GlobalRaces &races = cluster.memory.races();
  GlobalConflict conflict =
      writes ? races.write(address, bytes, access, cluster.pages)
             : races.read(address, bytes, access, cluster.pages);
  if (conflict.kind != Conflict::none)
    reportGlobal(warp, access, conflict, bytes);
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

/// The part of `told` that one block tells so far; what launches that are over
/// have told goes.
static Knowledge &partOf(Told &told, const Warp &warp, Scope scope) {
  const Cluster &cluster = *warp.block->cluster;
  const uint32_t first = cluster.launch.order->known;
  std::vector<Told::Part> &parts = told.parts;
  parts.erase(std::remove_if(
                  parts.begin(), parts.end(),
                  [&](const Told::Part &part) { return part.cluster < first; }),
              parts.end());
  const uint32_t rank = scope == Scope::gpu ? 0 : warp.block->rank;
  for (Told::Part &part : parts)
    if (part.scope == scope &&
        (scope == Scope::gpu ||
         (part.cluster == cluster.number && part.block == rank))) {
      part.cluster = cluster.number;
      return part.known;
    }
  parts.push_back({cluster.number, rank, scope, {}});
  return parts.back().known;
}

namespace {
/// Where paths are kept: what is told now, some lanes of a warp tell.
struct OfLanes {
  explicit OfLanes(bool isOfLanes) {
    if (Paths *paths = Paths::current)
      paths->isOfLanes = isOfLanes;
  }
  ~OfLanes() {
    if (Paths *paths = Paths::current)
      paths->isOfLanes = false;
  }
};
} // namespace

/// What a warp of `cluster` knows, as others outside of it may learn it.
static void tell(Knowledge &to, const Knowledge &known, uint32_t cluster) {
  auto told = std::make_shared<Others>();
  OtherClocks &own = (*told)[cluster];
  own.all = known.all;
  own.async = known.async;
  to.addOthers(told);
  to.addOthers(known.others);
  to.launches = std::max(to.launches, known.launches);
  to.isAheadOver |= known.isAheadOver;
}

void ptx::tellByAtomic(Warp &warp, Told &to, unsigned lane, Scope scope,
                       bool releases) {
  const Mask bit = Mask(1) << lane;
  const uint32_t cluster = warp.block->cluster->number;
  Knowledge now;
  warp.release(now, bit);
  // Copies of what it knows tell of lanes, too.
  OfLanes ofLanes(bit != warp.alive);
  if (releases)
    return tell(partOf(to, warp, scope), now, cluster);
  // The last fence of the lane, whose scope counts, too.
  for (auto fence = warp.global.fences.rbegin();
       fence != warp.global.fences.rend(); ++fence)
    if (fence->lanes & bit) {
      Knowledge before = fence->known;
      warp.setTimes(before.all, fence->times[lane]);
      tell(partOf(to, warp, std::min(scope, fence->scope)), before, cluster);
      break;
    }
  // What is read is read before the atomic if others have waited for it since,
  // or if the atomic depends on it.
  auto told = std::make_shared<Others>();
  OtherClocks &own = (*told)[cluster];
  const size_t reads = warp.block->cluster->readsOf(warp.self.agent);
  own.reads = now.all;
  own.used.resize(reads + 1);
  own.used[reads] = now.all[reads];
  own.reads[reads] = std::min(now.all[reads], warp.global.meetTime);
  partOf(to, warp, scope).addOthers(told);
}

/// What is over for reads, of all that `known` has.
static Knowledge readsOf(const Knowledge &known) {
  Knowledge reads;
  if (!known.others)
    return reads;
  auto told = std::make_shared<Others>();
  for (const auto &[cluster, clocks] : *known.others) {
    OtherClocks &to = (*told)[cluster];
    to.reads = clocks.reads;
    join(to.reads, clocks.all);
    to.used = clocks.used;
  }
  reads.others = std::move(told);
  return reads;
}

/// Learns all of it; of the own cluster, as by a barrier.
static void learnTold(Warp &warp, const Told &told, Mask lanes) {
  for (const Told::Part &part : told.parts) {
    Knowledge known = part.known;
    if (known.others)
      if (auto own = known.others->find(warp.block->cluster->number);
          own != known.others->end()) {
        known.all = own->second.all;
        known.async = own->second.async;
      }
    warp.acquire(known, lanes);
  }
}

/// Adds what `part` has of one cluster.
static void ofCluster(Told &to, const Told::Part &part, uint32_t cluster) {
  if (!part.known.others)
    return;
  auto found = part.known.others->find(cluster);
  if (found == part.known.others->end())
    return;
  Told::Part own = {cluster, 0, Scope::cluster, {}};
  own.known.others = std::make_shared<Others>(Others{*found});
  to.parts.push_back(std::move(own));
}

void ptx::learnByAtomic(Warp &warp, const Told &from, unsigned lane,
                        Scope scope, bool acquires) {
  const Cluster &cluster = *warp.block->cluster;
  const Mask bit = Mask(1) << lane;
  Told told;
  for (const Told::Part &part : from.parts) {
    const bool isSameCluster = part.cluster == cluster.number;
    if (part.scope != Scope::gpu) {
      // Both have to reach the other one.
      if (isSameCluster && (part.block == warp.block->rank ||
                            std::min(scope, part.scope) == Scope::cluster))
        told.parts.push_back(part);
    } else if (scope == Scope::gpu) {
      told.parts.push_back(part);
    } else {
      ofCluster(told, part, cluster.number);
    }
  }
  if (told.parts.empty())
    return;
  if (acquires)
    return learnTold(warp, told, bit);
  for (const Told::Part &part : told.parts) {
    const Knowledge reads = readsOf(part.known);
    warp.acquire(reads, bit);
    warp.global.readsSeen.addOthers(reads.others);
  }
  // Loops that wait see the same over and over.
  if (warp.global.seen.size() == kMostSeen)
    warp.global.seen.erase(warp.global.seen.begin());
  warp.global.seen.push_back({bit, std::move(told)});
}

void ptx::fenceMemory(Warp &warp, Mask lanes, Scope scope) {
  // What atomics of these lanes have seen is learned now.
  std::vector<GlobalUse::Seen> seen = std::move(warp.global.seen);
  warp.global.seen.clear();
  for (GlobalUse::Seen &one : seen) {
    if (!(one.lanes & lanes)) {
      warp.global.seen.push_back(std::move(one));
      continue;
    }
    Told told;
    for (Told::Part &part : one.told.parts)
      if (scope == Scope::gpu || part.scope != Scope::gpu)
        told.parts.push_back(std::move(part));
      else
        ofCluster(told, part, warp.block->cluster->number);
    learnTold(warp, told, one.lanes & lanes);
  }
  GlobalUse::Fence fence;
  fence.lanes = lanes;
  fence.scope = scope;
  for (Mask left = lanes; left; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    fence.times[lane] = warp.releasable(Mask(1) << lane);
    fence.known.clear();
    fence.known.add(warp.knowledgeOf(lane));
  }
  for (GlobalUse::Fence &before : warp.global.fences)
    before.lanes &= ~lanes;
  warp.global.fences.erase(
      std::remove_if(warp.global.fences.begin(), warp.global.fences.end(),
                     [](const GlobalUse::Fence &one) { return !one.lanes; }),
      warp.global.fences.end());
  warp.global.fences.push_back(std::move(fence));
  warp.tick();
}
