// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a lowering says of an scf.for, or of an op in it, so that a schedule
// need not find it out: checks that dialects share.
#ifndef GDN_DIALECT_LOOPCONTRACTS_H
#define GDN_DIALECT_LOOPCONTRACTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

/// Fails, with a diagnostic, unless `op`, which stores `rows` rows of a tile of
/// `size`, may be 'full_until_last': it has `rows`, and stands in the body of a
/// loop whose step is `size`.
mlir::LogicalResult verifyFullUntilLast(mlir::Operation *op, mlir::Value rows,
                                        int64_t size);

/// How many more `to` is than `from` at most, as far as its op says: that is a
/// sum of `from` and a constant, or the smaller of such a sum and something
/// else, or both are constants.
std::optional<int64_t> getMostBehind(mlir::Value from, mlir::Value to);

} // namespace gdn

#endif // GDN_DIALECT_LOOPCONTRACTS_H
