// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both planes of a state, four elements at a time.
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace gdn {
/// A pattern of gdn-expand-gpu-math; see Passes.td.
void populatePermuteBytesPatterns(mlir::RewritePatternSet &patterns);
} // namespace gdn
