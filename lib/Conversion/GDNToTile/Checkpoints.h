// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States inside a row: which they are, and the walk over a row's tokens that
// writes them on the way.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHECKPOINTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHECKPOINTS_H

#include "TileProgram.h"

namespace gdn {

/// A checkpoint lies after a multiple of this many tokens of its row: the
/// least common multiple of the chunks that engines and kernels work in.
constexpr int64_t checkpointTokens = 64;

/// Emits the bounds of the row's checkpoints, clamped to those there are.
void emitCheckpointBounds(TileProgram &program);

/// Emits the tokens of the row of value head `r` in pieces that end at its
/// checkpoints, writing the carried tiles after each piece, and then the rest.
/// `start` holds the carried tiles before the row. `emitTokens(from, to,
/// carried)` emits a piece, which may have no tokens, and returns the next
/// tiles; it is called once. Returns the tiles after the row.
llvm::SmallVector<mlir::Value>
emitUpToCheckpoints(TileProgram &program, mlir::Value r,
                    llvm::ArrayRef<mlir::Value> start,
                    llvm::function_ref<llvm::SmallVector<mlir::Value>(
                        mlir::Value, mlir::Value, llvm::ArrayRef<mlir::Value>)>
                        emitTokens);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHECKPOINTS_H
