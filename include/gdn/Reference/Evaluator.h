// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates gdn functions in float64: the meaning of the dialect as code, and
// the judge of everything that is compiled. Written from the formulas, token by
// token; shares nothing with the lowerings.
#ifndef GDN_REFERENCE_EVALUATOR_H
#define GDN_REFERENCE_EVALUATOR_H

#include "gdn/Reference/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn::reference {

/// Evaluates `function` and returns its results. Nothing is rounded, neither to
/// the element types of the IR nor to those of pools; constants in the IR have
/// the values that the IR holds.
///
/// `arguments` are those of the function, in order; an index argument takes an
/// int64_t, a pool a `Pool *` that stays the caller's. Pools are updated in
/// place; on failure they may be updated in part.
///
/// Fails with a diagnostic, at the function or at an op, that names what is
/// wrong: arguments that do not fit the function's types, sizes that do not fit
/// each other, `cu_seqlens` that falls or passes T, a slot that two sequences
/// write or that one sequence writes and another reads, an op that is not
/// known. The function must have passed verification.
///
/// Known ops: all of gdn, func.return, arith.constant, tensor.dim, tensor.cast.
mlir::FailureOr<llvm::SmallVector<Tensor>>
evaluate(mlir::func::FuncOp function, llvm::ArrayRef<Argument> arguments);

} // namespace gdn::reference

#endif // GDN_REFERENCE_EVALUATOR_H
