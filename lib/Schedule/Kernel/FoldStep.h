// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pending tokens that are put into a state in registers, as schedules of
// verify, of commit and of deferred writes have it.
#ifndef GDN_LIB_SCHEDULE_KERNEL_FOLDSTEP_H
#define GDN_LIB_SCHEDULE_KERNEL_FOLDSTEP_H

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/IR/Builders.h"

namespace gdn {

/// Pending tokens: what token `at` (an index) has, as fragments of the state's
/// layout made where they are asked for. `key` is per_column, `delta` per_row;
/// the log decay is an f32, or per_column with one per channel. With one decay
/// for the head a delta may have a `scale`, an f32; null: none has.
struct FoldTokens {
  llvm::function_ref<mlir::Value(mlir::Value at)> key, delta, logDecay;
  llvm::function_ref<mlir::Value(mlir::Value at)> scale = nullptr;
};

/// Emits the state with the first `count` (an index) tokens put in. With a
/// decay per channel token after token, M' = e^g M + d k^T with the roundings
/// of a scan; else M' = e^(g_0 + ..) M + sum of e^(later g) d k^T from the last
/// token on, which is one fused multiply-add for each token and element.
mlir::Value emitFold(mlir::OpBuilder &b, mlir::Location loc, mlir::Value state,
                     mlir::Value count, bool perChannel,
                     const FoldTokens &tokens);

/// A state times a number.
mlir::Value emitScaled(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value state, mlir::Value factor);

/// A number or a row in f32.
mlir::Value emitWide(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);

/// A state with the key times `factor` and the row's delta added to each row;
/// key and delta may be of 16 bits.
mlir::Value emitAdded(mlir::OpBuilder &b, mlir::Location loc, mlir::Value state,
                      mlir::Value factor, mlir::Value key, mlir::Value delta);

/// A state with elements of another floating type; itself if it has them.
mlir::Value castRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value state,
                     mlir::Type element);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_FOLDSTEP_H
