// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What warps prepare for the scans of a block of tokens, in shared memory: the
// operands, and the windows after the tokens.
#ifndef GDN_LIB_SCHEDULE_TOKENS_TOKENOPERANDS_H
#define GDN_LIB_SCHEDULE_TOKENS_TOKENOPERANDS_H

#include "Tokens/TokenProgram.h"

namespace gdn {

/// Emits the preparation of the block of `count` tokens from `first` on.
/// `emitMeanwhile`, where given, emits what a warp does meanwhile, behind a
/// barrier at which copies have come.
void emitOperands(TokenProgram &p, mlir::Value first, mlir::Value count,
                  llvm::function_ref<void()> emitMeanwhile = nullptr);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENOPERANDS_H
