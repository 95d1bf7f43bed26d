// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of a gdn.kernel that plans a batch.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_BATCHPLAN_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_BATCHPLAN_H

#include "Program/EntryViews.h"

namespace gdn {

/// True if the kernel is a gdn.plan_batch.
bool plansBatch(KernelOp kernel);

/// Fills `views.function` with the program of such a kernel. Fails with an
/// error on the op if an operand is no argument of the entry, or if the kernel
/// has other ops.
mlir::LogicalResult emitBatchPlan(EntryViews &views, KernelOp kernel);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_BATCHPLAN_H
