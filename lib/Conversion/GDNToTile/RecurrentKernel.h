// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of one gdn.kernel with the token recurrence.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H

#include "EntryViews.h"

namespace gdn {

/// Which form of the recurrence the tokens of a row take: chunk after chunk
/// while at least `chunkFrom` tokens are left, the rest token by token.
struct Algorithm {
  int64_t tokens;    ///< per block of the recurrent form
  int64_t chunk;     ///< per chunk of the chunk form
  int64_t chunkFrom; ///< 1: all in chunks; negative: none; 0: by the rule
  bool valueHeads;   ///< a block serves one value head, not one key head
  int64_t lanes;     ///< of the CPU's vectors, for the rule; 0: not known
};

/// Fills `views.function` with the program of `kernel`, whose results the
/// entry returns. An entry without
/// row bounds takes the recurrent form, token by token. Fails with an error on
/// the op that has no tile program.
mlir::LogicalResult emitRecurrentKernel(EntryViews &views, KernelOp kernel,
                                        const Algorithm &algorithm);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENTKERNEL_H
