// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pending tokens: the last step's, of which the sequence's state has none yet.
// Their way into the state, and that of this step's tokens into their pools.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_PENDINGTOKENS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_PENDINGTOKENS_H

#include "Program/TileProgram.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

namespace gdn {

/// Where pending tokens of one value head are: a slot of the rule's three
/// pools, a key head and a value head.
struct PendingBuffer {
  PoolView keys, deltas, decays;
  std::optional<PoolView> scales; // of deltas in f16
  mlir::Value slot, keyHead, valueHead;
};

/// The tiles of pending tokens, one row each.
struct PendingTiles {
  mlir::Value keys, deltas, decays;
};

/// Loads the first `count` tokens, in f32. `keys`, `deltas` and `decays` are
/// the types of the three pools.
PendingTiles loadPending(mlir::OpBuilder &b, mlir::Location loc,
                         const PendingBuffer &buffer, mlir::Value count,
                         PoolType keys, PoolType deltas, PoolType decays);

/// The rows of a block of tokens that become pending: `valid` tokens, the first
/// of which is the sequence's token `at`, in pools that hold `steps`.
mlir::Value emitPendingRows(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value at, mlir::Value valid,
                            mlir::Value steps);

/// A block's deltas as their pool has them, and the scales of rows of f16, or
/// null.
std::pair<mlir::Value, mlir::Value> roundDeltas(mlir::OpBuilder &b,
                                                mlir::Location loc,
                                                mlir::Value deltas,
                                                mlir::Type element);

/// The pools of the rule's pending tokens for value head `r` of the block.
PendingBuffer pendingBufferOf(TileProgram &program, mlir::Value r);

/// Puts what the sequence accepts of its pending tokens into the state of value
/// head `r`, and writes it to the sequence's slot if that is something. Returns
/// the state as its slot holds it, f32.
mlir::Value emitCommit(TileProgram &program, const Carry &carry, mlir::Value r,
                       mlir::Value state, const PendingTiles &pending);

/// Sets what is pending of the block's key head over several steps, ahead of
/// `length` tokens.
void emitPendingCount(TileProgram &program, mlir::Value length);

/// Writes how many tokens of the key head are pending behind the `length`
/// tokens of this step, or ahead of them if the next step says what of them is
/// accepted. The builder stands where the key head's writer is.
void storePendingCount(TileProgram &program, mlir::Value length);

/// The rule over tokens of value head `r`, from a state that lacks pending
/// tokens; the state is written if it receives them. Returns the op.
tile::DeltaReplayOp emitReplay(TileProgram &program, const Carry &carry,
                               mlir::Value r, mlir::ValueRange tokens,
                               mlir::ValueRange gates, mlir::Value valid);

/// The state of value head `r` with its pending tokens of several steps, f32;
/// it is written if it receives them.
mlir::Value emitCatchUp(TileProgram &program, const Carry &carry,
                        mlir::Value r);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_PENDINGTOKENS_H
