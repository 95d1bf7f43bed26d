// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All tokens of a block at once, where the state after each of them is not
// asked for: see `TokenPlan::isSolvable`, and TokenSolve.cpp for the formulas.
#ifndef GDN_LIB_SCHEDULE_TOKENS_TOKENSOLVE_H
#define GDN_LIB_SCHEDULE_TOKENS_TOKENSOLVE_H

#include "Tokens/TokenProgram.h"

namespace gdn {

class TokenSolve : TokenPart {
public:
  explicit TokenSolve(TokenProgram &p);

  /// What remains of pending tokens of several steps behind the last one: by
  /// one warp, behind a barrier at which they have come, and ahead of another.
  void emitPendingWeights();
  /// The pairs of the block's tokens, a token per warp with all before it.
  void emitPairs(mlir::Value count);
  /// The products of the state with keys and queries.
  void emitProducts(mlir::Value state, mlir::Value first, mlir::Value count);
  /// Deltas and outputs, token after token.
  void emitSolve(mlir::Value count);
  /// The state before the next block of tokens: this one's go in as they would
  /// in a commit. `last` is the token behind this block.
  mlir::Value emitCarried(mlir::Value state, mlir::Value last,
                          mlir::Value count);

private:
  /// The delta of token `t`; `deltas` are those of the tokens before it.
  mlir::Value emitSolved(int64_t t, llvm::ArrayRef<mlir::Value> deltas,
                         mlir::Value decay, gpu::FragmentType type);
  /// The same pairs of the token at `at` with pending tokens of several steps.
  void emitPendingPairs(mlir::Value at, gpu::RowsAttr rows, mlir::Value key,
                        mlir::Value query, llvm::ArrayRef<mlir::Value> decays);
  /// How many of them the state lacks.
  mlir::Value countPending();
  /// What these tokens give each token.
  void emitPendingTerms(gpu::FragmentType type);

  int64_t blockTokens;
  // In shared memory:
  mlir::Value knownBuffer, seenBuffer; // the state's products
  mlir::Value keyPairs, queryPairs;
  mlir::Value pendingKeyPairs, pendingQueryPairs,
      pendingWeights; // of several steps
  /// With pending tokens of several steps: what they give each token, and what
  /// remains of the state behind them.
  llvm::SmallVector<mlir::Value> pendingKnown, pendingSeen;
  mlir::Value kept;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENSOLVE_H
