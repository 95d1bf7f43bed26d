// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Branches, ends, fences, the order of launches, and instructions that change
// nothing here: hints, register budgets.

#include "LaneOps.h"
#include "Paths.h"

using namespace ptx;

static Step branch(Warp &, const Instruction &, Mask) { return Step::jumped; }

/// brx.idx: each lane goes where its index says.
static Step branchByIndex(Warp &warp, const Instruction &i, Mask mask) {
  const Lanes &index = warp.at(i.operands[0]);
  forLanes(mask, [&](unsigned l) {
    uint32_t which = static_cast<uint32_t>(index[l]);
    if (which >= i.targets.size())
      throw Fault("index " + std::to_string(which) + " of " +
                  std::to_string(i.targets.size()) + " targets");
    warp.places[l] = i.targets[which];
  });
  return Step::placed;
}

static Step leave(Warp &warp, const Instruction &, Mask mask) {
  const size_t stores =
      warp.block->cluster->agentOf(warp, Cluster::Side::stores);
  forLanes(mask, [&](unsigned l) {
    warp.makeCopies(static_cast<int>(l), INT64_MAX);
    if (warp.stores[l] > warp.knowledgeOf(l).all[stores])
      throw Fault("a thread ends before its bulk copies to memory have read");
  });
  // What it knows, and what lanes know that have waited alone.
  warp.block->leaving.add(warp.knowledge);
  if (warp.knowing & mask)
    warp.block->leaving.add(warp.known);
  warp.alive &= ~mask;
  return Step::next;
}

static Step trap(Warp &, const Instruction &, Mask) { throw Fault("a trap"); }

/// What lanes have written, and know of, is there for copies and products.
template <bool ofShared, bool ofGlobal>
static Step fenceProxy(Warp &warp, const Instruction &, Mask mask) {
  warp.fence(mask, ofShared, ofGlobal);
  return Step::next;
}

/// fence.acq_rel, fence.sc, membar; the scope is the detail.
static Step fenceByScope(Warp &warp, const Instruction &i, Mask mask) {
  fenceMemory(warp, mask, static_cast<Scope>(i.detail));
  return Step::next;
}

/// The launch ahead, if this one may have begun before its end, is over.
static Step awaitLaunch(Warp &warp, const Instruction &, Mask mask) {
  LaunchOrder &order = *warp.block->cluster->launch.order;
  warp.endLaunchAhead(order.waited, mask);
  order.waits = true;
  return Step::next;
}

/// The next launch may begin, as far as this block goes: what the block knows
/// to be over is over for that, too.
static Step releaseLaunch(Warp &warp, const Instruction &, Mask mask) {
  Block &block = *warp.block;
  if (Paths *paths = Paths::current)
    paths->noteEdge(0, 0, warp.edge, Paths::kEndOfLaunch);
  if (!block.hasReleased)
    block.cluster->launch.order->release(
        warp.knowledgeOf(static_cast<unsigned>(__builtin_ctz(mask))).launches);
  block.hasReleased = true;
  return Step::next;
}

/// Barriers that the warp has initialised are there for copies, once others
/// know of the fence.
static Step fenceBarriers(Warp &warp, const Instruction &, Mask) {
  for (Block &block : warp.block->cluster->blocks)
    for (auto &[word, clocks] : block.phases)
      if (clocks.isInitialised && clocks.agent == warp.self.agent &&
          !clocks.fenceTime)
        clocks.fenceTime = warp.self.time, clocks.fence = warp.edge;
  return Step::next;
}

static Step sleep(Warp &, const Instruction &, Mask) { return Step::yields; }

Execute ptx::findControl(const Parts &parts, Instruction &instruction) {
  const std::string &op = parts[0];
  if (op == "bra")
    return branch;
  if (op == "brx" && instruction.guard < 0)
    return branchByIndex;
  if (op == "ret" || op == "exit")
    return leave;
  if (op == "trap")
    return trap;
  if (op == "nanosleep")
    return sleep;
  if (op == "fence" && parts.size() > 2 && parts[1] == "proxy" &&
      parts[2] == "async") {
    const bool isGlobal = has(parts, "global"), isShared = parts.size() > 3;
    return isGlobal   ? fenceProxy<false, true>
           : isShared ? fenceProxy<true, false>
                      : fenceProxy<true, true>;
  }
  if (op == "fence" && parts.size() > 1 && parts[1] == "mbarrier_init")
    return fenceBarriers;
  if (op == "griddepcontrol" && parts.size() == 2)
    return parts[1] == "wait"                ? awaitLaunch
           : parts[1] == "launch_dependents" ? releaseLaunch
                                             : nullptr;
  if (op == "membar" ||
      (op == "fence" && (has(parts, "acq_rel") || has(parts, "sc")))) {
    instruction.detail = static_cast<int64_t>(scopeOf(parts));
    return fenceByScope;
  }
  if (op == "fence" || op == "setmaxnreg" || op == "pmevent")
    return nothing;
  return nullptr;
}
