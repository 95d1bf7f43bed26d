// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The function of a kernel: what it takes over from that of its tile program,
// and what its arguments promise.
#ifndef GDN_LIB_SCHEDULE_KERNEL_KERNELFUNCTION_H
#define GDN_LIB_SCHEDULE_KERNEL_KERNELFUNCTION_H

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace gdn {

/// Fails, with an error on `module`, unless `threads`, the option of a
/// schedule, are whole warps of a block, `least` threads or more.
mlir::LogicalResult checkThreads(mlir::Operation *module, int64_t threads,
                                 int64_t least);

/// Creates the kernel of the program `source` ahead of it, with its name, type
/// and attributes. The builder stands in its entry block then, whose arguments
/// are in `mapping`.
mlir::func::FuncOp createKernel(mlir::OpBuilder &b, mlir::func::FuncOp source,
                                mlir::IRMapping &mapping);

/// The block's coordinate, to `mapping`.
void copyBlockId(mlir::OpBuilder &b, tile::BlockIdOp id,
                 mlir::IRMapping &mapping);
/// Copies `op` unless it is of tiles; a block's coordinate as above.
void copyScalar(mlir::OpBuilder &b, mlir::Operation *op,
                mlir::IRMapping &mapping);

/// Copies `op` with regions of its own. `emitBody(from, to)` fills the block
/// `to`, at whose beginning the builder stands, with what becomes of `from`,
/// all but its terminator, which is copied. Arguments and results are in
/// `mapping`.
void copyWithRegions(
    mlir::OpBuilder &b, mlir::Operation *op, mlir::IRMapping &mapping,
    llvm::function_ref<void(mlir::Block &from, mlir::Block &to)> emitBody);

/// Bytes that are known to divide the addresses of a view's tiles: the caller
/// promises them for an argument.
int64_t getAlignment(mlir::Value view);
/// Lets the caller of `kernel` promise them for `view`, if that is an argument
/// of the kernel or of its program.
void setAlignment(mlir::func::FuncOp kernel, mlir::Value view, int64_t bytes);

/// Whether the rows of a tile lie side by side in `view`, and its columns apart
/// (states as [dk, dv]), as the types say; `dims` are those of a load or store.
bool liesAcross(mlir::Value view, llvm::ArrayRef<int64_t> dims);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_KERNELFUNCTION_H
