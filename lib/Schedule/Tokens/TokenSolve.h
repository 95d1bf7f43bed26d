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

  int64_t blockTokens;
  // In shared memory:
  mlir::Value knownBuffer, seenBuffer; // the state's products
  mlir::Value keyPairs, queryPairs;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENSOLVE_H
