// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that several verifiers of the dialect share and that are not about
// one named size; see NamedSizes.h for those.
#ifndef GDN_LIB_DIALECT_GDN_IR_OPCHECKS_H
#define GDN_LIB_DIALECT_GDN_IR_OPCHECKS_H

#include "NamedSizes.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

namespace gdn {

/// Checks that the float attribute `name` is positive and finite.
mlir::LogicalResult verifyPositive(mlir::Operation *op, llvm::StringRef name,
                                   const llvm::APFloat &value);

/// Checks that the float attribute `name` is negative and finite.
mlir::LogicalResult verifyNegative(mlir::Operation *op, llvm::StringRef name,
                                   const llvm::APFloat &value);

/// Checks that the op's activation is one of `allowed`.
mlir::LogicalResult verifyActivation(mlir::Operation *op, Activation got,
                                     llvm::ArrayRef<Activation> allowed);

/// Checks that the attribute `max_tokens` is given with `cu_seqlens` and not
/// without, and is at least 1.
mlir::LogicalResult verifyMaxTokens(mlir::Operation *op, mlir::Value cuSeqlens,
                                    std::optional<int64_t> most);

/// Checks that states in `pool` are floats, or in planes with these scales and
/// this lower plane, which may be null.
mlir::LogicalResult verifyStates(mlir::Operation *op, NamedSizes &sizes,
                                 PoolType pool,
                                 mlir::TypedValue<PoolType> scales,
                                 mlir::TypedValue<PoolType> low);

/// Checks that states in the pool `name` are floats.
mlir::LogicalResult verifyFloats(mlir::Operation *op, llvm::StringRef name,
                                 PoolType pool);

/// Checks that two shaped values have the same rank and sizes; the first sets.
mlir::LogicalResult verifySameShape(mlir::Operation *op, llvm::StringRef want,
                                    mlir::Type wantType, llvm::StringRef got,
                                    mlir::Type gotType);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GDN_IR_OPCHECKS_H
