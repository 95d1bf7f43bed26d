// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of what is said about loops; see LoopContracts.h.
#include "gdn/Dialect/LoopContracts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace gdn;

LogicalResult gdn::verifyFullUntilLast(Operation *op, Value rows,
                                       int64_t size) {
  if (!rows)
    return op->emitOpError("expects 'rows' where it is full until the last "
                           "turn of a loop");
  auto loop = dyn_cast_or_null<scf::ForOp>(op->getParentOp());
  if (!loop)
    return op->emitOpError("expects to stand in the body of an scf.for where "
                           "it is full until the last turn");
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (step == size)
    return success();
  InFlightDiagnostic diag = op->emitOpError("expects the loop around to have "
                                            "the step ")
                            << size << ", the rows of the tile, but got ";
  if (step)
    return diag << *step;
  return diag << "one that is no constant";
}

/// `to - from`, if `to` is a sum of that and a constant, or both are constants.
static std::optional<int64_t> getDistance(Value from, Value to) {
  std::optional<int64_t> first = getConstantIntValue(from),
                         last = getConstantIntValue(to);
  if (first && last)
    return *last - *first;
  auto sum = to.getDefiningOp<arith::AddIOp>();
  if (sum && sum.getLhs() == from)
    return getConstantIntValue(sum.getRhs());
  if (sum && sum.getRhs() == from)
    return getConstantIntValue(sum.getLhs());
  return std::nullopt;
}

std::optional<int64_t> gdn::getMostBehind(Value from, Value to) {
  auto smaller = to.getDefiningOp<arith::MinSIOp>();
  if (!smaller)
    return getDistance(from, to);
  std::optional<int64_t> left = getDistance(from, smaller.getLhs()),
                         right = getDistance(from, smaller.getRhs());
  return left && right ? std::min(*left, *right) : left ? left : right;
}
