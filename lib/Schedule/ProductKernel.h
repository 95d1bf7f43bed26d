// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel of products of tiles while it is written: the control flow of its
// program, with the ops of each part in the order of the schedule.
#ifndef GDN_LIB_SCHEDULE_PRODUCTKERNEL_H
#define GDN_LIB_SCHEDULE_PRODUCTKERNEL_H

#include "ProductEmitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

class ProductKernel {
public:
  ProductKernel(mlir::func::FuncOp source, int64_t numWarps)
      : source(source), numWarps(numWarps), b(source.getContext()) {}
  /// The kernel, ahead of the program.
  mlir::FailureOr<mlir::func::FuncOp> emit(int64_t minBlocks);

private:
  using Ops = llvm::SmallVector<mlir::Operation *>;

  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitSegment(mlir::ArrayRef<mlir::Operation *> ops);
  void emitLowTiles(mlir::ArrayRef<mlir::Operation *> ops);
  mlir::LogicalResult emitRegions(mlir::Operation *op);
  void emitScalars(mlir::ArrayRef<mlir::Operation *> ops,
                   mlir::IRMapping &mapping);

  // ProductLoops.cpp
  mlir::LogicalResult emitLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult emitReadingAhead(mlir::scf::ForOp loop,
                                       mlir::scf::ForOp copy);
  mlir::LogicalResult emitTurns(mlir::scf::ForOp loop, mlir::scf::ForOp copy);
  mlir::LogicalResult emitEach(tile::EachOp each);
  void emitAhead(mlir::scf::ForOp loop, mlir::ArrayRef<tile::LoadOp> loads,
                 mlir::Value at, mlir::Value end);
  void yield(mlir::scf::ForOp loop);
  void meet(mlir::Location loc) {
    gpu::AwaitCopiesOp::create(b, loc);
    gpu::BarrierOp::create(b, loc);
  }

  mlir::func::FuncOp source;
  int64_t numWarps;
  mlir::OpBuilder b;
  mlir::IRMapping scalars;
  std::optional<ProductEmitter> tiles;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTKERNEL_H
