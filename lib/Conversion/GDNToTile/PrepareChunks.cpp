// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a chunk needs no state for: for the stage that leaves it in the
// workspace, and for the walk of the variant "fused", which prepares several
// chunks at once where it needs them.
#include "SplitStage.h"
#include "TokenWork.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

/// True if rows of `value` past the valid ones are zero as the kernel computes
/// them from rows that are.
static bool keepsZeros(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<L2NormOp, CastOp>(op))
    return keepsZeros(op->getOperand(0));
  return !op || isa<UnpackOp>(op);
}

StoredChunk SplitStage::prepareChunk(Chunk chunk, Value t, Value valid) {
  DeltaRuleOp rule = parts.rule;
  std::pair<Value *, Value> inputs[] = {{&chunk.logDecay, rule.getLogDecay()},
                                        {&chunk.beta, rule.getBeta()},
                                        {&chunk.query, rule.getQuery()},
                                        {&chunk.key, rule.getKey()}};
  SmallVector<Value> wanted;
  for (auto [tile, input] : inputs)
    if (!*tile)
      wanted.push_back(input);
  TokenBlock block(*this, head);
  SmallVector<Value> carried(parts.carries.size());
  SmallVector<Value> tiles = block.emitInputs(t, valid, wanted, carried);
  llvm::SmallDenseMap<Value, Value> tileOf;
  for (auto [input, tile] : llvm::zip(wanted, tiles))
    tileOf[input] = keepsZeros(input) ? tile : maskRows(b, loc, tile, valid);
  for (auto [tile, input] : inputs)
    if (!*tile)
      *tile = tileOf.lookup(input);
  chunk.valid = valid;
  chunk.scale = rule.getScaleOrDefault();
  PreparedChunk made = prepareRoundedChunk(b, loc, chunk, chunkTypes);

  StoredChunk stored;
  stored.toState = made.toState;
  stored.toOutput = made.toOutput;
  stored.scale = chunk.scale;
  auto exp = [&](Value x) -> Value {
    return math::ExpOp::create(b, loc, x, arith::FastMathFlags::afn);
  };
  using Rows = SmallVector<Value>;
  Type type = made.sums.getType();
  stored.decay = mapRows(
      b, loc, made.sums, {type},
      [&](OpBuilder &, ValueRange in) -> Rows { return {exp(in[0])}; })[0];
  stored.strength =
      mapRows(b, loc, {chunk.beta, made.outside}, {type},
              [&](OpBuilder &, ValueRange in) -> Rows {
                Value less = exp(arith::NegFOp::create(b, loc, in[1]));
                return {arith::MulFOp::create(b, loc, in[0], less)};
              })[0];
  stored.end =
      mapRows(b, loc, made.sums, {type}, [&](OpBuilder &, ValueRange) -> Rows {
        return {exp(
            vector::ExtractOp::create(b, loc, made.sums, algorithm.chunk - 1))};
      })[0];
  return stored;
}

Value SplitStage::countValid(Value t, Value to) {
  Value left =
      arith::SubIOp::create(b, loc, to, arith::MinUIOp::create(b, loc, t, to));
  return arith::MinUIOp::create(b, loc, left, index(algorithm.chunk));
}

SmallVector<StoredChunk> SplitStage::prepareChunks(Value first, Value t,
                                                   Value to) {
  DeltaRuleOp rule = parts.rule;
  const int64_t C = algorithm.chunk, count = algorithm.together;
  auto load = [&](Value region, Value slot, Value at, Value input, Value start,
                  Value valid) {
    return region ? loadRegion(region, slot, at, valid)
                  : loadInput(input, start, valid, C, /*wholeValues=*/false);
  };
  // Gates in memory are loaded ahead, as all that is.
  auto isGate = [&](Value input) {
    return isInMemory(input) && getElementTypeOrSelf(input.getType()).isF32();
  };
  auto vector = VectorType::get({C}, b.getF32Type());
  SmallVector<Value> gates;
  for (Value input : {Value(rule.getLogDecay()), Value(rule.getBeta())})
    if (isGate(input))
      gates.push_back(input);
  SmallVector<StoredChunk> chunks(count);
  SmallVector<Value> operands((2 + gates.size()) * count);
  for (auto [i, chunk] : llvm::enumerate(chunks)) {
    Value start = add(t, index(i * C)), valid = countValid(start, to);
    Value slot =
        add(first, divide(arith::SubIOp::create(b, loc, start, begin), C));
    chunk.key = load(keys, slot, h, rule.getKey(), start, valid);
    chunk.query = load(queries, slot, h, rule.getQuery(), start, valid);
    chunk.value =
        load(values, slot, headIndex(head), rule.getValue(), start, valid);
    operands[i] = chunk.key;
    operands[count + i] = chunk.query;
    for (auto [n, input] : llvm::enumerate(gates))
      operands[(2 + n) * count + i] = tile::LoadOp::create(
          b, loc, vector, operandViews.lookup(input),
          ValueRange{start, h, head}, ArrayRef<int64_t>{0}, valid);
  }

  auto keyType = cast<VectorType>(operands.front().getType());
  SmallVector<Type> types = {
      VectorType::get(keyType.getShape(), chunkTypes.inner),
      VectorType::get({C, C}, chunkTypes.inner), vector, vector, vector};
  SmallVector<Type> results;
  for (Type type : types)
    results.append(count, type);
  auto each = tile::EachOp::create(b, loc, results, count, operands);
  {
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Type> arguments = {b.getIndexType()};
    for (size_t n = 0; n < operands.size(); n += count)
      arguments.push_back(operands[n].getType());
    Block *body = b.createBlock(&each.getBody(), {}, arguments,
                                SmallVector<Location>(arguments.size(), loc));
    Value start = add(t, mul(body->getArgument(0), index(C)));
    Chunk known = {};
    known.key = castTile(b, loc, body->getArgument(1), b.getF32Type());
    known.query = castTile(b, loc, body->getArgument(2), b.getF32Type());
    for (auto [n, input] : llvm::enumerate(gates))
      (input == rule.getBeta() ? known.beta : known.logDecay) =
          body->getArgument(3 + n);
    StoredChunk made = prepareChunk(known, start, countValid(start, to));
    tile::YieldOp::create(b, loc,
                          ValueRange{made.toState, made.toOutput, made.decay,
                                     made.strength, made.end});
  }
  for (auto [i, chunk] : llvm::enumerate(chunks)) {
    auto result = [&, i = i](int64_t number) {
      return each.getResult(number * count + i);
    };
    chunk.toState = result(0);
    chunk.toOutput = result(1);
    chunk.decay = result(2);
    chunk.strength = result(3);
    chunk.end = result(4);
    chunk.scale = rule.getScaleOrDefault();
  }
  return chunks;
}
