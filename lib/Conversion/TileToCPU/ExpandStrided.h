// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices in memory with strides that are known at run time only.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_EXPANDSTRIDED_H
#define GDN_LIB_CONVERSION_TILETOCPU_EXPANDSTRIDED_H

#include "mlir/IR/Builders.h"

namespace gdn {

/// The matrix that begins at `indices` of `view`; its rows run along dimension
/// `rowDim`, its columns along `columnDim`.
struct StridedMatrix {
  mlir::Value view;
  llvm::SmallVector<mlir::Value> indices;
  int64_t rowDim, columnDim;
};

/// Copies the matrix into `buffer`, a whole tile, or the other way round. Where
/// the strides at run time allow it, by vectors; otherwise by what `byElement`
/// emits.
void expandStrided(mlir::OpBuilder &builder, mlir::Location loc,
                   const StridedMatrix &matrix, mlir::Value buffer, bool isLoad,
                   int64_t lanes, llvm::function_ref<void()> byElement);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_EXPANDSTRIDED_H
