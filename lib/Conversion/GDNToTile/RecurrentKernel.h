// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of one gdn.kernel with the token recurrence.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H

#include "EntryViews.h"

namespace gdn {

/// Fills `views.function` with the program of `kernel`, whose results the
/// entry returns. `tokens` is the number of tokens per block of an entry with
/// row bounds. Fails with an error on the op that has no tile program.
mlir::LogicalResult emitRecurrentKernel(EntryViews &views, KernelOp kernel,
                                        int64_t tokens);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H
