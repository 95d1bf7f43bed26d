// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_part_products on tensor cores.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_NARROWMMA_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_NARROWMMA_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

/// The code of `products`. `values` are those of the program here: the thread's
/// elements of a fragment, pointers into shared memory for buffers.
void emitSharePartProducts(mlir::OpBuilder &b, const BlockThreads &threads,
                           gpu::SharePartProductsOp products,
                           const mlir::IRMapping &values);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_NARROWMMA_H
