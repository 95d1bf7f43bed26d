// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results of instructions, and what atomics depend on: loads whose values reach
// an operand of an atomic, through registers and shared memory, in whatever
// order instructions run. Such a load is over before the atomic is made.

#include "Program.h"

#include <algorithm>

using namespace ptx;

static bool begins(const std::string &text, const char *prefix) {
  return text.rfind(prefix, 0) == 0;
}

/// Whether the first operands are places in memory and no results.
static bool hasNoResult(const Instruction &instruction) {
  for (const char *opcode : {"st.", "red.", "bar", "cp.", "mbarrier.", "fence",
                             "bra", "prefetch", "wgmma."})
    if (begins(instruction.opcode, opcode))
      return true;
  return instruction.groups.empty();
}

void ptx::analyze(Kernel &kernel) {
  // By value, the instructions that set it.
  std::vector<std::vector<const Instruction *>> setters(
      static_cast<size_t>(kernel.numValues));
  std::vector<const Instruction *> left;
  std::vector<bool> isReached(kernel.code.size());
  auto reach = [&](const Instruction &instruction) {
    const size_t index = static_cast<size_t>(&instruction - kernel.code.data());
    if (!isReached[index])
      left.push_back(&instruction);
    isReached[index] = true;
  };
  for (Instruction &instruction : kernel.code) {
    kernel.hasProducts |= instruction.isProduct;
    instruction.numResults = hasNoResult(instruction)
                                 ? 0
                                 : static_cast<unsigned>(instruction.groups[0]);
    instruction.isMove = begins(instruction.opcode, "mov.") &&
                         instruction.operands.size() == 2 &&
                         instruction.operands[0].value >= 0 &&
                         instruction.operands[1].value >= 0;
    if (begins(instruction.opcode, "atom.") ||
        begins(instruction.opcode, "red."))
      reach(instruction);
    for (size_t i = 0; i < instruction.numResults; ++i)
      if (instruction.operands[i].value >= 0)
        setters[static_cast<size_t>(instruction.operands[i].value)].push_back(
            &instruction);
  }
  while (!left.empty()) {
    const Instruction &instruction = *left.back();
    left.pop_back();
    if (begins(instruction.opcode, "ld."))
      kernel.usedByAtomics.push_back(instruction.line);
    // Whatever was stored may be what is loaded, wherever that is.
    if (begins(instruction.opcode, "ld.shared"))
      for (const Instruction &store : kernel.code)
        if (begins(store.opcode, "st.shared"))
          reach(store);
    auto follow = [&](int value) {
      if (value >= 0)
        for (const Instruction *setter : setters[static_cast<size_t>(value)])
          reach(*setter);
    };
    follow(instruction.guard);
    for (size_t i = instruction.numResults; i < instruction.operands.size();
         ++i)
      follow(instruction.operands[i].value);
  }
  std::vector<int> &lines = kernel.usedByAtomics;
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
}
