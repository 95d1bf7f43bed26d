// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies on the side: cp.async in groups, and bulk copies that tell a barrier.

#include "LaneOps.h"

using namespace ptx;

/// cp.async.cg.shared.global [to], [from], bytes{, bytes that are read}
static Step copyAsync(Warp &warp, const Instruction &i, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    auto address = [&](const Operand &operand) {
      return warp.at(operand)[l] + static_cast<uint64_t>(operand.offset);
    };
    LaneCopy copy;
    copy.lane = static_cast<int>(l);
    copy.group = warp.groups[l];
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
    warp.resolve(Space::shared, copy.to, copy.bytes, copy.lane);
    if (copy.bytesFrom > 0)
      warp.resolve(Space::global, copy.from, copy.bytes, copy.lane);
    warp.copies.push_back(copy);
  });
  return Step::next;
}

static Step commit(Warp &warp, const Instruction &, Mask mask) {
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
  return Step::next;
}

/// cp.async.bulk.shared.global [to], [from], bytes, [barrier], or back:
/// cp.async.bulk.global.shared [to], [from], bytes.
template <bool loads>
static Step copyBulk(Warp &warp, const Instruction &i, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    auto resolve = [&](const Operand &operand, Space space, unsigned bytes) {
      uint64_t address =
          warp.at(operand)[l] + static_cast<uint64_t>(operand.offset);
      if (space == Space::shared && address >> 48)
        space = Space::generic;
      return warp.resolve(space, address, bytes, static_cast<int>(l));
    };
    uint64_t bytes = warp.at(i.operands[2])[l] & 0xffffffff;
    if (bytes == 0 || bytes % 16)
      throw Fault("a bulk copy of " + std::to_string(bytes) + " bytes");
    Space to = loads ? Space::shared : Space::global;
    Space from = loads ? Space::global : Space::shared;
    BulkCopy copy;
    copy.bytes = bytes;
    copy.to = resolve(i.operands[0], to, 16);
    copy.from = resolve(i.operands[1], from, 16);
    // The last piece has to be inside too.
    auto checkEnd = [&](Operand operand, Space space) {
      operand.offset += static_cast<int64_t>(bytes) - 16;
      resolve(operand, space, 16);
    };
    checkEnd(i.operands[0], to);
    checkEnd(i.operands[1], from);
    if (loads)
      copy.barrier = reinterpret_cast<uint64_t *>(
          resolve(i.operands[3], Space::shared, 8));
    warp.block->cluster->bulk.push_back(copy);
  });
  return Step::next;
}

/// Waits for all bulk copies, those of others too, which is late enough.
static Step waitBulk(Warp &warp, const Instruction &, Mask) {
  std::deque<BulkCopy> &bulk = warp.block->cluster->bulk;
  for (; !bulk.empty(); bulk.pop_front()) {
    const BulkCopy &copy = bulk.front();
    std::memcpy(copy.to, copy.from, copy.bytes);
    if (copy.barrier)
      completeTransaction(*copy.barrier, static_cast<int64_t>(copy.bytes));
  }
  return Step::next;
}

static Step nothing(Warp &, const Instruction &, Mask) { return Step::next; }

Execute ptx::findCopy(const Parts &parts, Instruction &instruction) {
  if (parts[0] != "cp" || parts.size() < 3)
    return nullptr;
  if (has(parts, "bulk")) {
    if (has(parts, "prefetch") || has(parts, "commit_group"))
      return nothing;
    if (has(parts, "wait_group"))
      return waitBulk;
    if (has(parts, "tensor"))
      return nullptr;
    bool loads = parts[3].compare(0, 6, "shared") == 0;
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
