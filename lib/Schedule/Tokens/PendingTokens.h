// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recurrences that begin with pending tokens and leave theirs pending: the
// accepted ones of the step before go into the state in registers, which is
// stored; or those of several steps do, if there is no more room for this one's
// tokens. What these do is stored beside the state, a token per warp, once all
// blocks of the key head have read what was there.
#ifndef GDN_LIB_SCHEDULE_TOKENS_PENDINGTOKENS_H
#define GDN_LIB_SCHEDULE_TOKENS_PENDINGTOKENS_H

#include "Tokens/TokenWindows.h"

namespace gdn {

class PendingTokens : TokenPart {
public:
  /// Begins to copy the pending tokens to shared memory: no register waits for
  /// them, so that all else that the block reads is asked for meanwhile.
  PendingTokens(TokenProgram &p, LastReaders &readers);

  /// The state that the scans of the tokens from `first` on begin with: ahead
  /// of the sequence's first, pending tokens are folded in and the state is
  /// stored.
  mlir::Value emitFold(mlir::Value state, mlir::Value first);
  /// The state that the tokens begin with, in f32: with those of several steps
  /// where scans follow, else as its slot holds it, which may receive them.
  /// `all` has what was loaded of it.
  mlir::Value emitCatchUp(FragmentEmitter &all);
  /// What the tokens leave, each by a warp, and the windows before the first.
  void emitKept(mlir::Value first, mlir::Value count);

private:
  void beginCopies();

  LastReaders &readers;
  /// Stores before the loop: of the folded state, and of windows.
  llvm::SmallVector<mlir::Operation *> stateStores, windowStores;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_PENDINGTOKENS_H
