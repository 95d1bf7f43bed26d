// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One gdn_gpu.map_rows over the rows of the state: both products with the old
// state side by side, then the update.
#include "Kernel/ScanStep.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

ScanResult gdn::emitScanStep(OpBuilder &b, Location loc, Value oldState,
                             const ScanToken &token, bool withDelta,
                             bool withState) {
  MLIRContext *context = b.getContext();
  Value beta = token.beta;
  SmallVector<Value> inputs = {oldState, token.key, token.query, token.value};
  bool perChannel =
      token.decay || isa<gpu::FragmentType>(token.logDecay.getType());
  Value decay;
  if (perChannel)
    inputs.push_back(token.decay ? token.decay : token.logDecay);
  else
    decay = math::ExpOp::create(b, loc, token.logDecay);

  auto state = cast<gpu::FragmentType>(oldState.getType());
  auto output = gpu::FragmentType::get(
      VectorType::get({state.getDimSize(0)}, b.getF32Type()),
      gpu::PerRowAttr::get(context, state.getRows()));
  SmallVector<Type> results;
  if (withState)
    results.push_back(state);
  results.push_back(output);
  if (withDelta)
    results.push_back(output);
  auto map = gpu::MapRowsOp::create(b, loc, results, inputs);
  map.setShareSums(state.getRows().getCyclic() || state.getRows().getTall());
  OpBuilder::InsertionGuard guard(b);
  Block *body = map.openBody(b);
  Value row = body->getArgument(1), k = body->getArgument(2);
  Value q = body->getArgument(3), v = body->getArgument(4);
  auto type = cast<VectorType>(k.getType());
  auto multiply = [&](Value x, Value y) -> Value {
    return arith::MulFOp::create(b, loc, x, y);
  };
  auto splat = [&](Value x) -> Value {
    return vector::BroadcastOp::create(b, loc, type, x);
  };
  auto dot = [&](Value x, Value y) -> Value {
    return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                       multiply(x, y),
                                       arith::FastMathFlags::reassoc);
  };
  bool narrow = !state.getElementType().isF32();
  Value wide = narrow ? Value(arith::ExtFOp::create(b, loc, type, row)) : row;
  Value decayed, known, seen;
  if (perChannel) {
    Value factors = body->getArgument(5);
    if (!token.decay)
      factors = math::ExpOp::create(b, loc, factors);
    decayed = multiply(wide, factors);
    if (beta)
      known = dot(decayed, k);
    seen = dot(decayed, q);
  } else {
    decayed = multiply(wide, splat(decay));
    if (beta)
      known = multiply(decay, dot(wide, k));
    seen = multiply(decay, dot(wide, q));
  }
  Value delta = v;
  if (beta)
    delta = multiply(beta, arith::SubFOp::create(b, loc, v, known).getResult());
  Value out = arith::AddFOp::create(b, loc, seen, multiply(delta, dot(k, q)));
  SmallVector<Value> yielded;
  if (withState) {
    Value next =
        arith::AddFOp::create(b, loc, decayed, multiply(splat(delta), k));
    if (narrow)
      next = arith::TruncFOp::create(b, loc, row.getType(), next);
    yielded.push_back(next);
  }
  yielded.push_back(out);
  if (withDelta)
    yielded.push_back(delta);
  gpu::YieldOp::create(b, loc, yielded);
  return {withState ? map.getResult(0) : Value(), map.getResult(withState),
          withDelta ? map.getResults().back() : Value()};
}

Value gdn::emitScanUpdate(OpBuilder &b, Location loc, Value oldState,
                          const ScanToken &token, Value delta) {
  Value decay = math::ExpOp::create(b, loc, token.logDecay);
  SmallVector<Value> inputs = {oldState, token.key, delta};
  auto map = gpu::MapRowsOp::create(b, loc, oldState.getType(), inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = map.openBody(b);
  Value row = body->getArgument(1), k = body->getArgument(2);
  Type type = k.getType();
  auto splat = [&](Value x) -> Value {
    return vector::BroadcastOp::create(b, loc, type, x);
  };
  Value wide = row.getType() == type
                   ? row
                   : arith::ExtFOp::create(b, loc, type, row).getResult();
  Value decayed = arith::MulFOp::create(b, loc, wide, splat(decay));
  Value change = arith::MulFOp::create(b, loc, splat(body->getArgument(3)), k);
  Value next = arith::AddFOp::create(b, loc, decayed, change);
  if (row.getType() != type)
    next = arith::TruncFOp::create(b, loc, row.getType(), next);
  gpu::YieldOp::create(b, loc, next);
  return map.getResult(0);
}

std::pair<Value, Value> gdn::emitStateProducts(OpBuilder &b, Location loc,
                                               Value state, Value key,
                                               Value query) {
  auto type = cast<gpu::FragmentType>(state.getType());
  auto perRow = gpu::FragmentType::get(
      VectorType::get({type.getDimSize(0)}, b.getF32Type()),
      gpu::PerRowAttr::get(b.getContext(), type.getRows()));
  SmallVector<Value> inputs = {state, key, query};
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{perRow, perRow}, inputs);
  map.setShareSums(type.getRows().getCyclic() || type.getRows().getTall());
  OpBuilder::InsertionGuard guard(b);
  Block *body = map.openBody(b);
  Value row = body->getArgument(1), k = body->getArgument(2);
  if (row.getType() != k.getType())
    row = arith::ExtFOp::create(b, loc, k.getType(), row);
  auto dot = [&](Value x) -> Value {
    return vector::ReductionOp::create(
        b, loc, vector::CombiningKind::ADD,
        arith::MulFOp::create(b, loc, row, x).getResult(),
        arith::FastMathFlags::reassoc);
  };
  Value known = dot(k);
  gpu::YieldOp::create(b, loc, ValueRange{known, dot(body->getArgument(3))});
  return {map.getResult(0), map.getResult(1)};
}
