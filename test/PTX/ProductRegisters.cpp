// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers of products of warpgroups: a wgmma.fence behind what else writes
// them, and a wait before others use the sums or write what is still read.

#include "Machine.h"

#include <sstream>

using namespace ptx;

/// Keeps what is wrong with registers of products; line `other`, unless it is
/// 0, has written them.
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
  if (warp.registers.size() < warp.values.size())
    warp.registers.resize(warp.values.size());
  return warp.registers[static_cast<size_t>(operand.value)];
}

void ptx::noteResults(Warp &warp, const Instruction &instruction) {
  // A value of another name, or a constant: compilers put these where they
  // like, and ptxas gives both names one register.
  const std::vector<Operand> &operands = instruction.operands;
  if (instruction.isMove) {
    const RegisterUse from = useOf(warp, operands[1]);
    RegisterUse &to = useOf(warp, operands[0]);
    to.written = from.written;
    to.line = from.line;
    return;
  }
  for (unsigned i = 0; i < instruction.numResults; ++i) {
    const Operand &result = operands[i];
    if (result.value < 0)
      continue;
    RegisterUse &use = useOf(warp, result);
    use.written = warp.numFences + 1;
    use.line = instruction.line;
  }
}

void ptx::checkRegisters(Warp &warp, const Instruction &product,
                         unsigned columns, bool hasRegisters) {
  Cluster &cluster = *warp.block->cluster;
  const unsigned sums = columns / 2;
  const uint32_t now = warp.numFences + 1, number = warp.groupTime + 1;
  if (warp.numFences == 0)
    report(warp, 0, "is the first product; no wgmma.fence before it");
  warp.sums.resize(warp.values.size());
  for (unsigned i = 0; i < sums + (hasRegisters ? 4 : 0); ++i) {
    const Operand &operand = product.operands[i];
    RegisterUse &use = useOf(warp, operand);
    const char *part = i < sums ? "a sum" : "A";
    if (use.written == now)
      report(
          warp, use.line,
          std::string("takes as ") + part +
              " a register which that writes; no wgmma.fence between the two");
    if (i >= sums) {
      if (warp.sums[static_cast<size_t>(operand.value)] > warp.groupDone)
        cluster.reportSums(warp);
      use.source = number;
      continue;
    }
    if (use.columns && use.columns != columns && use.added == now)
      report(warp, 0,
             "adds to a sum of a product of another shape; no "
             "wgmma.fence between the two");
    use.columns = columns;
    use.added = now;
  }
}

void ptx::checkSums(Warp &warp, const Instruction &instruction) {
  if (instruction.isProduct)
    return;
  for (const Operand &operand : instruction.operands)
    if (operand.value >= 0 &&
        warp.sums[static_cast<size_t>(operand.value)] > warp.groupDone)
      return warp.block->cluster->reportSums(warp);
  for (unsigned i = 0; i < instruction.numResults; ++i)
    if (const Operand &result = instruction.operands[i];
        result.value >= 0 && useOf(warp, result).source > warp.groupDone)
      return report(
          warp, 0,
          "writes what a product may still read as A; no wgmma.wait_group for "
          "a group that was committed");
}
