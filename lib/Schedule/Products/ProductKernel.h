// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel of products of tiles while it is written: the control flow of its
// program, with the ops of each part in the order of the schedule.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTKERNEL_H
#define GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTKERNEL_H

#include "Products/ProductEmitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace gdn {

/// A loop over chunks in roles. The consumers have what needs the state, the
/// producer has the products that do not. What needs no product is for the role
/// that loads and makes gates, or for the one that scales rows of what was
/// loaded.
struct RolePlan {
  mlir::scf::ForOp loop;
  llvm::SetVector<mlir::Operation *> gates; // of the loop, and ahead of it
  llvm::SetVector<mlir::Operation *> produced;
  llvm::SetVector<mlir::Operation *> scales; // rows of loaded tiles by vectors
  tile::TriInverseOp inverse;                // among them
  llvm::SmallVector<tile::LoadOp>
      perWarpgroup; // copied by the consumers, transposed
  // What one role makes for others:
  llvm::SmallVector<mlir::Value> copied;   // copied by the loading one
  llvm::SmallVector<mlir::Value> vectors;  // made by it: gates
  llvm::SmallVector<mlir::Value> products; // by the producer, of products
  llvm::SmallVector<mlir::Value> scaled;   // by the scaling one
  /// Matrices of which `vectors` has the running sums.
  llvm::SmallVector<mlir::Operation *> sums;

  /// Whether `op` needs no state, and is the work of another role than the
  /// recurrence.
  bool isAhead(mlir::Operation *op) const {
    return gates.contains(op) || produced.contains(op) || scales.contains(op);
  }

  /// None if no loop carries a matrix beside an inverse that does not need it.
  static std::optional<RolePlan> find(mlir::func::FuncOp program);
};

class ProductKernel {
public:
  using Ops = llvm::SmallVector<mlir::Operation *>;

  ProductKernel(mlir::func::FuncOp source, int64_t numWarps)
      : source(source), numWarps(numWarps), b(source.getContext()) {}
  /// The kernel, ahead of the program.
  mlir::FailureOr<mlir::func::FuncOp> emit(int64_t minBlocks);
  /// Likewise in roles; `numWarps` are the consumers.
  mlir::FailureOr<mlir::func::FuncOp> emitRoles(RolePlan plan);

private:
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitSegment(mlir::ArrayRef<mlir::Operation *> ops);
  void emitLowTiles(mlir::ArrayRef<mlir::Operation *> ops);
  mlir::LogicalResult emitRegions(mlir::Operation *op);
  void emitScalars(mlir::ArrayRef<mlir::Operation *> ops,
                   mlir::IRMapping &mapping);

  // ReadAhead.cpp
  mlir::LogicalResult emitLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult emitReadingAhead(mlir::scf::ForOp loop,
                                       mlir::scf::ForOp copy);
  void emitAhead(mlir::scf::ForOp loop, mlir::ArrayRef<tile::LoadOp> loads,
                 mlir::Value at, mlir::Value end);
  void yield(mlir::scf::ForOp loop);

  // Consumers.cpp
  mlir::LogicalResult emitConsumers(mlir::scf::ForOp loop,
                                    mlir::scf::ForOp copy);
  void storeBehind(mlir::scf::ForOp loop, mlir::Operation *begun);

  // Producer.cpp
  mlir::LogicalResult emitProducer(mlir::scf::ForOp loop);
  mlir::LogicalResult emitProducerAlone(mlir::scf::ForOp loop);

  // WarpRoles.cpp
  enum class Role { all, load, gate, scale, producer, consumers };
  mlir::LogicalResult emitAheadOfRoles();
  bool canPair();
  mlir::scf::ForOp createTurns(mlir::scf::ForOp loop);
  mlir::LogicalResult emitRole(Role which, int64_t first, int64_t count,
                               int64_t registers);
  mlir::LogicalResult emitLoad(mlir::scf::ForOp loop);
  mlir::LogicalResult emitGates(mlir::scf::ForOp loop);
  mlir::scf::ForOp createPairLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult emitScale(mlir::scf::ForOp loop);
  void receive(mlir::ArrayRef<mlir::Value> group, bool ahead = false);
  void destine(mlir::ArrayRef<mlir::Value> group);
  void commit(mlir::ArrayRef<mlir::Value> group);
  void releaseAll();
  Ops enterBody(mlir::scf::ForOp loop, mlir::scf::ForOp copy,
                const llvm::SetVector<mlir::Operation *> &from);
  void beginRing(mlir::Value at, mlir::Value end);
  bool isOfRole(mlir::Operation *op);
  mlir::Value createChannel(mlir::VectorType tile, int64_t depth,
                            mlir::Value leader, bool paired);
  void emitAhead(mlir::ArrayRef<tile::LoadOp> loads, mlir::Value at,
                 mlir::Value end,
                 llvm::function_ref<void(tile::LoadOp, const mlir::IRMapping &,
                                         mlir::Value)>
                     begin);
  void meet(mlir::Location loc) {
    gpu::AwaitCopiesOp::create(b, loc);
    gpu::BarrierOp::create(b, loc);
  }

  mlir::func::FuncOp source;
  int64_t numWarps;
  mlir::OpBuilder b;
  mlir::IRMapping scalars;
  std::unique_ptr<ProductEmitter> emitter;
  std::optional<RolePlan> plan;
  Role role = Role::all;
  bool isPaired = false; // two blocks prepare chunks for each other
  mlir::Block *entry = nullptr;
  llvm::DenseSet<mlir::Operation *> aheadOfRoles;     // scalars of the source
  llvm::MapVector<mlir::Value, mlir::Value> channels; // by tile
  llvm::SmallVector<mlir::Value> received;            // channels, leaders first
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_PRODUCTKERNEL_H
