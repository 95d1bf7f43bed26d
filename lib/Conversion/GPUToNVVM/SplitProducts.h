// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_products on tensor cores.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_SPLITPRODUCTS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_SPLITPRODUCTS_H

#include "BlockThreads.h"

namespace gdn {

/// The code of `products`: `lhs` are the thread's elements, `rows` an index,
/// `exact` an i1 or null, the places pointers into shared memory, in the order
/// of the op's operands.
void emitShareProducts(mlir::OpBuilder &b, const BlockThreads &threads,
                       gpu::ShareProductsOp products, mlir::Value lhs,
                       mlir::Value rows, mlir::Value exact,
                       llvm::ArrayRef<mlir::Value> places);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_SPLITPRODUCTS_H
