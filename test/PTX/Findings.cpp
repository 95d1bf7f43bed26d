// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said of two accesses that are not in order: both instructions, who
// made them, the bytes, and what would have ordered them.

#include "Machine.h"

#include <sstream>

using namespace ptx;

/// The instruction in a line, or null.
static const Instruction *instructionAt(const Kernel &kernel, int line) {
  for (const Instruction &instruction : kernel.code)
    if (instruction.line == line)
      return &instruction;
  return nullptr;
}

std::string ptx::atLine(const Kernel &kernel, int line) {
  const Instruction *instruction = instructionAt(kernel, line);
  return instruction ? describe(kernel, *instruction)
                     : "PTX line " + std::to_string(line);
}

/// A field of JSON with the op that a line comes from, if that is known.
static std::string originField(const char *name, const Kernel &kernel,
                               int line) {
  const Instruction *instruction = instructionAt(kernel, line);
  std::string origin = instruction ? nameOrigin(kernel, *instruction) : "";
  return origin.empty() ? ""
                        : std::string(", \"") + name + "\": \"" + origin + "\"";
}

/// The warp that an agent is, or works for.
static std::string warpOf(const Cluster &cluster, size_t agent) {
  size_t warp = agent % cluster.numWarps();
  size_t perBlock = cluster.blocks[0].warps.size();
  std::string text = "warp " + std::to_string(warp % perBlock);
  if (cluster.blocks.size() > 1)
    text += " of the cluster's block " + std::to_string(warp / perBlock);
  return text;
}

/// The barriers, with their phases, that copies of an agent tell.
static std::string barriersOf(const Cluster &cluster, size_t agent) {
  std::string text;
  for (const Block &block : cluster.blocks)
    for (const auto &[word, clocks] : block.phases)
      if (clocks.copies == agent) {
        text += text.empty() ? "the barrier at byte " : " or ";
        text += std::to_string(reinterpret_cast<const char *>(word) -
                               block.shared.data());
        if (cluster.blocks.size() > 1)
          text += " of the cluster's block " + std::to_string(block.rank);
        text += " (in phase " + std::to_string(clocks.phase) + ")";
      }
  return text;
}

static std::string describeAgent(const Cluster &cluster, size_t agent,
                                 unsigned lane) {
  std::string warp = warpOf(cluster, agent);
  switch (cluster.sideOf(agent)) {
  case Cluster::Side::warp:
    return lane < kLanes ? warp + ", lane " + std::to_string(lane) : warp;
  case Cluster::Side::laneCopies:
    return "a copy by cp.async of " + warp;
  case Cluster::Side::products:
    return "a product of " + warp;
  case Cluster::Side::stores:
    return "a bulk copy to memory of " + warp;
  case Cluster::Side::copies:
    break;
  }
  return "a bulk copy for " + barriersOf(cluster, agent);
}

/// What would have ordered an access of `agent` at `time`, which the other
/// side does not know: a fence, if it knows it in the other proxy.
static std::string describeEdge(const Cluster &cluster, const Access &access,
                                const Conflict &conflict) {
  size_t agent = conflict.agent;
  if (conflict.isOfLanes)
    return "no bar.warp.sync between lanes of the warp";
  if (conflict.kind != Conflict::writesRead &&
      conflict.time <= (*access.reads)[agent])
    return "a barrier orders the two, but no fence.proxy.async does";
  if (conflict.kind == Conflict::writesRead &&
      conflict.time <= (*access.reads)[agent])
    return "a barrier was told before the value had arrived: no instruction "
           "uses it ahead of that, and no fence.proxy.async waits for it";
  std::string warp = warpOf(cluster, agent);
  switch (cluster.sideOf(agent)) {
  case Cluster::Side::laneCopies:
    return "no cp.async.wait_group of " + warp + " that others know of";
  case Cluster::Side::products:
    return "no wgmma.wait_group of " + warp +
           ", for a group that was committed, that others know of";
  case Cluster::Side::stores:
    return "no cp.async.bulk.wait_group of " + warp +
           ", for a group that was committed, that others know of";
  case Cluster::Side::copies:
    return "no wait for the end of the phase of " + barriersOf(cluster, agent);
  case Cluster::Side::warp:
    break;
  }
  return "no barrier behind it: of " + warp + " up to time " +
         std::to_string((*access.reads)[agent]) +
         " is known here, and this was at " + std::to_string(conflict.time);
}

void Cluster::report(const Warp &warp, const Block &owner, const Access &access,
                     const Conflict &conflict, unsigned bytes) {
  std::string &text = findings[{access.line, conflict.line, conflict.kind}];
  if (!text.empty())
    return;
  const Kernel &kernel = *launch.kernel;
  std::ostringstream out;
  out << kernel.name << ": block " << warp.block->id[0] << ", "
      << describeAgent(*this, access.agent, access.lane) << ", "
      << atLine(kernel, access.line) << ": ";
  std::ostringstream place;
  place << "shared memory at byte " << conflict.offset << ", of " << bytes
        << " bytes";
  if (blocks.size() > 1)
    place << " of the cluster's block " << owner.rank;
  if (conflict.kind == Conflict::unwritten) {
    out << "reads " << place.str() << " that nobody has written";
  } else {
    const char *how =
        conflict.kind == Conflict::readsWrite    ? "reads what that writes"
        : conflict.kind == Conflict::writesWrite ? "writes what that writes"
                                                 : "writes what that reads";
    out << "a race with " << atLine(kernel, conflict.line) << " ("
        << describeAgent(*this, conflict.agent, conflict.lane) << ") over "
        << place.str() << ": " << how << "; "
        << describeEdge(*this, access, conflict);
  }
  text = out.str();
}

void Cluster::reportBarrier(const Warp &warp, const Block &owner, size_t offset,
                            const PhaseClock &clocks, bool isCopy) {
  std::string &text =
      findings[{warp.self.line, clocks.line, Conflict::unwritten + 1}];
  if (!text.empty())
    return;
  const Kernel &kernel = *launch.kernel;
  std::ostringstream out;
  out << kernel.name << ": block " << warp.block->id[0] << ", warp "
      << warp.index << ", " << atLine(kernel, warp.self.line)
      << ": a race with " << atLine(kernel, clocks.line) << " ("
      << warpOf(*this, clocks.agent) << ") over the barrier at byte " << offset;
  if (blocks.size() > 1)
    out << " of the cluster's block " << owner.rank;
  out << ": uses what that initialises; "
      << (isCopy ? "no fence.mbarrier_init or fence.proxy.async, and a barrier "
                   "behind it"
                 : "no barrier behind it");
  text = out.str();
}

void Cluster::reportSums(const Warp &warp) {
  std::string &text = findings[{warp.self.line, 0, Conflict::unwritten + 2}];
  if (text.empty())
    text = launch.kernel->name + ": block " +
           std::to_string(warp.block->id[0]) + ", warp " +
           std::to_string(warp.index) + ", " +
           atLine(*launch.kernel, warp.self.line) +
           ": uses sums of a product; no wgmma.wait_group for a group that was "
           "committed";
}

void Cluster::reportVisits() {
  for (const Block &block : blocks)
    for (size_t agent = 0; agent < block.visits.size(); ++agent) {
      auto [time, line] = block.visits[agent];
      // Of a warp, others know what it told behind it.
      if (time <= block.leaving.all[agent])
        continue;
      std::string &text = findings[{line, 0, Conflict::unwritten + 3}];
      if (text.empty())
        text = launch.kernel->name + ": block " + std::to_string(block.id[0]) +
               " may have ended when its shared memory is used by " +
               describeAgent(*this, agent, kWholeWarp) + " in " +
               atLine(*launch.kernel, line) +
               "; no barrier of the cluster behind it";
    }
}

std::string Findings::json(const Kernel &kernel) const {
  static constexpr const char *kKinds[] = {
      "",          "reads_write", "writes_write", "writes_read",
      "unwritten", "barrier",     "sums",         "ends_early",
      "read_only", "launches",    "registers"};
  std::ostringstream out;
  for (const auto &[key, text] : all) {
    auto [line, other, kind] = key;
    // Kernels, opcodes, origins and the words here have nothing to escape.
    out << "{\"kernel\": \"" << kernel.name << "\", \"line\": " << line
        << ", \"other\": " << other << ", \"kind\": \"" << kKinds[kind] << "\""
        << originField("origin", kernel, line)
        // The other line may be one of another kernel.
        << (kind == kOtherLaunch ? ""
                                 : originField("other_origin", kernel, other))
        << ", \"text\": \"" << text << "\"}\n";
  }
  return out.str();
}

std::string ptx::describeFindings(const Findings::All &findings) {
  static constexpr size_t kMost = 20;
  std::string text;
  size_t count = 0;
  for (const auto &[key, finding] : findings) {
    if (++count > kMost)
      break;
    text += finding + "\n";
  }
  if (findings.size() > kMost)
    text += "and " + std::to_string(findings.size() - kMost) + " more\n";
  return text;
}
