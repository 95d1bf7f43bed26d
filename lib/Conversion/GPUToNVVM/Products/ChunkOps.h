// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of a chunk with a decay per channel, by the roles that run them;
// `values` has the pointers of tiles.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKOPS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKOPS_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

void emitChunkOp(mlir::OpBuilder &b, const BlockThreads &threads,
                 gpu::DecayWithinOp op, const mlir::IRMapping &values);
void emitChunkOp(mlir::OpBuilder &b, const BlockThreads &threads,
                 gpu::DecayBetweenOp op, const mlir::IRMapping &values);
void emitChunkOp(mlir::OpBuilder &b, const BlockThreads &threads,
                 gpu::BlockInversesOp op, const mlir::IRMapping &values);
void emitChunkOp(mlir::OpBuilder &b, const BlockThreads &threads,
                 gpu::JoinInversesOp op, const mlir::IRMapping &values);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_CHUNKOPS_H
