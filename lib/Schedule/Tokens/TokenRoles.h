// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over the tokens of a sequence with one scan in it: which tiles have a
// row per token, so that several tokens can be worked on at once, and what the
// convolutions carry from token to token.
#ifndef GDN_LIB_SCHEDULE_TOKENS_TOKENROLES_H
#define GDN_LIB_SCHEDULE_TOKENS_TOKENROLES_H

#include "Kernel/FragmentEmitter.h"
#include "Kernel/OperandRoles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

/// Tiles of the body of `loop` with a row, or an element, for the token.
llvm::DenseSet<mlir::Value> findTokenTiles(mlir::scf::ForOp loop);

/// The convolution among `ops` whose window `loop` carries; null if there is
/// none.
tile::Conv1dOp findCarriedConv(mlir::scf::ForOp loop,
                               mlir::ArrayRef<mlir::Operation *> ops);

/// Tiles from the convolutions among `ops` that the conditional stores `stores`
/// write: windows after a token.
llvm::SetVector<mlir::Value>
findStoredWindows(mlir::ArrayRef<mlir::Operation *> stores);

/// Copies to the builder's position the ops of `block` that are no tiles and
/// need none, with those in their regions; those of floating point are computed
/// where they are used. Ops that need what `scalars` lacks are left out.
void emitTokenScalars(mlir::OpBuilder &b, mlir::Block &block,
                      mlir::IRMapping &scalars);

/// True if `op` is or has a `gdn_tile.store`.
bool hasStores(mlir::Operation *op);

/// The ops of `gdn_tile.last_in_group` that the condition of a branch comes
/// from.
llvm::SetVector<mlir::Operation *> findLastInGroup(mlir::Operation *branch);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENROLES_H
