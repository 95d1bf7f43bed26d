// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States after every token of a sequence: the recurrence over its tokens, one
// by one, that writes each to a slot of its own.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_TOKENSTATES_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_TOKENSTATES_H

#include "Recurrence/TokenBlock.h"

namespace gdn {

/// True if the carried tile is written on the way, after every token or before
/// the first, and not after the last.
bool isWrittenOnTheWay(const Carry &carry);

/// Emits the tokens `begin` to `end` of the sequence of value head `r`. `start`
/// holds the carried tiles before them; returns those after, which mean nothing
/// for a tree of tokens. `writers` has for
/// each carry an i1, whether this value head writes it; null where it does.
llvm::SmallVector<mlir::Value>
emitTokenByToken(TileProgram &program, TokenBlock &block, mlir::Value r,
                 llvm::ArrayRef<mlir::Value> start,
                 llvm::ArrayRef<mlir::Value> writers);

/// The same of a sequence of which what is behind the last token is kept, and
/// behind those that its checkpoints name: carried tiles are written in their
/// turns.
llvm::SmallVector<mlir::Value>
emitTokensUpToEnd(TileProgram &program, TokenBlock &block, mlir::Value r,
                  llvm::ArrayRef<mlir::Value> start,
                  llvm::ArrayRef<mlir::Value> writers);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_TOKENSTATES_H
