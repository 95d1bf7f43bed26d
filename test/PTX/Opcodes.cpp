// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks the families in turn.

#include "LaneOps.h"

using namespace ptx;

Execute ptx::findOpcode(const Parts &parts, Instruction &instruction) {
  for (auto find : {findIntegerOp, findFloatOp, findConversion, findComparison,
                    findMove, findAccess, findAtomic, findControl, findExchange,
                    findFragmentOp, findGroupProduct, findBarrier, findCopy})
    if (Execute execute = find(parts, instruction))
      return execute;
  return nullptr;
}
