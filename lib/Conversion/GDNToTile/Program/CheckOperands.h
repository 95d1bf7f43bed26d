// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the operands of a kernel may come from.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_CHECKOPERANDS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_CHECKOPERANDS_H

#include "gdn/Dialect/GDN/IR/GDN.h"

namespace gdn {

/// Fails with an error unless every tensor that an op of `kernel` takes from
/// outside is an argument of the entry or, where it has one row per token, a
/// part of an unpacked argument.
mlir::LogicalResult checkKernelOperands(KernelOp kernel);

/// True if `operand` of `op` has one row per token: not a weight, a bias, a
/// slot, a bound or a flag.
bool isPerToken(mlir::Operation *op, mlir::Value operand);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_CHECKOPERANDS_H
