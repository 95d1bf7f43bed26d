// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies on the side: cp.async in groups, and bulk copies that tell a barrier.
// Those of boxes are in TensorCopies.cpp.

#include "LaneOps.h"
#include "Paths.h"

using namespace ptx;

/// cp.async.cg.shared.global [to], [from], bytes{, bytes that are read}
static Step copyAsync(Warp &warp, const Instruction &i, Mask mask) {
  const size_t agent =
      warp.block->cluster->agentOf(warp, Cluster::Side::laneCopies);
  ++warp.copyTime;
  forLanes(mask, [&](unsigned l) {
    auto address = [&](const Operand &operand) {
      return warp.at(operand)[l] + static_cast<uint64_t>(operand.offset);
    };
    LaneCopy copy;
    copy.lane = static_cast<int>(l);
    copy.group = warp.groups[l];
    copy.time = warp.copyTime;
    copy.to = address(i.operands[0]) & 0xffffffff;
    copy.from = address(i.operands[1]);
    copy.bytes = static_cast<unsigned>(warp.at(i.operands[2])[l]);
    copy.bytesFrom =
        i.operands.size() > 3
            ? static_cast<unsigned>(warp.at(i.operands[3])[l] & 0xffffffff)
            : copy.bytes;
    if (copy.bytesFrom > copy.bytes)
      throw Fault("reads more than it writes");
    // Wrong addresses show where the copy begins.
    warp.accessAs(warp.sideOf(agent, copy.time, l, /*isAsync=*/false), [&] {
      warp.resolve(Space::shared, copy.to, copy.bytes, copy.lane, Use::write);
      if (copy.bytesFrom == 0)
        return;
      warp.resolve(Space::global, copy.from, copy.bytes, copy.lane,
                   Use::barrier);
      watchGlobal(warp, copy.from, copy.bytesFrom, l, Use::read);
    });
    warp.copies.push_back(copy);
  });
  return Step::next;
}

static Step commit(Warp &warp, const Instruction &, Mask mask) {
  if (Paths *paths = Paths::current)
    paths->commit(warp.block->cluster->agentOf(warp, Cluster::Side::laneCopies),
                  warp.copyTime);
  forLanes(mask, [&](unsigned l) { ++warp.groups[l]; });
  return Step::next;
}

static Step waitGroup(Warp &warp, const Instruction &i, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    int64_t left = i.operands.empty()
                       ? 0
                       : static_cast<int64_t>(warp.at(i.operands[0])[l]);
    warp.makeCopies(static_cast<int>(l),
                    i.operands.empty() ? INT64_MAX : warp.groups[l] - left);
  });
  // Over is what comes before all that is left.
  uint32_t end = warp.copyTime;
  for (const LaneCopy &copy : warp.copies)
    end = std::min(end, copy.time - 1);
  warp.learnEnd(warp.block->cluster->agentOf(warp, Cluster::Side::laneCopies),
                end, /*isAsync=*/false, mask);
  return Step::next;
}

/// The same for many bytes; the first of them.
static char *accessAll(Warp &warp, uint64_t address, uint64_t bytes,
                       Space space, unsigned lane, Use use) {
  if (space == Space::shared && address >> 48)
    space = Space::generic;
  char *first = nullptr;
  for (uint64_t offset = 0; offset < bytes; offset += 16) {
    char *place =
        warp.resolve(space, address + offset, 16, static_cast<int>(lane), use);
    first = first ? first : place;
  }
  return first;
}

void ptx::beginBulkCopy(Warp &warp, BulkCopy &copy, uint64_t barrier,
                        unsigned lane) {
  Cluster &cluster = *warp.block->cluster;
  copy.barrier = &barrierWord(warp, barrier, lane, copy.block);
  checkBarrier(warp, lane, *copy.barrier, *copy.block, /*isCopy=*/true);
  copy.agent = cluster.copyAgent(copy.block->phases[copy.barrier]);
  copy.time = ++cluster.copyTimes[copy.agent - 4 * cluster.numWarps()];
}

void ptx::beginBulkStore(Warp &warp, BulkCopy &copy, unsigned lane) {
  copy.agent = warp.block->cluster->agentOf(warp, Cluster::Side::stores);
  copy.time = warp.stores[lane] = ++warp.storeTime;
}

/// cp.async.bulk.shared.global [to], [from], bytes, [barrier], from shared
/// memory where `near`, or back: cp.async.bulk.global.shared [to], [from],
/// bytes.
template <bool loads, bool near = false>
static Step copyBulk(Warp &warp, const Instruction &i, Mask mask) {
  Cluster &cluster = *warp.block->cluster;
  forLanes(mask, [&](unsigned l) {
    auto address = [&](const Operand &operand) {
      return warp.at(operand)[l] + static_cast<uint64_t>(operand.offset);
    };
    uint64_t bytes = warp.at(i.operands[2])[l] & 0xffffffff;
    if (bytes == 0 || bytes % 16)
      throw Fault("a bulk copy of " + std::to_string(bytes) + " bytes");
    BulkCopy copy;
    if (loads)
      beginBulkCopy(warp, copy, address(i.operands[3]), l);
    else
      beginBulkStore(warp, copy, l);
    warp.accessAs(warp.sideOf(copy.agent, copy.time, l, /*isAsync=*/true), [&] {
      char *to =
          accessAll(warp, address(i.operands[0]), bytes,
                    loads ? Space::shared : Space::global, l, Use::write);
      const char *from = accessAll(
          warp, address(i.operands[1]), bytes,
          loads && !near ? Space::global : Space::shared, l, Use::read);
      copy.pieces.push_back({to, from, bytes});
    });
    cluster.bulk.push_back(std::move(copy));
  });
  return Step::next;
}

static Step commitBulk(Warp &warp, const Instruction &, Mask mask) {
  if (Paths *paths = Paths::current) {
    const Cluster &cluster = *warp.block->cluster;
    for (size_t agent : {cluster.agentOf(warp, Cluster::Side::stores),
                         cluster.storesOf(warp.self.agent)})
      paths->commit(agent, warp.storeTime);
  }
  forLanes(mask,
           [&](unsigned l) { warp.storeGroups[l].push_back(warp.stores[l]); });
  return Step::next;
}

/// Waits for all bulk copies, those of others too, which is late enough; but
/// knows the end of groups that its own lanes have committed alone.
static Step waitBulk(Warp &warp, const Instruction &i, Mask mask) {
  Cluster &cluster = *warp.block->cluster;
  while (!cluster.bulk.empty())
    cluster.makeBulkCopy();
  uint32_t end = 0;
  forLanes(mask, [&](unsigned l) {
    const std::vector<uint32_t> &groups = warp.storeGroups[l];
    uint64_t left = warp.at(i.operands[0])[l];
    if (left < groups.size())
      end = std::max(end, groups[groups.size() - 1 - left]);
  });
  warp.learnEnd(cluster.agentOf(warp, Cluster::Side::stores), end,
                /*isAsync=*/true, mask);
  // wait_group.read says nothing of what they write.
  if (!i.detail)
    warp.learnEnd(cluster.storesOf(warp.self.agent), end, /*isAsync=*/true,
                  mask);
  return Step::next;
}

Execute ptx::findCopy(const Parts &parts, Instruction &instruction) {
  if (parts[0] != "cp" || parts.size() < 3)
    return nullptr;
  if (has(parts, "bulk")) {
    if (has(parts, "prefetch"))
      return nothing;
    if (has(parts, "commit_group"))
      return commitBulk;
    if (has(parts, "wait_group")) {
      instruction.detail = has(parts, "read");
      return instruction.operands.size() != 1 ? nullptr : waitBulk;
    }
    if (has(parts, "tensor"))
      return findTensorCopy(parts, instruction);
    auto isShared = [&](size_t part) {
      return part < parts.size() && parts[part].compare(0, 6, "shared") == 0;
    };
    bool loads = isShared(3);
    if (loads && isShared(4))
      return instruction.operands.size() < 4 ? nullptr : copyBulk<true, true>;
    if (instruction.operands.size() < (loads ? 4u : 3u))
      return nullptr;
    return loads ? copyBulk<true> : copyBulk<false>;
  }
  if (has(parts, "commit_group"))
    return commit;
  if (has(parts, "wait_group") || has(parts, "wait_all"))
    return waitGroup;
  if (has(parts, "cg") || has(parts, "ca"))
    return copyAsync;
  return nullptr;
}
