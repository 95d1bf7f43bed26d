// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code that orders launches of a stream.
#ifndef GDN_DIALECT_GPU_IR_LAUNCHES_H
#define GDN_DIALECT_GPU_IR_LAUNCHES_H

#include "mlir/IR/Builders.h"

namespace gdn::gpu {

/// Lets the first block of a grid of so many `axes`, and no other, wait for the
/// launch ahead: who comes next waits for all blocks.
void awaitInFirstBlock(mlir::OpBuilder &b, mlir::Location loc, int64_t axes);

} // namespace gdn::gpu

#endif // GDN_DIALECT_GPU_IR_LAUNCHES_H
