// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of the pools that hold pending tokens, for all ops that have some.
#ifndef GDN_LIB_DIALECT_GDN_IR_PENDINGCHECKS_H
#define GDN_LIB_DIALECT_GDN_IR_PENDINGCHECKS_H

#include "NamedSizes.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

namespace gdn {

struct PendingPools {
  PoolType keys, deltas, decays;
  PoolType counts; // null: those of one step
  PoolType scales; // null: keys and deltas are f32
};

/// Checks that S, where it is known, is from 1 to `most`.
mlir::LogicalResult verifySteps(mlir::Operation *op, const NamedSizes &sizes,
                                int64_t most = 8);

/// Checks that `pool` is P x D x (window + S), S from 1 to 8.
mlir::LogicalResult verifyHistory(mlir::Operation *op, NamedSizes &sizes,
                                  PoolType pool, int64_t window);

/// Checks shapes and elements of the pools, whose operands have the names
/// `prefix`keys, `prefix`deltas, `prefix`decays and `prefix`counts; those of
/// scales are 'pending_scales'.
mlir::LogicalResult verifyPendingPools(mlir::Operation *op, NamedSizes &sizes,
                                       llvm::StringRef prefix,
                                       const PendingPools &pools);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GDN_IR_PENDINGCHECKS_H
