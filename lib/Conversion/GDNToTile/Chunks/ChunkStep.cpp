// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One chunk of the recurrence from state to state, with all that is known
// before the state is at hand (ChunkFormRounded.cpp) and the state in rows, M =
// S^T, dv x dk, times the scale of values. With the chunk's tokens as columns:
//
//   U = M K^T
//   W = (V^T - e^G U) diag(beta e^-H)
//   O^T = e^G scale (M Q^T) + W Z^T
//   M <- e^(G_last) M + W Y
//
// Without Q and Z there is no output. Where T is apart, X = W T^T is in the
// place of W in the last two, P' in that of Z and K' in that of Y. What K' has
// beside K may be with X instead: one tile less for each chunk.
//
// With a decay per channel, K and Q have the decay from the start of the chunk,
// there is no e^G, and e^(G_last) is a row of M's columns. If T is apart, it
// has the strengths.
//
// Where operands have two parts, each product is one of parts.
//
// So every left operand is the result of a step before it, or the state: on a
// tensor core it stays in registers, and only what is loaded lies in shared
// memory. Numbers and roundings are those of the other orientation.
#include "Chunks/ChunkForm.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

using Rows = SmallVector<Value>;

ChunkResult gdn::emitStateRowsChunk(OpBuilder &b, Location loc, Value state,
                                    const StoredChunk &chunk,
                                    const ChunkTypes &types) {
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulFOp::create(b, loc, x, y);
  };
  auto times = [&](Value row, double factor) -> Value {
    auto type = cast<VectorType>(row.getType());
    auto splat = DenseElementsAttr::get(type, b.getF32FloatAttr(factor));
    return mul(row, arith::ConstantOp::create(b, loc, splat));
  };
  // What the state gives for a row of tokens, times `factor`: without what
  // values are multiplied by.
  auto fromState = [&](Value row, double factor) -> Value {
    if (!chunk.decay)
      return times(row, factor / types.valueScale);
    return mul(row, factor == 1 ? chunk.decay : times(chunk.decay, factor));
  };
  const bool splits = types.parts > 1;
  Operand held = splits ? toParts(b, loc, state, types.key)
                        : Operand{castTile(b, loc, state, types.key)};
  Value known = multiplyParts(b, loc, held, transposeParts(b, loc, chunk.key));
  // What waits for nothing else comes first.
  Value answers;
  if (chunk.query)
    answers = multiplyParts(
        b, loc, types.queryParts < types.parts ? Operand{held.high} : held,
        transposeParts(b, loc, chunk.query));
  auto widened = [&](Value tile) {
    return castTile(b, loc, transposeTile(b, loc, tile), b.getF32Type());
  };
  Value value = widened(chunk.value.high);
  if (chunk.value.low)
    value = mapRows(b, loc, {value, widened(chunk.value.low)},
                    {value.getType()}, [&](OpBuilder &, ValueRange in) -> Rows {
                      return {arith::AddFOp::create(b, loc, in[0], in[1])};
                    })[0];
  Value left = mapRows(b, loc, {value, known}, {known.getType()},
                       [&](OpBuilder &, ValueRange in) -> Rows {
                         if (!chunk.strength)
                           return {arith::SubFOp::create(
                               b, loc, times(in[0], types.valueScale), in[1])};
                         Value own = arith::SubFOp::create(b, loc, in[0],
                                                           fromState(in[1], 1));
                         return {mul(own, chunk.strength)};
                       })[0];
  Operand error = splits ? toParts(b, loc, left, types.inner)
                         : Operand{castTile(b, loc, left, types.inner)};

  auto decay = [&]() -> Value {
    return mapRows(
        b, loc, state, {state.getType()},
        [&](OpBuilder &, ValueRange in) -> Rows {
          if (!chunk.decay)
            return {mul(in[0], chunk.end)};
          // Decays are divided by the scale of values.
          const int64_t size =
              cast<VectorType>(chunk.decay.getType()).getDimSize(0);
          Value end = vector::ExtractOp::create(
              b, loc, chunk.end ? chunk.end : chunk.decay,
              chunk.end ? 0 : size - 1);
          Value all = vector::BroadcastOp::create(b, loc, in[0].getType(), end);
          return {chunk.end ? mul(in[0], all)
                            : mul(in[0], times(all, types.valueScale))};
        })[0];
  };
  // Where nothing comes between, beside the product with T.
  Value decayed = chunk.solve && !chunk.decay ? decay() : Value();
  Operand faded = error; // as the state takes it
  if (chunk.solve) {
    Value solved = multiplyParts(b, loc, error, {chunk.solve});
    faded = error = {castTile(b, loc, solved, types.inner)};
    if (chunk.fading)
      faded = {castTile(b, loc,
                        mapRows(b, loc, solved, {solved.getType()},
                                [&](OpBuilder &, ValueRange in) -> Rows {
                                  return {mul(in[0], chunk.fading)};
                                })[0],
                        types.key)};
  }

  auto next = [&] {
    return multiplyParts(b, loc, faded, chunk.toState,
                         decayed ? decayed : decay());
  };
  if (!chunk.query)
    return {next(), Value()};

  Value answered = mapRows(b, loc, answers, {answers.getType()},
                           [&](OpBuilder &, ValueRange in) -> Rows {
                             return {fromState(in[0], chunk.scale)};
                           })[0];
  Operand toOutput =
      chunk.solve ? chunk.toOutput : transposeParts(b, loc, chunk.toOutput);
  Value output = multiplyParts(b, loc, error, toOutput, answered);
  return {next(), transposeTile(b, loc, output)};
}
