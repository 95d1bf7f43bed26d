// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States in planes that receive their pending tokens, on tensor cores:
// gdn_gpu.share_key_columns, gdn_gpu.token_unit and gdn_gpu.fold_planes.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PLANEFOLD_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PLANEFOLD_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

/// The code of the ops. `values` are those of the program here: the thread's
/// elements of a fragment, pointers into shared memory for buffers.
void emitShareKeyColumns(mlir::OpBuilder &b, const BlockThreads &threads,
                         gpu::ShareKeyColumnsOp op,
                         const mlir::IRMapping &values);
mlir::Value emitTokenUnit(mlir::OpBuilder &b, const BlockThreads &threads,
                          gpu::TokenUnitOp op, const mlir::IRMapping &values);
/// As the results of the op.
llvm::SmallVector<mlir::Value> emitFoldPlanes(mlir::OpBuilder &b,
                                              const BlockThreads &threads,
                                              gpu::FoldPlanesOp op,
                                              const mlir::IRMapping &values);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PLANEFOLD_H
