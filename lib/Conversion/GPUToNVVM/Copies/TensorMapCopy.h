// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of whole boxes by tensor maps, which the runtime makes for the call
// and the kernel finds behind the words of its parameter.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_COPIES_TENSORMAPCOPY_H
#define GDN_LIB_CONVERSION_GPUTONVVM_COPIES_TENSORMAPCOPY_H

#include "Copies/Channels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace gdn {

/// The boxes of one program: one map for each argument or region and size of
/// box, in the order in which the program comes to them.
class TensorMaps {
public:
  TensorMaps() = default;
  explicit TensorMaps(mlir::func::FuncOp program);

  bool isEmpty() const { return boxes.empty(); }
  /// Words of the parameter if those of the call are `words`: maps follow at
  /// the next multiple of 64 bytes. Called once, before any copy.
  int64_t place(int64_t words);
  /// What the launch has to know of them: an array of dictionaries.
  mlir::ArrayAttr describe(mlir::func::FuncOp program) const;
  /// The generic address of the map of `copy`, an i64, in the parameter of the
  /// kernel.
  mlir::Value getMap(mlir::OpBuilder &b, mlir::Operation *copy,
                     mlir::LLVM::LLVMFuncOp kernel) const;

private:
  struct Box {
    mlir::BlockArgument view;
    int64_t rowsDim, rows, pieces; // no pieces: all columns
    bool operator==(const Box &other) const {
      return view == other.view && rowsDim == other.rowsDim &&
             rows == other.rows && pieces == other.pieces;
    }
  };
  static Box boxOf(mlir::Operation *copy);

  llvm::SmallVector<Box> boxes;
  int64_t firstByte = 0;
};

/// Asks for the tile of `copy` as a box, by one thread of its role, where all
/// of its rows are there; elsewhere calls `emitPieces`. `indices` are those of
/// the copy, `rows` is null if they are always there, `buffer` points to the
/// tile.
void emitTensorMapCopy(mlir::OpBuilder &b, gpu::BeginCopyOp copy,
                       const BlockThreads &threads, const TensorMaps &maps,
                       mlir::LLVM::LLVMFuncOp kernel, Channels &channels,
                       mlir::ValueRange indices, mlir::Value rows,
                       mlir::Value buffer,
                       llvm::function_ref<void()> emitPieces);

/// The columns of a group to memory as a box, by its first thread, unless there
/// are no rows; `panel` is the place of its columns in the tile, in panels
/// of 64.
void emitTensorMapStore(mlir::OpBuilder &b, gpu::CopyOutOp copy,
                        mlir::Value isFirst, mlir::Value panel,
                        const TensorMaps &maps, mlir::LLVM::LLVMFuncOp kernel,
                        mlir::ValueRange indices, mlir::Value rows,
                        mlir::Value buffer);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_COPIES_TENSORMAPCOPY_H
