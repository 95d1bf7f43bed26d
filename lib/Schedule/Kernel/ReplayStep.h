// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One token on a state that lacks the pending ones, in the parts in which
// schedules share it out: the pending tokens come to shared memory, each gives
// a term's factor, and one warp sums the terms up.
#ifndef GDN_LIB_SCHEDULE_KERNEL_REPLAYSTEP_H
#define GDN_LIB_SCHEDULE_KERNEL_REPLAYSTEP_H

#include "Kernel/FragmentEmitter.h"

namespace gdn {

/// Schedules take so many pending tokens at a time.
constexpr int64_t pendingMultiple = 4;

/// What a tile of pending tokens has in shared memory: W rows, or the next
/// multiple.
mlir::VectorType getPendingRoom(mlir::Value tile);

/// Begins to copy the rows of pending tokens that `load` asks for to `buffer`,
/// which has room for as many or more; those behind the last one become zero.
/// `outside` has its scalars.
void beginPendingCopy(mlir::OpBuilder &b, tile::LoadOp load,
                      FragmentEmitter &outside, mlir::Value buffer);

/// Pending tokens in shared memory, zeros behind the last one; R rows.
struct ReplayPending {
  mlir::Value keys, deltas; ///< R x dk, R x dv; both f32 or both f16
  mlir::Value weights;      ///< R: factors of deltas behind the last one
  mlir::Value kept;         ///< an f32: the same of the state
  /// With a decay per channel `keys` are f32 and have what is left of each
  /// channel in them, and the state's factors are a row: 1 x dk. `kept` is
  /// null, and `weights` are scales of deltas, or null.
  mlir::Value keptRow;
  mlir::Value count;   ///< how many there are
  mlir::Value commits; ///< whether the state receives them
};

/// `most` numbers, f32, to lanes of a warp.
gpu::FragmentType getReplayNumbers(mlir::MLIRContext *context, int64_t most);

/// What remains of pending tokens with these log decays, R numbers: as many, to
/// lanes of a warp, times `scales` of their deltas if there are some, which are
/// laid out so, too; and the same of the state.
mlir::Value emitReplayWeights(mlir::OpBuilder &b, mlir::Location loc,
                              llvm::ArrayRef<mlir::Value> decays,
                              mlir::Value scales = {});
mlir::Value emitReplayKept(mlir::OpBuilder &b, mlir::Location loc,
                           llvm::ArrayRef<mlir::Value> decays);

/// The same, of `most` log decays, and scales, that lie in shared memory.
mlir::Value emitReplayWeights(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value decays, int64_t most,
                              mlir::Value scales = {});
mlir::Value emitReplayKept(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value decays, int64_t most);

/// What a token meets with a decay per channel: rows in shared memory, 1 x dk
/// of f32.
struct ReplayRows {
  mlir::Value key, query;         ///< for products with the state
  mlir::Value pairKey, pairQuery; ///< for those with pending keys
};

/// With a decay per channel, in one warp: what is left of each channel of a
/// pending key, times that, to `keys`, R x dk of f32; what is left of the state
/// to `keptRow`; and the token's rows. `decays` are the log decays of pending
/// tokens, R x dk, and `logDecay`, `key` and `query` the token's; all lie in
/// shared memory. `pending` has keys as they are.
void emitReplayChannels(mlir::OpBuilder &b, mlir::Location loc,
                        const ReplayPending &pending, mlir::Value decays,
                        mlir::Value keys, mlir::Value logDecay, mlir::Value key,
                        mlir::Value query, const ReplayRows &rows);

/// The factors of the terms of pending tokens: what remains of each behind the
/// token, times the products of its key with the token's key and query; zero
/// for a state that has received them. R numbers for each, as the rows of
/// `rows` have them; `key` and `query` are its columns. `decay` is the token's,
/// no logarithm; null: it is in `key` and `query`, and so is that zero.
std::pair<mlir::Value, mlir::Value>
emitReplayPairs(mlir::OpBuilder &b, mlir::Location loc,
                const ReplayPending &pending, gpu::RowsAttr rows,
                mlir::Value key, mlir::Value query, mlir::Value decay);

/// What one warp knows of the token: tiles in shared memory, and numbers.
struct ReplayTerms {
  mlir::Value products;             ///< 2 x dv: of the state with key and query
  mlir::Value keyPairs, queryPairs; ///< R, from emitReplayPairs
  mlir::Value key, query, value;    ///< rows
  mlir::Value decay, beta;          ///< f32; no decay: products have it
  /// Made ahead, or null: what emitReplaySums leaves, and emitReplayMeets, f32.
  mlir::Value known, seen, meets;
};

/// What remains of the state behind the token, f32; null: products have it.
mlir::Value emitReplayFactor(mlir::OpBuilder &b, mlir::Location loc,
                             const ReplayPending &pending,
                             const ReplayTerms &terms);

/// The product of the token's key and query, f32, in one warp.
mlir::Value emitReplayMeets(mlir::OpBuilder &b, mlir::Location loc,
                            const ReplayTerms &terms);

/// The products of the state with key and query and the terms of pending
/// tokens added up, to `known` and `seen`, each `warps x 32` of f32: by as many
/// warps, in the order of emitReplayOutput.
void emitReplaySums(mlir::OpBuilder &b, mlir::Location loc,
                    const ReplayPending &pending, const ReplayTerms &terms,
                    mlir::Value known, mlir::Value seen);

/// What the token adds, and its output, as 1 x dv fragments of one warp.
std::pair<mlir::Value, mlir::Value>
emitReplayOutput(mlir::OpBuilder &b, mlir::Location loc,
                 const ReplayPending &pending, const ReplayTerms &terms);

/// The state with the pending tokens if it is to receive them, and as it was
/// otherwise; `emitStores` stores what it is then. `delta` gives a token's,
/// per_row.
mlir::Value
emitReplayFold(mlir::OpBuilder &b, mlir::Location loc, mlir::Value state,
               const ReplayPending &pending,
               llvm::function_ref<mlir::Value(mlir::Value at)> delta,
               llvm::function_ref<void(mlir::Value)> emitStores);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_REPLAYSTEP_H
