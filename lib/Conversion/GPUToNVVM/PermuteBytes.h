// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both planes of a state, four elements at a time.
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace gdn {
/// Patterns of gdn-expand-gpu-math, for kernels whose threads have so many
/// registers, none with 0: bytes of numbers, and numbers of bytes; see
/// Passes.td.
void populatePermuteBytesPatterns(mlir::RewritePatternSet &patterns,
                                  int64_t bytesRegisters,
                                  int64_t numbersRegisters);
} // namespace gdn
