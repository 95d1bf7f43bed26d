// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A load ends with the first instruction that uses its value; a move only hands
// the value on.

#include "PendingReads.h"

using namespace ptx;

void PendingReads::end(size_t index, uint32_t now) {
  const Load load = pending_[index];
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  if (!load.isTold)
    return;
  auto found = std::lower_bound(
      told_.begin(), told_.end(), load.time,
      [](const Told &told, uint32_t at) { return told.time < at; });
  found->end = now;
}

void PendingReads::use(const Instruction &instruction, uint32_t now) {
  const auto &operands = instruction.operands;
  if (instruction.opcode.compare(0, 4, "mov.") == 0) {
    const auto numTo = static_cast<size_t>(instruction.groups[0]);
    uint32_t moved = 0;
    for (size_t i = numTo; i < operands.size(); ++i)
      if (uint32_t time = loadOf(operands[i].value))
        moved = time;
    for (size_t i = 0; i < numTo; ++i)
      if (size_t value = static_cast<size_t>(operands[i].value);
          value < timeOf_.size())
        timeOf_[value] = moved;
    return;
  }
  auto visit = [&](int value) {
    const uint32_t time = loadOf(value);
    auto found =
        std::find_if(pending_.begin(), pending_.end(),
                     [&](const Load &load) { return load.time == time; });
    if (found != pending_.end())
      end(static_cast<size_t>(found - pending_.begin()), now);
  };
  for (const Operand &operand : operands)
    visit(operand.value);
  visit(instruction.guard);
}
