// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pending tokens into a state in registers: token after token, or with one
// decay for the head from the last token on.
#include "Kernel/FoldStep.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// M' = e^g M + d k^T with a decay per channel.
static Value emitFoldStep(OpBuilder &b, Location loc, Value state, Value key,
                          Value delta, Value logDecay, Value scale) {
  SmallVector<Value> inputs = {state, key, delta, logDecay};
  auto map = gpu::MapRowsOp::create(b, loc, state.getType(), inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = map.openBody(b);
  Value row = body->getArgument(1);
  Value k = emitWide(b, loc, body->getArgument(2));
  Value d = emitWide(b, loc, body->getArgument(3));
  if (scale)
    d = arith::MulFOp::create(b, loc, scale, d);
  auto splat = [&](Value x) -> Value {
    return vector::BroadcastOp::create(b, loc, row.getType(), x);
  };
  Value factors = math::ExpOp::create(b, loc, body->getArgument(4));
  // The products in this order: the left one is added with one rounding, as in
  // a scan.
  Value decayed = arith::MulFOp::create(b, loc, row, factors);
  Value change = arith::MulFOp::create(b, loc, splat(d), k);
  Value next = arith::AddFOp::create(b, loc, decayed, change);
  gpu::YieldOp::create(b, loc, next);
  return map.getResult(0);
}

/// The sum of the decays of the tokens below `count`.
static Value emitDecaySum(OpBuilder &b, Location loc, Value count,
                          const FoldTokens &tokens) {
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  auto loop = scf::ForOp::create(
      b, loc, arith::ConstantIndexOp::create(b, loc, 0), count,
      arith::ConstantIndexOp::create(b, loc, 1), zero);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value decay = tokens.logDecay(loop.getInductionVar());
  scf::YieldOp::create(
      b, loc,
      arith::AddFOp::create(b, loc, loop.getRegionIterArg(0), decay)
          .getResult());
  return loop.getResult(0);
}

/// Each row times `factor`.
Value gdn::emitScaled(OpBuilder &b, Location loc, Value state, Value factor) {
  auto map = gpu::MapRowsOp::create(b, loc, state.getType(), state);
  OpBuilder::InsertionGuard guard(b);
  Value row = map.openBody(b)->getArgument(1);
  Value factors = vector::BroadcastOp::create(b, loc, row.getType(), factor);
  gpu::YieldOp::create(b, loc,
                       arith::MulFOp::create(b, loc, row, factors).getResult());
  return map.getResult(0);
}

Value gdn::emitWide(OpBuilder &b, Location loc, Value value) {
  if (getElementTypeOrSelf(value.getType()).isF32())
    return value;
  Type wide = b.getF32Type();
  if (auto row = dyn_cast<VectorType>(value.getType()))
    wide = row.clone(wide);
  return arith::ExtFOp::create(b, loc, wide, value);
}

Value gdn::emitAdded(OpBuilder &b, Location loc, Value state, Value factor,
                     Value key, Value delta) {
  auto map = gpu::MapRowsOp::create(b, loc, state.getType(),
                                    ValueRange{state, key, delta});
  OpBuilder::InsertionGuard guard(b);
  Block *body = map.openBody(b);
  Value row = body->getArgument(1);
  Value k = emitWide(b, loc, body->getArgument(2));
  Value d = emitWide(b, loc, body->getArgument(3));
  if (factor)
    d = arith::MulFOp::create(b, loc, factor, d);
  Value change = arith::MulFOp::create(
      b, loc, vector::BroadcastOp::create(b, loc, row.getType(), d), k);
  gpu::YieldOp::create(b, loc,
                       arith::AddFOp::create(b, loc, row, change).getResult());
  return map.getResult(0);
}

Value gdn::emitFold(OpBuilder &b, Location loc, Value state, Value count,
                    bool perChannel, const FoldTokens &tokens) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  if (perChannel) {
    auto recurrence = scf::ForOp::create(b, loc, zero, count, one, state);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(recurrence.getBody());
    Value at = recurrence.getInductionVar();
    Value key = tokens.key(at), delta = tokens.delta(at);
    Value scale = tokens.scale ? tokens.scale(at) : Value();
    scf::YieldOp::create(b, loc,
                         emitFoldStep(b, loc, recurrence.getRegionIterArg(0),
                                      key, delta, tokens.logDecay(at), scale));
    return recurrence.getResult(0);
  }
  Value sum = emitDecaySum(b, loc, count, tokens);
  state = emitScaled(b, loc, state, math::ExpOp::create(b, loc, sum));
  Value none = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  auto recurrence =
      scf::ForOp::create(b, loc, zero, count, one, ValueRange{state, none});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(recurrence.getBody());
  Value last = arith::SubIOp::create(b, loc, count, one);
  Value at = arith::SubIOp::create(b, loc, last, recurrence.getInductionVar());
  Value later = recurrence.getRegionIterArg(1);
  Value key = tokens.key(at), delta = tokens.delta(at);
  Value factor = math::ExpOp::create(b, loc, later);
  if (tokens.scale)
    factor = arith::MulFOp::create(b, loc, factor, tokens.scale(at));
  Value next =
      emitAdded(b, loc, recurrence.getRegionIterArg(0), factor, key, delta);
  later = arith::AddFOp::create(b, loc, later, tokens.logDecay(at));
  scf::YieldOp::create(b, loc, ValueRange{next, later});
  return recurrence.getResult(0);
}

Value gdn::castRows(OpBuilder &b, Location loc, Value state, Type element) {
  auto from = cast<gpu::FragmentType>(state.getType());
  if (from.getElementType() == element)
    return state;
  auto to = gpu::FragmentType::get(VectorType::get(from.getShape(), element),
                                   from.getLayout());
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{to}, ValueRange{state});
  OpBuilder::InsertionGuard guard(b);
  Value row = map.openBody(b)->getArgument(1);
  Type result = gpu::getRowType(to);
  if (element.isF32())
    row = arith::ExtFOp::create(b, loc, result, row);
  else
    row = arith::TruncFOp::create(b, loc, result, row);
  gpu::YieldOp::create(b, loc, row);
  return map.getResult(0);
}
