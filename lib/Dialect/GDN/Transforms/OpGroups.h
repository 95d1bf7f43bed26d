// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A partition of a block's ops into groups such that the groups can be put one
// after another: what gdn-fuse builds its kernels from.
#ifndef GDN_LIB_DIALECT_GDN_TRANSFORMS_OPGROUPS_H
#define GDN_LIB_DIALECT_GDN_TRANSFORMS_OPGROUPS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace gdn {

/// True if the two ops touch the same memory and one of them writes it. Values
/// that differ name memory that does not overlap.
bool haveMemoryConflict(mlir::Operation *a, mlir::Operation *b);

/// Groups of the ops of one block, the terminator included. At first every op
/// is a group of its own. Invariant: the dependences between groups (uses of
/// results, and order on memory) have no cycle.
class OpGroups {
public:
  explicit OpGroups(mlir::Block &block);

  /// The ops of the group of `op`, in program order.
  llvm::ArrayRef<mlir::Operation *> get(mlir::Operation *op) const {
    return groups[groupOf.lookup(op)];
  }

  /// Puts the groups of `a` and `b` together, with every group that lies on a
  /// path between them. Does nothing and returns false if `mayMerge` refuses
  /// the list of ops that would result, in program order.
  bool
  merge(mlir::Operation *a, mlir::Operation *b,
        llvm::function_ref<bool(llvm::ArrayRef<mlir::Operation *>)> mayMerge);

  /// The groups in an order that keeps all dependences and, as far as it can,
  /// the program's.
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> getOrdered() const;

private:
  /// The groups that come after (before) group `start` by some dependence.
  llvm::BitVector getReachable(unsigned start, bool isAfter) const;

  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, unsigned> position;
  llvm::DenseMap<mlir::Operation *, unsigned> groupOf;
  /// By op position: the positions it depends on, and those that depend on it.
  llvm::SmallVector<llvm::SmallVector<unsigned>> before, after;
  /// By group number; a group that was merged into another is empty.
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> groups;
};

} // namespace gdn

#endif // GDN_LIB_DIALECT_GDN_TRANSFORMS_OPGROUPS_H
