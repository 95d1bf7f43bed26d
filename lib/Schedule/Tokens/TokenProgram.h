// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of a recurrence over the tokens of a sequence while it is
// written: what its parts share.
#ifndef GDN_LIB_SCHEDULE_TOKENS_TOKENPROGRAM_H
#define GDN_LIB_SCHEDULE_TOKENS_TOKENPROGRAM_H

#include "Kernel/ScheduledKernel.h"
#include "Tokens/TokenPlan.h"

namespace gdn {

/// A range of warps.
struct Warps {
  int64_t first, count;
};

struct TokenProgram : TokenPlan {
  /// `scalars` maps the values before the loop that are no tiles.
  TokenProgram(const TokenPlan &plan, mlir::OpBuilder &b,
               const mlir::IRMapping &scalars, gpu::RowsAttr stateRows,
               mlir::Block *entry);

  // The bodies of warps, which `leave` leaves.
  gpu::EachWarpOp enterEachWarp(Warps warps, mlir::TypeRange results = {});
  gpu::WarpsOp enterWarp(int64_t warp, mlir::TypeRange results = {});
  void leave(mlir::Operation *op, mlir::ValueRange yielded = {});
  /// The body of a loop on each warp of the block, which takes tokens below
  /// `count` in turn; returns the token, for `leaveTurns`.
  mlir::Value enterTurns(mlir::Value count);
  void leaveTurns(mlir::Value at);

  void emitIf(mlir::Value condition, llvm::function_ref<void()> emitThen);
  mlir::Value emitIf(mlir::Value condition, mlir::Type type,
                     llvm::function_ref<mlir::Value()> emitThen,
                     llvm::function_ref<mlir::Value()> emitElse);
  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, int64_t y) {
    return mlir::arith::MulIOp::create(b, loc, x, index(y));
  }
  mlir::Value isEqual(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::eq,
                                       x, y);
  }
  /// `value` between 0 and `most`.
  mlir::Value clamp(mlir::Value value, int64_t most) {
    value = mlir::arith::MinSIOp::create(b, loc, value, index(most));
    return mlir::arith::MaxSIOp::create(b, loc, value, index(0));
  }

  /// A map over rows. `emitBody` gets its arguments, the number of the row and
  /// what `inputs` have there, and returns what is yielded.
  mlir::ValueRange
  mapRows(mlir::TypeRange types, mlir::ValueRange inputs,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)>
              emitBody);

  /// The values of the program at token `token`, with those of `values` or
  /// `scalars`.
  mlir::IRMapping atToken(mlir::Value token, mlir::IRMapping values);
  mlir::IRMapping atToken(mlir::Value token) { return atToken(token, scalars); }
  /// `tokens` tokens from number `at` on, of which there are `count`.
  RowGroup group(int64_t tokens, mlir::Value count, mlir::Value at) {
    return {tokenTiles, tokens, clamp(sub(count, at), tokens)};
  }

  mlir::Value allocate(mlir::VectorType tile);
  /// Of the type of `tile`, but for the number of rows.
  mlir::Value allocateRows(mlir::Value tile, int64_t rows);
  /// Row `at` of a tile that lies in shared memory, in the layout, or with an
  /// element per column or row of the state.
  mlir::Value loadRow(mlir::Value tile, mlir::Attribute layout, mlir::Value at);
  mlir::Value loadPerColumn(mlir::Value tile, mlir::Value at) {
    return loadRow(tile, gpu::PerColumnAttr::get(b.getContext(), stateRows),
                   at);
  }
  mlir::Value loadPerRow(mlir::Value tile, mlir::Value at) {
    return loadRow(tile, gpu::PerRowAttr::get(b.getContext(), stateRows), at);
  }
  mlir::Value loadNumber(mlir::Value buffer, mlir::Value at) {
    return gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(), buffer, at);
  }
  /// The log decay of a token: a number, or one per channel.
  mlir::Value loadLogDecay(mlir::Value tile, mlir::Value at);
  /// `state` with `count` tokens put in, of which these lie in shared memory.
  /// Deltas may have `scales`, a tile that lies there, too.
  mlir::Value emitFold(mlir::Value state, mlir::Value count, mlir::Value keys,
                       mlir::Value deltas, mlir::Value logDecays,
                       mlir::Value scales = {});
  /// Sets `tile` of `emitter` to its rows, or those of `other`, from `row` on.
  void loadTile(FragmentEmitter &emitter, mlir::Value tile, mlir::Value row,
                mlir::Value other = {});

  /// What the finish loads of each token, where the warp of the gates has room
  /// for it: decays per channel leave none.
  llvm::SmallVector<tile::LoadOp> getOutputLoads();

  mlir::OpBuilder &b;
  mlir::Location loc;
  const mlir::IRMapping &scalars;
  gpu::RowsAttr stateRows;
  mlir::Block *entry;
  llvm::DenseSet<mlir::Value> tokenTiles;
  mlir::Value begin, end; // tokens of the sequence
  /// Tiles that lie in shared memory: of tokens, a row for each of the block's;
  /// windows after them (TokenWindows.h); pending tokens.
  llvm::DenseMap<mlir::Value, mlir::Value> shared;
};

/// A part of the program.
struct TokenPart {
  explicit TokenPart(TokenProgram &p)
      : p(p), b(p.b), loc(p.loc), scan(p.scan) {}

  TokenProgram &p;
  mlir::OpBuilder &b;
  mlir::Location loc;
  tile::DeltaScanOp scan;
};

/// Emits the loads among `ops`, or the others.
void emitLoads(FragmentEmitter &emitter, llvm::ArrayRef<mlir::Operation *> ops);
void emitOthers(FragmentEmitter &emitter,
                llvm::ArrayRef<mlir::Operation *> ops);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENPROGRAM_H
