// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of one gdn.kernel with the token recurrence.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_RECURRENTKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_RECURRENTKERNEL_H

#include "Program/SequenceProgram.h"
#include "Recurrence/TokenBlock.h"
#include "Recurrence/TokenStates.h"

namespace gdn {

/// The program of a block while it is written; see RecurrentKernel.cpp.
class RecurrentKernel : public SequenceProgram {
public:
  using SequenceProgram::SequenceProgram;

  mlir::LogicalResult emit();

protected:
  /// The carried tile before the tokens of the block, f32.
  virtual mlir::Value loadStart(const Carry &carry, mlir::Value r) {
    return loadCarry(carry, r);
  }
  /// Keeps the carried tile after the tokens of the block.
  virtual void storeEnd(const Carry &carry, mlir::Value tile, mlir::Value r) {
    storeCarry(carry, tile, r);
  }

  /// Makes `begin` and `end` the tokens that the block has of its sequence:
  /// all.
  virtual void takeTokens() {}

  /// The live tokens `begin` to `end`: all value heads of key head `h`, or the
  /// block's one.
  void emitSequence();

private:
  /// Notes on the function which tokens take chunks, of how many tokens, and
  /// what the operands of their products became.
  void recordForm();
  llvm::SmallVector<mlir::Value> emitBlocks(TokenBlock &block, mlir::Value from,
                                            mlir::Value to,
                                            llvm::ArrayRef<mlir::Value> start);
  llvm::SmallVector<mlir::Value> emitChunks(TokenBlock &block, mlir::Value from,
                                            mlir::Value to,
                                            llvm::ArrayRef<mlir::Value> start);
  llvm::SmallVector<mlir::Value> emitTokens(TokenBlock &block, mlir::Value from,
                                            mlir::Value to,
                                            llvm::ArrayRef<mlir::Value> start);
  void emitValueHead(mlir::Value r,
                     llvm::MutableArrayRef<mlir::Value> keyCarries);
  void emitOneValueHead(llvm::MutableArrayRef<mlir::Value> keyCarries);

  /// Whether a sequence is computed token by token and written on the way.
  bool goesTokenByToken();
  /// Whether the carried tile is written before the sequence's tokens are
  /// through.
  bool isWrittenInside(const Carry &carry) {
    return isWrittenOnTheWay(carry) || goesTokenByToken();
  }
  llvm::SmallVector<mlir::Value>
  emitSequenceTokens(TokenBlock &block, mlir::Value r,
                     llvm::ArrayRef<mlir::Value> start);
  llvm::SmallVector<mlir::Value>
  emitPendingTokens(TokenBlock &block, mlir::Value r,
                    llvm::ArrayRef<mlir::Value> start);

  /// Per carry, whether the block writes it after every token; null: it does,
  /// or nobody does.
  llvm::SmallVector<mlir::Value> tokenWriters;
};

/// `algorithm` with the choices that are left to a rule made.
Algorithm chooseForm(const KernelOperands &parts, const Algorithm &algorithm);

/// Fills `views.function` with the program of `kernel`, whose results the entry
/// returns. An entry without sequence bounds takes the recurrent form, token by
/// token. Fails with an error on the op that has no tile program.
mlir::LogicalResult emitRecurrentKernel(EntryViews &views, KernelOp kernel,
                                        const Algorithm &algorithm);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_RECURRENTKERNEL_H
