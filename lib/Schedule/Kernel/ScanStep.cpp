// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One gdn_gpu.map_rows over the rows of the state: both products with the old
// state side by side, then the update.
#include "Kernel/ScanStep.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

ScanResult gdn::emitScanStep(OpBuilder &b, Location loc, Value oldState,
                             const ScanToken &token, bool withDelta,
                             bool withState) {
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
  SmallVector<Type> results;
  if (withState)
    results.push_back(state);
  results.push_back(output);
  if (withDelta)
    results.push_back(output);
  auto map = gpu::MapRowsOp::create(b, loc, results, inputs);
  map.setShareSums(state.getRows().getCyclic());
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
  SmallVector<Type> argTypes = {b.getIndexType()};
  for (Value input : inputs)
    argTypes.push_back(
        gpu::getRowType(cast<gpu::FragmentType>(input.getType())));
  auto map = gpu::MapRowsOp::create(b, loc, oldState.getType(), inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&map.getBody(), {}, argTypes,
                              SmallVector<Location>(argTypes.size(), loc));
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

/// M' = e^g M + d k^T with a decay per channel.
static Value emitFoldStep(OpBuilder &b, Location loc, Value state, Value key,
                          Value delta, Value logDecay) {
  SmallVector<Value> inputs = {state, key, delta, logDecay};
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
  Value factors = math::ExpOp::create(b, loc, body->getArgument(4));
  // The products in this order: the left one is added with one rounding, as in
  // a scan.
  Value decayed = arith::MulFOp::create(b, loc, row, factors);
  Value change = arith::MulFOp::create(b, loc, splat(body->getArgument(3)), k);
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
static Value emitScaled(OpBuilder &b, Location loc, Value state, Value factor) {
  auto map = gpu::MapRowsOp::create(b, loc, state.getType(), state);
  OpBuilder::InsertionGuard guard(b);
  Type row = gpu::getRowType(cast<gpu::FragmentType>(state.getType()));
  Block *body =
      b.createBlock(&map.getBody(), {}, {b.getIndexType(), row}, {loc, loc});
  Value factors = vector::BroadcastOp::create(b, loc, row, factor);
  gpu::YieldOp::create(
      b, loc,
      arith::MulFOp::create(b, loc, body->getArgument(1), factors).getResult());
  return map.getResult(0);
}

/// Each row plus the key times `factor` and the row's delta.
static Value emitAdded(OpBuilder &b, Location loc, Value state, Value factor,
                       Value key, Value delta) {
  SmallVector<Type> types = {b.getIndexType()};
  for (Value input : {state, key, delta})
    types.push_back(gpu::getRowType(cast<gpu::FragmentType>(input.getType())));
  auto map = gpu::MapRowsOp::create(b, loc, state.getType(),
                                    ValueRange{state, key, delta});
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&map.getBody(), {}, types,
                              SmallVector<Location>(types.size(), loc));
  Value d = arith::MulFOp::create(b, loc, factor, body->getArgument(3));
  Value change = arith::MulFOp::create(
      b, loc, vector::BroadcastOp::create(b, loc, types[1], d),
      body->getArgument(2));
  gpu::YieldOp::create(
      b, loc,
      arith::AddFOp::create(b, loc, body->getArgument(1), change).getResult());
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
    scf::YieldOp::create(b, loc,
                         emitFoldStep(b, loc, recurrence.getRegionIterArg(0),
                                      key, delta, tokens.logDecay(at)));
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
  Value next = emitAdded(b, loc, recurrence.getRegionIterArg(0),
                         math::ExpOp::create(b, loc, later), key, delta);
  later = arith::AddFOp::create(b, loc, later, tokens.logDecay(at));
  scf::YieldOp::create(b, loc, ValueRange{next, later});
  return recurrence.getResult(0);
}
