// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One gdn_gpu.map_rows over the rows of the state: both products with the old
// state side by side, then the update.
#include "ScanStep.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

ScanResult gdn::emitScanStep(OpBuilder &b, Location loc, Value oldState,
                             const ScanToken &token, bool withDelta) {
  MLIRContext *context = b.getContext();
  Value beta = token.beta;
  SmallVector<Value> inputs = {oldState, token.key, token.query, token.value};
  bool perChannel = isa<gpu::FragmentType>(token.logDecay.getType());
  Value decay;
  if (perChannel)
    inputs.push_back(token.logDecay);
  else
    decay = math::ExpOp::create(b, loc, token.logDecay);

  auto state = cast<gpu::FragmentType>(oldState.getType());
  auto output = gpu::FragmentType::get(
      VectorType::get({state.getDimSize(0)}, b.getF32Type()),
      gpu::PerRowAttr::get(context, state.getRows()));
  SmallVector<Type> argTypes = {b.getIndexType()};
  for (Value input : inputs)
    argTypes.push_back(
        gpu::getRowType(cast<gpu::FragmentType>(input.getType())));
  SmallVector<Type> results = {state, output};
  if (withDelta)
    results.push_back(output);
  auto map = gpu::MapRowsOp::create(b, loc, results, inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&map.getBody(), {}, argTypes,
                              SmallVector<Location>(argTypes.size(), loc));
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
    Value factors = math::ExpOp::create(b, loc, body->getArgument(5));
    decayed = multiply(wide, factors);
    known = dot(decayed, k);
    seen = dot(decayed, q);
  } else {
    decayed = multiply(wide, splat(decay));
    known = multiply(decay, dot(wide, k));
    seen = multiply(decay, dot(wide, q));
  }
  Value error =
      multiply(beta, arith::SubFOp::create(b, loc, v, known).getResult());
  Value out = arith::AddFOp::create(b, loc, seen, multiply(error, dot(k, q)));
  Value next =
      arith::AddFOp::create(b, loc, decayed, multiply(splat(error), k));
  if (narrow)
    next = arith::TruncFOp::create(b, loc, row.getType(), next);
  SmallVector<Value> yielded = {next, out};
  if (withDelta)
    yielded.push_back(error);
  gpu::YieldOp::create(b, loc, yielded);
  return {map.getResult(0), map.getResult(1),
          withDelta ? map.getResult(2) : Value()};
}

Value gdn::emitFoldStep(OpBuilder &b, Location loc, Value state, Value key,
                        Value delta, Value logDecay) {
  SmallVector<Value> inputs = {state, key, delta};
  bool perChannel = isa<gpu::FragmentType>(logDecay.getType());
  Value decay;
  if (perChannel)
    inputs.push_back(logDecay);
  else
    decay = math::ExpOp::create(b, loc, logDecay);
  SmallVector<Type> argTypes = {b.getIndexType()};
  for (Value input : inputs)
    argTypes.push_back(
        gpu::getRowType(cast<gpu::FragmentType>(input.getType())));
  auto map = gpu::MapRowsOp::create(b, loc, state.getType(), inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&map.getBody(), {}, argTypes,
                              SmallVector<Location>(argTypes.size(), loc));
  Value row = body->getArgument(1), k = body->getArgument(2);
  auto splat = [&](Value x) -> Value {
    return vector::BroadcastOp::create(b, loc, row.getType(), x);
  };
  Value factors = perChannel
                      ? Value(math::ExpOp::create(b, loc, body->getArgument(4)))
                      : splat(decay);
  // The products in this order: the left one is added with one rounding, as in
  // a scan.
  Value decayed = arith::MulFOp::create(b, loc, row, factors);
  Value change = arith::MulFOp::create(b, loc, splat(body->getArgument(3)), k);
  Value next = arith::AddFOp::create(b, loc, decayed, change);
  gpu::YieldOp::create(b, loc, next);
  return map.getResult(0);
}
