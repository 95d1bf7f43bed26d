// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows of convolutions after each token of a block, in shared memory. Where
// the loop carries a window from token to token, it is the history that lies
// there: the window before the block, then the inputs of its tokens.
#ifndef GDN_LIB_SCHEDULE_TOKENS_TOKENWINDOWS_H
#define GDN_LIB_SCHEDULE_TOKENS_TOKENWINDOWS_H

#include "Tokens/LastReaders.h"

namespace gdn {

/// Allocates the windows of a role that are stored, and its history where that
/// is needed.
void placeWindows(TokenProgram &p, ScanRole role);
/// Writes the inputs of tokens from number `at` of the block on to the history,
/// and where that is the first, which `isFirst` says, the window before it.
void storeHistory(TokenProgram &p, tile::Conv1dOp conv, mlir::Value window,
                  mlir::Value inputs, mlir::Value at, mlir::Value isFirst);
/// Sets the inputs of `conv` to those of the history from number `at` on.
void loadInputs(TokenProgram &p, FragmentEmitter &emitter, tile::Conv1dOp conv,
                mlir::Value at);
/// Writes the windows after token number `at` that no history has.
void storeWindows(TokenProgram &p, ScanRole role, FragmentEmitter &emitter,
                  mlir::Value at);
/// Emits the stores of the windows after each token, by one warp for each role
/// from `firstWarp` on; `values` are the values of the program.
void emitWindowStores(TokenProgram &p, LastReaders &readers, mlir::Value first,
                      mlir::Value count, int64_t firstWarp,
                      const mlir::IRMapping &values);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENWINDOWS_H
