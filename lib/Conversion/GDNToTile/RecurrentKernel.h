// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of one gdn.kernel with the token recurrence.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H

#include "EntryViews.h"

#include "gdn/Conversion/Precision.h"

namespace gdn {

/// Which form of the recurrence a program takes, by the length of the row.
struct Algorithm {
  int64_t tokens;      ///< per block of the recurrent form
  int64_t chunk;       ///< per chunk of the chunk form
  int64_t chunkFrom;   ///< shortest row in the chunk form; negative: none
  Precision precision; ///< of the chunk form
  bool valueHeads;     ///< a block serves one value head, not one key head
};

/// Fills `views.function` with the program of `kernel`, whose results the
/// entry returns. An entry without
/// row bounds takes the recurrent form, token by token. Fails with an error on
/// the op that has no tile program.
mlir::LogicalResult emitRecurrentKernel(EntryViews &views, KernelOp kernel,
                                        const Algorithm &algorithm);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H
