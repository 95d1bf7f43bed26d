// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States in planes that receive their pending tokens, on tensor cores:
// gdn_gpu.fold_planes.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PLANEFOLD_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PLANEFOLD_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

/// The results of the op. `values` are those of the program here: the thread's
/// elements of a fragment, pointers into shared memory for buffers.
llvm::SmallVector<mlir::Value> emitFoldPlanes(mlir::OpBuilder &b,
                                              const BlockThreads &threads,
                                              gpu::FoldPlanesOp op,
                                              const mlir::IRMapping &values);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PLANEFOLD_H
