// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state that is loaded, takes pending tokens in or changes its format, and is
// stored: a move of a slot with work on the way.
#ifndef GDN_LIB_SCHEDULE_MOVES_STATEMOVE_H
#define GDN_LIB_SCHEDULE_MOVES_STATEMOVE_H

#include "Kernel/FragmentEmitter.h"

namespace gdn {

/// The ops of one move: `loads`, what makes a state of them, `fold`, what is
/// made of the new state, and `stores`. Both maps are null where the state is
/// f32 in memory; a state in planes has several loads and stores, that of its
/// rows first. A move without a fold has `narrow` alone.
struct StateMove {
  llvm::SmallVector<tile::LoadOp, 3> loads;
  tile::MapRowsOp widen;
  tile::DeltaFoldOp fold;
  tile::MapRowsOp narrow;
  llvm::SmallVector<tile::StoreOp, 3> stores;

  /// The state, or where nothing is folded what has its numbers.
  mlir::VectorType stateType();
  /// Whether `op` belongs to the move, loads of pending tokens included.
  bool contains(mlir::Operation *op);
};

/// The move that `fold` stands in; none if its results have other uses, or its
/// operands other sources.
std::optional<StateMove> findFoldMove(tile::DeltaFoldOp fold);

/// The move of a state that `map` takes from planes or to planes; none if it is
/// something else.
std::optional<StateMove> findFormatMove(tile::MapRowsOp map);

/// Elements of a state that a thread holds at once, in f32.
constexpr int64_t mostLocalElements = 64;

/// Emits the move for all warps of a block of `numWarps`, in passes over blocks
/// of rows of which registers hold one. `scalars` are the values of the program
/// that are no tiles.
void emitStateMove(mlir::OpBuilder &b, StateMove move,
                   const mlir::IRMapping &scalars, gpu::RowsAttr layout);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_MOVES_STATEMOVE_H
