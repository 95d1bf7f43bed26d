// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pending tokens ahead of a fold of planes: gdn_gpu.share_key_columns and
// gdn_gpu.token_unit.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_KEYCOLUMNS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_KEYCOLUMNS_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

/// How keys lie for a fold: a lane's tokens of a product, those of a product;
/// bytes of a row of key columns, of a pair of columns in it, and of a lane in
/// that; columns of a lane, and of the lanes that have pairs of a row.
struct KeyColumns {
  static constexpr int64_t laneTokens = 4, stepTokens = 16;
  static constexpr int64_t rowBytes = 2 * 264, pairBytes = 64, laneBytes = 16;
  static constexpr int64_t vectorColumns = 16, blockColumns = 128;
  static constexpr int64_t pairs = vectorColumns / 2;
};

/// The code of the ops. `values` has pointers into shared memory for buffers.
void emitShareKeyColumns(mlir::OpBuilder &b, const BlockThreads &threads,
                         gpu::ShareKeyColumnsOp op,
                         const mlir::IRMapping &values);
mlir::Value emitTokenUnit(mlir::OpBuilder &b, const BlockThreads &threads,
                          gpu::TokenUnitOp op, const mlir::IRMapping &values);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_KEYCOLUMNS_H
