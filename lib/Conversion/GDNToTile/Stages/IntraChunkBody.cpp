// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The products of a chunk with itself, with rounded operands, with operands in
// two parts, or with a decay per channel.
#include "Stages/IntraChunkBody.h"

#include "Program/TokenOps.h"
#include "Recurrence/TokenBlock.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

/// True if rows of `value` past the valid ones are zero as the kernel computes
/// them from rows that are.
static bool keepsZeros(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<L2NormOp, CastOp>(op))
    return keepsZeros(op->getOperand(0));
  return !op || isa<UnpackOp>(op);
}

StoredChunk gdn::emitIntraChunk(SequenceProgram &p, Chunk chunk, Value t,
                                Value valid, const Operand &query,
                                const Operand &key) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  RuleOpInterface rule = p.parts.rule;
  std::pair<Value *, Value> inputs[] = {{&chunk.logDecay, rule.getLogDecay()},
                                        {&chunk.beta, rule.getBeta()},
                                        {&chunk.query, rule.getQuery()},
                                        {&chunk.key, rule.getKey()}};
  SmallVector<Value> wanted;
  for (auto [tile, input] : inputs)
    if (!*tile)
      wanted.push_back(input);
  if (key) // as they are
    llvm::erase_if(wanted, [&](Value input) {
      return input == rule.getQuery() || input == rule.getKey();
    });
  TokenBlock block(p, p.head);
  SmallVector<Value> carried(p.parts.carries.size());
  SmallVector<Value> tiles = block.emitInputs(t, valid, wanted, carried);
  llvm::SmallDenseMap<Value, Value> tileOf;
  for (auto [input, tile] : llvm::zip(wanted, tiles))
    tileOf[input] = keepsZeros(input) ? tile : maskRows(b, loc, tile, valid);
  for (auto [tile, input] : inputs)
    if (!*tile)
      *tile = tileOf.lookup(input); // null for what has parts
  chunk.valid = valid;
  chunk.scale = rule.getScaleOrDefault();
  // Beside a recurrence in the same block, what is ahead of the state is what
  // others wait for.
  const bool apart = p.algorithm.fusedChunks != 0;
  if (rule.isPerChannel())
    return emitRoundedChannelIntraChunk(b, loc, chunk, p.chunkTypes, apart);
  IntraChunkTiles made =
      key ? emitIntraChunkInParts(b, loc, query, key, chunk, p.chunkTypes)
          : emitRoundedIntraChunk(b, loc, chunk, p.chunkTypes, apart);

  StoredChunk stored;
  stored.solve = made.solve;
  stored.toState = made.toState;
  stored.toOutput = made.toOutput;
  stored.scale = chunk.scale;
  auto exp = [&](Value x) -> Value {
    return math::ExpOp::create(b, loc, x, arith::FastMathFlags::afn);
  };
  using Rows = SmallVector<Value>;
  Type type = made.sums.getType();
  // Values are multiplied by their scale behind what the state gives for them.
  auto times = [&](Value x, double factor) -> Value {
    return arith::MulFOp::create(
        b, loc, x,
        arith::ConstantOp::create(b, loc, b.getF32FloatAttr(factor)));
  };
  auto decay = [&](Value sum) {
    return times(exp(sum), 1 / p.chunkTypes.valueScale);
  };
  if (made.toState) {
    stored.decay = mapRows(
        b, loc, made.sums, {type},
        [&](OpBuilder &, ValueRange in) -> Rows { return {decay(in[0])}; })[0];
  } else {
    // With what is left at the end of what a token writes: of two results, the
    // factor stays a vector, and its exponential one for a row; alone it would
    // be fused into K', and be one for each lane that has a piece of the row.
    Rows both =
        mapRows(b, loc, {made.sums, made.toEnd}, {type, type},
                [&](OpBuilder &, ValueRange in) -> Rows {
                  Value last = vector::ExtractOp::create(b, loc, made.outside,
                                                         p.algorithm.chunk - 1);
                  return {decay(in[0]),
                          exp(arith::AddFOp::create(b, loc, in[1], last))};
                });
    stored.decay = both[0];
    stored.fading = both[1];
  }
  // Where outputs go to the norm at once, what that reads of memory has the
  // place of K'; and so others do without it that have the same bits.
  if (stored.fading && !p.algorithm.normWithRule && !p.algorithm.normBehind) {
    Value faded = mapRows(
        b, loc, {chunk.key, stored.fading}, {chunk.key.getType()},
        [&](OpBuilder &, ValueRange in) -> Rows {
          return {arith::MulFOp::create(
              b, loc, in[0],
              vector::BroadcastOp::create(b, loc, in[0].getType(), in[1]))};
        })[0];
    stored.toState = {castTile(b, loc, faded, p.chunkTypes.inner)};
    stored.fading = Value();
  }
  stored.strength =
      mapRows(b, loc, {chunk.beta, made.outside}, {type},
              [&](OpBuilder &, ValueRange in) -> Rows {
                Value less = exp(arith::NegFOp::create(b, loc, in[1]));
                return {times(arith::MulFOp::create(b, loc, in[0], less),
                              p.chunkTypes.valueScale)};
              })[0];
  stored.end =
      mapRows(b, loc, made.sums, {type}, [&](OpBuilder &, ValueRange) -> Rows {
        return {exp(vector::ExtractOp::create(b, loc, made.sums,
                                              p.algorithm.chunk - 1))};
      })[0];
  return stored;
}

void gdn::addIntraChunk(SequenceProgram &p, StoredChunk &chunk, Value t,
                        Value valid, Value logDecay, Value strength) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  RuleOpInterface rule = p.parts.rule;
  Chunk known = {};
  known.key = castTile(b, loc, chunk.key.high, b.getF32Type());
  // What asks for nothing has no scores: keys stand for queries.
  known.query = chunk.query ? castTile(b, loc, chunk.query.high, b.getF32Type())
                            : known.key;
  // Gates in memory are loaded ahead, as all that is.
  auto loadGates = [&](Value input) -> Value {
    auto type = cast<RankedTensorType>(input.getType());
    if (!isInMemory(input) || !type.getElementType().isF32())
      return {};
    SmallVector<int64_t> shape = {p.algorithm.chunk}, dims = {0};
    SmallVector<Value> at = {t, p.h, p.head};
    if (input == rule.getLogDecay() && rule.isPerChannel()) {
      shape.push_back(type.getShape().back());
      dims.push_back(3);
      at.push_back(p.index(0));
    }
    return tile::LoadOp::create(b, loc, VectorType::get(shape, b.getF32Type()),
                                p.operandViews.lookup(input), at, dims, valid);
  };
  known.logDecay = logDecay ? logDecay : loadGates(rule.getLogDecay());
  known.beta = strength ? strength : loadGates(rule.getBeta());
  StoredChunk made = emitIntraChunk(p, known, t, valid);
  if (rule.isPerChannel()) {
    made.value = chunk.value;
    if (!chunk.query)
      made.query = made.toOutput = {};
    chunk = made;
    return;
  }
  chunk.solve = made.solve;
  chunk.toState = made.fading ? chunk.key : made.toState;
  chunk.fading = made.fading;
  if (chunk.query)
    chunk.toOutput = made.toOutput;
  chunk.decay = made.decay;
  chunk.strength = made.strength;
  chunk.scale = made.scale;
}
