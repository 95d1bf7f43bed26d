// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a thread stands: its lane and warp, and what rows and columns of a tile
// it holds in a layout.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_BLOCKTHREADS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_BLOCKTHREADS_H

#include "gdn/Dialect/GPU/IR/GPU.h"

namespace gdn {

/// Arithmetic on i32 and i64 values with constants, as the lowering needs it.
struct Arithmetic {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value i32(int64_t value) const;
  mlir::Value i64(int64_t value) const;
  /// `value` of type index or i32, not negative, as an i64.
  mlir::Value toI64(mlir::Value value) const;
  mlir::Value toIndex(mlir::Value value) const;
  mlir::Value toI32(mlir::Value index) const;
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value both(mlir::Value lhs, mlir::Value rhs) const; // null: true
  mlir::Value isLess(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value isEqual(mlir::Value lhs, mlir::Value rhs) const;
  /// The address so many bytes behind `pointer`.
  mlir::Value advance(mlir::Value pointer, mlir::Value bytes) const;
  mlir::Value advance(mlir::Value pointer, int64_t bytes) const;
};

/// The thread among those that run an op: all of the block, or the warps of a
/// `gdn_gpu.warps`.
struct BlockThreads {
  mlir::Value lane;       // i32
  mlir::Value warp;       // i32, 0 for the first warp that runs the op
  int64_t firstWarp = 0;  // of the block or role
  int64_t numThreads = 0; // that run the op: of the block or a role
  bool isRole = false;    // not all of the block

  /// The row that position `i` of the thread's rows holds, as an i32; `rows` is
  /// the number of rows of the tile.
  mlir::Value row(const Arithmetic &a, gpu::RowsAttr layout, int64_t rows,
                  int64_t i) const;
  /// The first column of the thread's first piece, as an i32.
  mlir::Value column(const Arithmetic &a, gpu::RowsAttr layout) const;
  /// True in the threads that write a fragment of which others hold the same
  /// elements; null if there are none.
  mlir::Value isWriter(const Arithmetic &a, gpu::FragmentType fragment) const;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_BLOCKTHREADS_H
