// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a view and indices to an address in global memory.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_VIEWMEMORY_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_VIEWMEMORY_H

#include "Fragments/TileAccess.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace gdn {

/// The caller's memory, as one program uses it.
class ViewMemory {
public:
  /// Looks which arguments of `program` it writes.
  explicit ViewMemory(mlir::func::FuncOp program);

  /// From here on, memory may be what the launch before this one wrote, while
  /// this one ran already.
  void enterAwaited() { isAwaited = true; }
  bool hasAwaited() const { return isAwaited; }
  /// A role begins, which has not waited whatever others have done. Where that
  /// was ahead of all roles, `behindStage`, it was for a stage ahead of this
  /// one, which writes no inputs of the call.
  void enterRole(bool behindStage) {
    isAwaited = false;
    isBehindStage = behindStage;
  }

  /// The tile at `indices` along `dims` of `view`, a value of the program;
  /// `values` maps the program's values to those of the kernel.
  TileMemory getTile(mlir::OpBuilder &b, mlir::Location loc, mlir::Value view,
                     const mlir::IRMapping &values, mlir::ValueRange indices,
                     llvm::ArrayRef<int64_t> dims, gpu::FragmentType type,
                     int64_t aligned);

  /// The tile at `indices` that goes to a shared tile of `type`.
  TileMemory getTile(mlir::OpBuilder &b, mlir::Location loc, mlir::Value view,
                     const mlir::IRMapping &values, mlir::ValueRange indices,
                     llvm::ArrayRef<int64_t> dims, gpu::SharedType type);

  /// As above, a tile of rank 2 that a copy reads.
  TileMemory getRows(mlir::OpBuilder &b, mlir::Location loc, gpu::CopyOp copy,
                     const mlir::IRMapping &values);

  /// The element at `indices`.
  mlir::Value loadElement(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value view, const mlir::IRMapping &values,
                          mlir::ValueRange indices);

  /// Its address.
  mlir::Value getElement(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value view, const mlir::IRMapping &values,
                         mlir::ValueRange indices);

  /// Stores an integer as the element at `indices`.
  void storeElement(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                    mlir::Value view, const mlir::IRMapping &values,
                    mlir::ValueRange indices);

private:
  bool isInvariant(mlir::Value view) const;

  llvm::DenseSet<mlir::Value> written; // arguments
  bool writesUnknown = false;
  bool isAwaited = false, isBehindStage = false;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_VIEWMEMORY_H
