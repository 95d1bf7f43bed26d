// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers of products of warpgroups: a wgmma.fence behind what else uses
// them, and a wait before others use the sums or write what is still read.

#include "Machine.h"
#include "Paths.h"

#include <sstream>

using namespace ptx;

/// Keeps what is wrong with registers of products; line `other`, unless it is
/// 0, has used them.
static void report(const Warp &warp, int other, const std::string &what) {
  Cluster &cluster = *warp.block->cluster;
  std::string &text = cluster.findings[{warp.self.line, other, kRegisters}];
  if (!text.empty())
    return;
  const Kernel &kernel = *cluster.launch.kernel;
  std::ostringstream out;
  out << kernel.name << ": block " << warp.block->id[0] << ", warp "
      << warp.index << ", " << atLine(kernel, warp.self.line);
  if (other)
    out << ", behind " << atLine(kernel, other);
  out << ": " << what;
  text = out.str();
}

static RegisterUse &useOf(Warp &warp, const Operand &operand) {
  if (warp.registers.size() < warp.values.size()) {
    warp.registers.resize(warp.values.size());
    for (size_t i = 0; i < kNumSpecials; ++i)
      warp.registers[i].isRegister = false;
    for (auto [index, bits] : warp.block->cluster->launch.kernel->constants)
      warp.registers[static_cast<size_t>(index)].isRegister = false;
  }
  return warp.registers[static_cast<size_t>(operand.value)];
}

void ptx::noteUses(Warp &warp, const Instruction &instruction) {
  if (instruction.isProduct)
    return;
  // A value of another name, or a constant: compilers put these where they
  // like, and ptxas gives both names one register.
  const std::vector<Operand> &operands = instruction.operands;
  if (instruction.isMove) {
    const RegisterUse from = useOf(warp, operands[1]);
    RegisterUse &to = useOf(warp, operands[0]);
    to.used = from.used;
    to.line = from.line;
    to.isWritten = from.isWritten;
    return;
  }
  const uint32_t now = static_cast<uint32_t>(warp.registerFences.size()) + 1;
  for (unsigned i = static_cast<unsigned>(operands.size()); i-- > 0;) {
    if (operands[i].value < 0)
      continue;
    RegisterUse &use = useOf(warp, operands[i]);
    if (!use.isRegister)
      continue;
    use.used = now;
    use.line = instruction.line;
    use.isWritten = i < instruction.numResults;
  }
}

/// Keeps which fences order a product behind other uses of its registers, of
/// which the last needs fence `last`, counted from 1.
static void noteFences(const Warp &warp, const Instruction &product,
                       uint32_t last) {
  // All that it needs was behind an earlier one.
  const std::vector<int> &fences = warp.registerFences;
  if (last < fences.size() && fences.size() > 1)
    Paths::current->noteEdge(0, product.line, fences[fences.size() - 2],
                             fences.back());
}

void ptx::checkRegisters(Warp &warp, const Instruction &product,
                         unsigned columns, bool hasRegisters) {
  Cluster &cluster = *warp.block->cluster;
  const std::vector<int> &fences = warp.registerFences;
  const unsigned sums = columns / 2;
  const uint32_t now = static_cast<uint32_t>(fences.size()) + 1,
                 number = warp.groupTime + 1;
  if (fences.empty())
    report(warp, 0, "is the first product; no wgmma.fence before it");
  warp.sums.resize(warp.values.size());
  uint32_t last = 0;
  for (unsigned i = 0; i < sums + (hasRegisters ? 4 : 0); ++i) {
    const Operand &operand = product.operands[i];
    RegisterUse &use = useOf(warp, operand);
    const char *part = i < sums ? "a sum" : "A";
    if (use.used == now)
      report(warp, use.line,
             std::string("takes as ") + part + " a register which that " +
                 (use.isWritten ? "writes" : "reads") +
                 "; no wgmma.fence between the two");
    else if (use.used && Paths::current)
      Paths::current->noteEdge(use.line, product.line, fences[use.used - 1],
                               fences.back());
    last = std::max(last, use.used);
    if (i >= sums) {
      if (warp.sums[static_cast<size_t>(operand.value)].first > warp.groupDone)
        cluster.reportSums(warp);
      use.source = number;
      use.sourceLine = product.line;
      continue;
    }
    if (use.columns && use.columns != columns && use.added == now)
      report(warp, 0,
             "adds to a sum of a product of another shape; no "
             "wgmma.fence between the two");
    else if (use.columns && use.columns != columns)
      last = std::max(last, use.added);
    use.columns = columns;
    use.added = now;
  }
  if (Paths::current)
    noteFences(warp, product, last);
}

void ptx::checkSums(Warp &warp, const Instruction &instruction) {
  if (instruction.isProduct)
    return;
  // What a product did with a register is over for this instruction.
  auto note = [&](uint32_t time, int line) {
    if (time && Paths::current)
      Paths::current->note(
          line, warp.block->cluster->agentOf(warp, Cluster::Side::products),
          time, instruction.line, warp.knowledge.all);
  };
  for (const Operand &operand : instruction.operands) {
    if (operand.value < 0)
      continue;
    auto &[time, line] = warp.sums[static_cast<size_t>(operand.value)];
    if (time > warp.groupDone)
      return warp.block->cluster->reportSums(warp);
    note(time, line);
    time = 0;
  }
  for (unsigned i = 0; i < instruction.numResults; ++i) {
    if (instruction.operands[i].value < 0)
      continue;
    RegisterUse &use = useOf(warp, instruction.operands[i]);
    if (use.source > warp.groupDone)
      return report(
          warp, 0,
          "writes what a product may still read as A; no wgmma.wait_group for "
          "a group that was committed");
    note(use.source, use.sourceLine);
    use.source = 0;
  }
}
