// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of numbers that are sums of two of bf16, on tensor cores:
// gdn_gpu.share_column_parts and gdn_gpu.add_part_products.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PARTMMA_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PARTMMA_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

/// The code of the ops. `values` are those of the program here: the thread's
/// elements of a fragment, pointers into shared memory for buffers.
void emitShareColumnParts(mlir::OpBuilder &b, const BlockThreads &threads,
                          gpu::ShareColumnPartsOp op,
                          const mlir::IRMapping &values);
mlir::Value emitAddPartProducts(mlir::OpBuilder &b, const BlockThreads &threads,
                                gpu::AddPartProductsOp op,
                                const mlir::IRMapping &values);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PARTMMA_H
