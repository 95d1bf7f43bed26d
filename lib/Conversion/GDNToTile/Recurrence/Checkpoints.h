// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States inside a sequence: which they are, and the recurrence over a
// sequence's tokens that writes them on the way.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CHECKPOINTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CHECKPOINTS_H

#include "Program/TileProgram.h"

namespace gdn {

/// A checkpoint lies after a multiple of this many tokens of its sequence: the
/// least common multiple of the chunks that engines and kernels work in.
constexpr int64_t checkpointTokens = 64;

/// Emits the bounds of the sequence's checkpoints, clamped to those there are.
void emitCheckpointBounds(TileProgram &program);

/// Emits `emitStore` of what `carry` is at a checkpoint where its op has
/// checkpoints, `slot` is live and value head `r` is the one that writes it.
void emitCheckpoint(TileProgram &program, const Carry &carry, mlir::Value r,
                    mlir::Value slot, llvm::function_ref<void()> emitStore);

/// Emits the tokens of the sequence in pieces that end at its checkpoints, and
/// then the rest. `start` holds the carried tiles before the sequence.
/// `emitTokens(from, to, carried)` emits a piece, which may have no tokens, and
/// returns the next tiles; `emitWrites(to, slot, carried)` what is written
/// behind it, to a slot that may be dead. Both are called once. Returns the
/// tiles after the sequence.
llvm::SmallVector<mlir::Value>
emitUpToCheckpoints(TileProgram &program, llvm::ArrayRef<mlir::Value> start,
                    llvm::function_ref<llvm::SmallVector<mlir::Value>(
                        mlir::Value, mlir::Value, llvm::ArrayRef<mlir::Value>)>
                        emitTokens,
                    llvm::function_ref<void(mlir::Value, mlir::Value,
                                            llvm::ArrayRef<mlir::Value>)>
                        emitWrites);

/// The slot of the sequence's checkpoint after `count` of its tokens; one that
/// is skipped where there is none. It asks all of them, when `count` may be
/// one.
mlir::Value emitCheckpointSlot(TileProgram &program, mlir::Value count);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CHECKPOINTS_H
