// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ops of a loop over chunks are the work of which role.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_ROLEPLAN_H
#define GDN_LIB_SCHEDULE_PRODUCTS_ROLEPLAN_H

#include "Products/ChannelChunk.h"
#include "Products/ConvolvedValues.h"

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
  // Of these, the values that the consumers convolve.
  std::optional<ConvolvedValues> convolved;
  // Work on whole rows of outputs, of which each group of the consumers has a
  // part: maps, sums over two blocks, and stores. It takes outputs, and tiles
  // of memory that another role fetches.
  llvm::SetVector<mlir::Operation *> behind;
  llvm::SmallVector<mlir::Value> outputs, fetched;
  // What one role makes for others:
  llvm::SmallVector<mlir::Value> copied;   // copied by the loading one
  llvm::SmallVector<mlir::Value> vectors;  // made by it: gates
  llvm::SmallVector<mlir::Value> products; // by the producer, of products
  llvm::SmallVector<mlir::Value> scaled;   // by the scaling one
  // With a decay per channel: by roles of its own, which change what is copied
  // in place (ChannelRoles.cpp). `copied` is what becomes of it, and `vectors`
  // its values.
  std::optional<ChannelChunk> chunk;
  /// Matrices of which `vectors` has the running sums.
  llvm::SmallVector<mlir::Operation *> sums;
  /// Whether other stages prepared the chunks: `copied` is what products take
  /// first, `products` what the others take, and `vectors`; all are copied, as
  /// are `values`. Another role stores `stored`.
  bool isPrepared = false;
  llvm::SmallVector<mlir::Value> values, stored;

  /// Whether `op` needs no state, and is the work of another role than the
  /// recurrence.
  bool isAhead(mlir::Operation *op) const {
    return gates.contains(op) || produced.contains(op) || scales.contains(op);
  }

  /// Whether consumers ask for what is theirs, and gates for a chunk's inputs,
  /// ahead of what they wait for: where chunks are prepared here. Maps of whole
  /// heads take 0.5 to 2 % longer so, where their gates are made of projections
  /// and no other stage is beside them; and recurrences with a norm or a
  /// convolution 1 % where one is.
  bool beginsEarly() const;

  /// None if no loop carries a matrix beside an inverse that does not need it,
  /// or copies ahead, as the stage says, what others prepared.
  static std::optional<RolePlan> find(mlir::func::FuncOp program);

private:
  bool findChannels(const llvm::DenseSet<mlir::Operation *> &recurrence);
  bool findPrepared(const llvm::DenseSet<mlir::Operation *> &recurrence);
};

/// Emits the kernel of `source` in the roles of `plan`, ahead of it.
mlir::FailureOr<mlir::func::FuncOp> emitInRoles(mlir::func::FuncOp source,
                                                const RolePlan &plan);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_ROLEPLAN_H
