// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of a kernel that puts pending tokens into states.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_COMMITKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_COMMITKERNEL_H

#include "Program/EntryViews.h"

namespace gdn {

/// True if all ops of `kernel` put pending tokens into states.
bool isCommitKernel(KernelOp kernel);

/// Fills `views.function` with the program of `kernel`, one block per sequence
/// and value head. Fails with an error on the op that does not fit.
mlir::LogicalResult emitCommitKernel(EntryViews &views, KernelOp kernel);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_COMMITKERNEL_H
