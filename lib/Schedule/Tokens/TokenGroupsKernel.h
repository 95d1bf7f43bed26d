// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel whose warps have a group of tokens each, while it is written from a
// tile program.
#ifndef GDN_LIB_SCHEDULE_TOKENS_TOKENGROUPSKERNEL_H
#define GDN_LIB_SCHEDULE_TOKENS_TOKENGROUPSKERNEL_H

#include "Kernel/FragmentEmitter.h"
#include "Kernel/OperandRoles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

/// Whether warps take rows of the tile: it has its place in shared memory.
bool isChunk(tile::LoadOp load);
/// Whether there is such a load in `op`.
bool hasChunk(mlir::Operation *op);

class TokenGroupsKernel {
public:
  /// The warps of a block have a coordinate each on the last axis of the grid
  /// if `hasPieces`; else there is one warp.
  TokenGroupsKernel(mlir::func::FuncOp source, int64_t numWarps, bool hasPieces)
      : source(source), numWarps(numWarps), hasPieces(hasPieces),
        b(source.getContext()) {}
  void emit(int64_t minBlocks);

private:
  bool isOfWarp(mlir::Operation &op);
  void emitWithChunks();
  void emitAround(llvm::ArrayRef<mlir::Operation *> ops);
  bool isOfAll(tile::LoadOp load);
  gpu::EachWarpOp enterWarps(mlir::TypeRange results = {});
  void emitWarps();
  void emitCopy(tile::LoadOp load);
  void emitBlock(mlir::Block &block);
  void emitOps(llvm::ArrayRef<mlir::Operation *> ops);
  void emitLoop(mlir::scf::ForOp loop);
  void emitLoad(tile::LoadOp load);
  void emitExtract(tile::ExtractRowsOp extract);
  void take(mlir::ValueRange from, mlir::ValueRange to) {
    for (auto [value, other] : llvm::zip(from, to)) {
      scalars.map(value, other);
      warp->mapScalar(value, other);
    }
  }

  mlir::func::FuncOp source, kernel;
  int64_t numWarps;
  bool hasPieces;
  mlir::OpBuilder b;
  mlir::IRMapping scalars;
  std::optional<FragmentEmitter> warp;
  mlir::Value group; // the warp's coordinate on the last axis, where it has one
  int64_t lastAxis = -1;
  bool hasRowValues = false; // lanes have parts of several rows
  /// What warps do by themselves, from the blocks around, and what they have
  /// of it.
  llvm::SmallVector<mlir::Operation *> ofWarps;
  llvm::DenseSet<mlir::Value> perWarp;
  llvm::DenseMap<mlir::Value, mlir::Value> chunks; // tiles' buffers
  /// Loads of warps while the block's copies are under way: all of them have
  /// the same.
  llvm::SmallVector<tile::LoadOp> meanwhile;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENGROUPSKERNEL_H
