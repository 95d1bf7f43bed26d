// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops for the ops of gdn_tile, on the buffers of their tiles.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_EXPANDTILEOPS_H
#define GDN_LIB_CONVERSION_TILETOCPU_EXPANDTILEOPS_H

#include "gdn/Dialect/Tile/IR/Tile.h"

namespace gdn {

/// Copies tile `from` into `to`, memrefs of the same shape, row by row.
void expandCopy(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value from,
                mlir::Value to);

/// `to` receives what `load` reads.
void expandLoad(mlir::OpBuilder &builder, tile::LoadOp load, mlir::Value to,
                int64_t lanes);

/// The view of `store` receives `from`.
void expandStore(mlir::OpBuilder &builder, tile::StoreOp store,
                 mlir::Value from, int64_t lanes);

/// Every element of `to` becomes the fill's value.
void expandFill(mlir::OpBuilder &builder, tile::FillOp fill, mlir::Value to);

/// One loop over the rows, each vector by vector. `inputs` and `results` are
/// the buffers of the op's tiles, `captured` maps tiles that the body uses
/// whole to their buffers.
void expandMapRows(mlir::OpBuilder &builder, tile::MapRowsOp map,
                   llvm::ArrayRef<mlir::Value> inputs,
                   llvm::ArrayRef<mlir::Value> results,
                   const llvm::DenseMap<mlir::Value, mlir::Value> &captured,
                   int64_t lanes);

/// The same with a row as one vector, for bodies that do not go by parts.
void expandWholeRows(mlir::OpBuilder &builder, tile::MapRowsOp map,
                     llvm::ArrayRef<mlir::Value> inputs,
                     llvm::ArrayRef<mlir::Value> results,
                     const llvm::DenseMap<mlir::Value, mlir::Value> &captured);

/// Buffers of the tiles of a gdn_tile.conv1d.
struct ConvBuffers {
  mlir::Value input, window, weight, bias, result, newWindow;
};
void expandConv1d(mlir::OpBuilder &builder, tile::Conv1dOp conv,
                  const ConvBuffers &buffers, int64_t lanes);

/// Buffers of the tiles of a gdn_tile.delta_scan; `decay` is scratch of the
/// shape of `logDecay` for exp(logDecay), `beta`, `erase` and `deltas` may be
/// null.
/// `stateIsInPool` says that `state` is a view of a pool, whose rows come from
/// memory.
struct ScanBuffers {
  mlir::Value state, query, key, value, logDecay, decay, beta, erase, newState,
      output, deltas;
  bool stateIsInPool = false;
};
void expandDeltaScan(mlir::OpBuilder &builder, tile::DeltaScanOp scan,
                     const ScanBuffers &buffers, int64_t lanes);

/// Buffers of the tiles of a gdn_tile.delta_fold; `decay` as above.
struct FoldBuffers {
  mlir::Value state, key, deltas, logDecay, decay, newState;
};
void expandDeltaFold(mlir::OpBuilder &builder, tile::DeltaFoldOp fold,
                     const FoldBuffers &buffers, int64_t lanes);

/// Buffers of the tiles of a gdn_tile.delta_catch_up; `pendingDecay` is scratch
/// with a factor for each pending token, or with a decay per channel a row for
/// each of them and one for the state. `isInPlace` says that `newState` is
/// where `state` is.
struct CatchUpBuffers {
  mlir::Value state, pendingKey, pendingDeltas, pendingLogDecay, newState,
      whole;
  mlir::Value pendingDecay;
  bool isInPlace = false;
};
void expandDeltaCatchUp(mlir::OpBuilder &builder, tile::DeltaCatchUpOp catchUp,
                        const CatchUpBuffers &buffers, int64_t lanes);

/// Buffers of the tiles of a gdn_tile.delta_replay. Scratch of f32: `decay` and
/// `pendingDecay` have a factor for each token (with a decay per channel a row,
/// and `pendingDecay` one more), `keyWeights` and `queryWeights`
/// one for each token of the step and each pending token, then each of the step
/// (`B x (W + B)`). `isInPlace` says that `newState` is where `state` is,
/// `stateIsInPool` that its rows come from memory. `seen` is null where tokens
/// see the state.
struct ReplayBuffers {
  mlir::Value state, pendingKey, pendingDeltas, pendingLogDecay, query, key,
      value, logDecay, beta, newState, output, deltas;
  mlir::Value decay, pendingDecay, keyWeights, queryWeights;
  bool isInPlace = false, stateIsInPool = false;
  mlir::Value seen = {};
};
void expandDeltaReplay(mlir::OpBuilder &builder, tile::DeltaReplayOp replay,
                       const ReplayBuffers &buffers, int64_t lanes);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_EXPANDTILEOPS_H
