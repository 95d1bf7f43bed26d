// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of a kernel on one block of tokens of one value head.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_TOKENBLOCK_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_TOKENBLOCK_H

#include "Chunks/ChunkForm.h"
#include "Program/NormOperands.h"
#include "Program/TileProgram.h"

namespace gdn {

class TokenBlock {
public:
  /// For value head `r` of the block's key head; reads what all blocks of
  /// tokens share (the weights of the convolution) at the builder's position.
  TokenBlock(TileProgram &program, mlir::Value r);

  /// Emits the kernel's ops on tokens `t .. t + valid - 1` and stores the
  /// results. `carried` holds the kernel's carried tiles; returns the next.
  llvm::SmallVector<mlir::Value> emit(mlir::Value t, mlir::Value valid,
                                      llvm::ArrayRef<mlir::Value> carried);

  /// Emits what `valid` tokens from `t` on do to the state, in the chunk form:
  /// the state `P^T S + H` after them, S before them. `carried` holds the tiles
  /// of carries that the state depends on (others are null); the state's is `H`
  /// so far, and `map` is `P^T` so far. Returns the next tiles; stores nothing.
  llvm::SmallVector<mlir::Value> emitMap(mlir::Value t, mlir::Value valid,
                                         llvm::ArrayRef<mlir::Value> carried,
                                         mlir::Value &map);

  /// Emits what `wanted` values ahead of the rule are computed from, for tokens
  /// as in `emit`, and returns their tiles, in f32. `carried` receives the next
  /// windows; its state is not looked at. Rows past the valid ones hold
  /// anything where the kernel computes the value, and zeros where it is
  /// loaded.
  llvm::SmallVector<mlir::Value>
  emitInputs(mlir::Value t, mlir::Value valid,
             llvm::ArrayRef<mlir::Value> wanted,
             llvm::SmallVectorImpl<mlir::Value> &carried);

  /// Emits what follows the rule, whose output is the f32 tile `output`, and
  /// stores the results; of what has a stage of its own, its input. Without
  /// `stage`, `output` is rounded to `handedOn` first, if given: to what it has
  /// on the way to such a stage. With `fullUntilLast` the builder stands in a
  /// loop over blocks of tokens, of which the last one alone has fewer.
  void emitRuleResults(mlir::Value t, mlir::Value valid, mlir::Value output,
                       const NormOperands *stage, mlir::Type handedOn,
                       bool fullUntilLast);

  /// Emits that stage, whose input is held, and stores its results.
  void emitNormResults(mlir::Value t, mlir::Value valid,
                       const NormOperands &stage);

  /// From here on `tile` is what `value` has in memory for the tokens.
  void hold(mlir::Value value, mlir::Value tile) { held[value] = tile; }
  /// Loads what gates of channels have in common for all tokens, once for all
  /// that is emitted from here on.
  void holdGateWeights();

  /// The window of `carry`, a section of a convolution, after `count` tokens,
  /// 0 or 1, from `token` on.
  mlir::Value emitWindow(const Carry &carry, mlir::Value window,
                         mlir::Value token, mlir::Value count);

private:
  void emitOps(llvm::SmallVectorImpl<mlir::Value> &carried,
               llvm::function_ref<bool(mlir::Value)> isNeeded,
               mlir::Value *map = nullptr);
  void roundToShown(mlir::Value result);
  mlir::Value emitRule(RuleOpInterface rule, mlir::Value state,
                       mlir::Value *map);
  mlir::Value tileOf(mlir::Value value);
  mlir::Value rowTile(mlir::Value tensor, llvm::ArrayRef<mlir::Value> at);
  mlir::Value scalar(mlir::Value tensor, mlir::Value at);
  std::pair<mlir::Value, int64_t> channelsOf(Conv1dOp op, unsigned section);
  mlir::Value weightTile(Conv1dOp op, unsigned section);
  void emitGates(GatesOp gates, llvm::function_ref<bool(mlir::Value)> isNeeded);
  void emitNormOfOutputs(GatedRMSNormOp norm, mlir::ValueRange constants);
  void storeResult(unsigned number, mlir::Value tile,
                   bool fullUntilLast = false);
  void storeResults();
  void storePendingInput(const Carry &carry, mlir::Value input);
  void storePending(RuleOpInterface rule, mlir::Value key, mlir::Value deltas,
                    mlir::Value logDecay);

  TileProgram &p;
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value r, t, valid;
  llvm::DenseMap<mlir::Value, mlir::Value> tiles; // f32 tile of a gdn value
  llvm::DenseMap<mlir::Value, mlir::Value> held;  // as loaded, of operands
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, mlir::Value> weights,
      biases;
  // Of gates, the row or the scalar of the bias and the scalar of the rate.
  llvm::DenseMap<mlir::Operation *, std::pair<mlir::Value, mlir::Value>>
      gateWeights;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_TOKENBLOCK_H
