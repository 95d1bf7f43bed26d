// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ops of gdn_gpu use global memory, and how.
#ifndef GDN_LIB_DIALECT_GPU_TRANSFORMS_GLOBALACCESS_H
#define GDN_LIB_DIALECT_GPU_TRANSFORMS_GLOBALACCESS_H

#include "gdn/Dialect/GPU/IR/GPU.h"

namespace gdn {

/// What an op reads or writes in global memory.
struct GlobalAccess {
  mlir::Operation *op = nullptr;
  mlir::Value root; // the array, an argument of the function as a rule
  mlir::Value view; // which part of the array, and in what shape
  llvm::SmallVector<mlir::Value, 4> indices;
  llvm::SmallVector<int64_t, 2> dims;  // of the view that the tile lies along
  llvm::SmallVector<int64_t, 2> shape; // of the tile
  gdn::gpu::FragmentType fragment;     // null where there is none
  bool writes = false;
  bool isScalar = false; // read in every thread, or written by one

  /// Whether it reads an integer, such as a slot, which is there before the
  /// launches of a call.
  bool isNumber() const {
    return isScalar && !writes && op->getResult(0).getType().isIntOrIndex();
  }

  /// The access of `op`; null `op` in the result if it has none. Prefetches
  /// change and give nothing, so they are none.
  static GlobalAccess get(mlir::Operation *op);
};

/// The array that `view` is a part of.
mlir::Value getRootOfView(mlir::Value view);

/// The name of the array `root` where it is an argument of the call; null for a
/// region of the workspace.
mlir::StringAttr getNameInCall(mlir::Value root);

/// The array of `view` as all stages of an entry call it, in words: regions of
/// the workspace have the same numbers in all of them, but no names. Empty
/// where the function does not get it.
std::string describeInEntry(mlir::Value view);

enum class Overlap { none, unknown, some };

/// Whether two accesses have an element in common, as their indices show.
Overlap getOverlap(const GlobalAccess &access, const GlobalAccess &other);

/// Whether two accesses are at the same place in the dimensions that their
/// tiles do not lie along, such as the slot of a pool; unless views differ,
/// where this cannot be seen.
bool areInSamePlane(const GlobalAccess &access, const GlobalAccess &other);

/// Whether the tiles of two accesses begin at the same column.
bool haveSameColumns(const GlobalAccess &access, const GlobalAccess &other);

/// Whether each thread writes what it has read itself, or the other way round;
/// or, if the lanes of each row `haveMet` between the two, what one of them
/// has.
bool isBySameThreads(const GlobalAccess &access, const GlobalAccess &other,
                     bool haveMet = false);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GPU_TRANSFORMS_GLOBALACCESS_H
