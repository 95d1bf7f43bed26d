// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form of the gated delta rule for products with rounded operands.
// ChunkForm.cpp has the form itself; here the products are bracketed so that
// sums which nearly cancel do so before they are rounded. Per value head:
//
//   H = max(G, -1),  g' = g less its part of H: 0 until G falls below -1
//   E'[i,j] = exp(g'_(j+1) + .. + g'_i), j <= i
//   T = E' . A                                 A: the inverse without decay
//   P = E' . Q K^T
//   Y = T^T (e^(H_last + G'_last - G') K)      what a token's error becomes in
//   Z = scale e^(H_i) P T                      the state, and in the outputs
//   W = beta e^-H (V - e^G K S)
//   O = scale e^G (Q S) + Z W
//   S <- e^(G_last) S + Y^T W
//
// A token that overwrites what the one before it wrote has 1 and nearly -1 in
// T. With decays near 1 and strengths outside of T, both are exact, and Y and Z
// are rounded behind the difference; T W would be rounded token by token, and
// the state would add up those errors. It takes a product of C x C x C in place
// of none, and one with dk in place of one with dv; all but W is known before
// the state is. No factor exceeds e.
//
// With T apart there are those in place of Y and Z, T and P' transposed:
//
//   K' = e^(H_last + G'_last - G') K           P' = scale e^(H_i) P
//   X = T W
//   O = scale e^G (Q S) + P' X
//   S <- e^(G_last) S + K'^T X
//
// K' is made where the exponentials of gates are (IntraChunkBody.cpp). X is
// rounded to f16, as W is: less work ahead of the state, and one product
// more behind it.
#include "Chunks/ChunkForm.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

/// Decay down to e^-1 is taken out of products, by factors of at most e on the
/// other side.
static constexpr double kOutside = 1;

std::pair<Value, Value> gdn::splitDecays(OpBuilder &b, Location loc,
                                         Value logDecay, Value sums) {
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  SmallVector<Value> parts = mapRows(
      b, loc, {logDecay, sums}, {sums.getType(), sums.getType()},
      [&](OpBuilder &, ValueRange in) -> SmallVector<Value> {
        Value outside =
            arith::MaximumFOp::create(b, loc, in[1], number(-kOutside));
        // Above the bound 0; the step across it what is below; then all of g.
        Value below = arith::MinimumFOp::create(
            b, loc, arith::AddFOp::create(b, loc, in[1], number(kOutside)),
            number(0));
        return {outside, arith::MaximumFOp::create(b, loc, in[0], below)};
      });
  return {parts[0], parts[1]};
}

namespace {

class RoundedChunkEmitter {
public:
  RoundedChunkEmitter(OpBuilder &b, Location loc, const ChunkTypes &types)
      : b(b), loc(loc), types(types) {}

  IntraChunkTiles intraChunk(Value rawQuery, Value rawKey, Value logDecay,
                             Value beta, double scale, bool apart);
  ChunkResult emit(Value state, const Chunk &chunk);

private:
  using Rows = SmallVector<Value>;

  enum Triangle { none, lowerLhs, lowerResult };
  /// A product in f32, of which `triangle` may be all that counts.
  Value matmul(Value lhs, Value rhs, Triangle triangle = none, Value acc = {});
  Value matmulTransposed(Value lhs, Value rhs, Value acc = {});
  Value product(Value lhs, Value rhs, Value acc, bool transposeLhs);

  /// `tile` with each row times `factor(row's other inputs)`, a scalar.
  Value scaleRows(Value tile, ValueRange others,
                  llvm::function_ref<Value(ValueRange)> factor);
  /// Of what is at most 18 either way, as good as 16 bits ask.
  Value exp(Value x) {
    return math::ExpOp::create(b, loc, x, arith::FastMathFlags::afn);
  }
  Value number(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value splat(Value scalar, Value like) {
    return vector::BroadcastOp::create(b, loc, like.getType(), scalar);
  }
  /// Element `at` of a tile of one value per token, for use in a row.
  Value elementOf(Value tile, int64_t at) {
    return vector::ExtractOp::create(b, loc, tile, at);
  }
  IntraChunkTiles intraChunkApart(const IntraChunkTiles &known, Value inverse,
                                  Value decay, double outputScale);

  // The roundings of operands.
  Value keySide(Value tile) { return roundTile(b, loc, tile, types.key); }
  Value inner(Value tile) { return castTile(b, loc, tile, types.inner); }
  Value wide(Value tile) { return castTile(b, loc, tile, b.getF32Type()); }

  OpBuilder &b;
  Location loc;
  const ChunkTypes &types;
};

} // namespace

Value RoundedChunkEmitter::product(Value lhs, Value rhs, Value acc,
                                   bool transposeLhs) {
  auto left = cast<VectorType>(lhs.getType());
  auto right = cast<VectorType>(rhs.getType());
  auto type = VectorType::get(
      {left.getDimSize(transposeLhs ? 1 : 0), right.getDimSize(1)},
      b.getF32Type());
  return tile::MatmulOp::create(b, loc, type, lhs, rhs, acc, transposeLhs);
}

Value RoundedChunkEmitter::matmul(Value lhs, Value rhs, Triangle triangle,
                                  Value acc) {
  Value result = product(lhs, rhs, acc, /*transposeLhs=*/false);
  auto op = result.getDefiningOp<tile::MatmulOp>();
  if (triangle == lowerLhs)
    op.setLowerLhs(true);
  if (triangle == lowerResult)
    op.setLowerResult(true);
  return result;
}

Value RoundedChunkEmitter::matmulTransposed(Value lhs, Value rhs, Value acc) {
  return product(lhs, rhs, acc, /*transposeLhs=*/true);
}

Value RoundedChunkEmitter::scaleRows(
    Value tile, ValueRange others,
    llvm::function_ref<Value(ValueRange)> factor) {
  SmallVector<Value> inputs = {tile};
  llvm::append_range(inputs, others);
  return mapRows(b, loc, inputs, {tile.getType()},
                 [&](OpBuilder &, ValueRange in) -> Rows {
                   Value scalar = factor(in.drop_front());
                   return {mul(in[0], splat(scalar, in[0]))};
                 })[0];
}

IntraChunkTiles RoundedChunkEmitter::intraChunk(Value rawQuery, Value rawKey,
                                                Value logDecay, Value beta,
                                                double scale, bool apart) {
  Value query = keySide(rawQuery), key = keySide(rawKey);
  Value sums = tile::PrefixSumOp::create(b, loc, logDecay);
  int64_t size = cast<VectorType>(sums.getType()).getDimSize(0);
  int64_t last = size - 1;
  double outputScale = scale / types.valueScale;
  Value outside, inside;
  std::tie(outside, inside) = splitDecays(b, loc, logDecay, sums);

  // Scores among the tokens of the chunk.
  Value keyT = transposeTile(b, loc, key);
  auto square = VectorType::get({size, size}, b.getF32Type());
  Value decay = tile::DecayMatrixOp::create(b, loc, square, inside);
  Value own = matmul(key, keyT, lowerResult);
  // Its product waits for nothing, and may be made beside the inverse.
  Value asked = apart ? Value() : matmul(query, keyT, lowerResult);
  Value triangle = inner(
      scaleRows(own, beta, [&](ValueRange strength) { return strength[0]; }));
  Value inverse = tile::TriInverseOp::create(b, loc, triangle);
  if (apart) {
    Value toEnd = tile::SuffixSumOp::create(b, loc, inside);
    return intraChunkApart({query, key, {}, {}, {}, sums, outside, toEnd},
                           inverse, decay, outputScale);
  }
  Value factors = inner(decay);
  auto narrow = VectorType::get({size, size}, types.inner);
  Value solve = mapRows(b, loc, {inverse, factors}, {narrow},
                        [&](OpBuilder &, ValueRange in) -> Rows {
                          return {mul(in[0], in[1])};
                        })[0];
  Value below = inner(
      mapRows(b, loc, asked, {square}, [&](OpBuilder &, ValueRange in) -> Rows {
        Value i = b.getInsertionBlock()->getArgument(0);
        return {keepBelow(b, loc, i, in[0])};
      })[0]);
  Value scores = mapRows(b, loc, {below, factors}, {narrow},
                         [&](OpBuilder &, ValueRange in) -> Rows {
                           return {mul(in[0], in[1])};
                         })[0];

  // What an error of the state becomes: in the state after the chunk, and in
  // the outputs.
  Value ofScores = matmul(scores, solve, lowerLhs);
  Value toOutput = inner(scaleRows(ofScores, outside, [&](ValueRange sum) {
    return mul(exp(sum[0]), number(outputScale));
  }));
  // What is left at the end of the chunk of what a token writes.
  Value toEnd = tile::SuffixSumOp::create(b, loc, inside);
  Value fadedKey = inner(scaleRows(rawKey, toEnd, [&](ValueRange sum) {
    return exp(arith::AddFOp::create(b, loc, sum[0], elementOf(outside, last)));
  }));
  Value toState = inner(matmulTransposed(solve, fadedKey));
  return {query, key, Value(), {toState}, {toOutput}, sums, outside, toEnd};
}

/// T and P', transposed: that is how the inverse comes out of its products, and
/// what the state's rows are multiplied by.
IntraChunkTiles
RoundedChunkEmitter::intraChunkApart(const IntraChunkTiles &known,
                                     Value inverse, Value decay,
                                     double outputScale) {
  auto square = cast<VectorType>(decay.getType());
  auto narrow = VectorType::get(square.getShape(), types.inner);
  Value factors = inner(transposeTile(b, loc, decay));
  Value solve = mapRows(b, loc, {transposeTile(b, loc, inverse), factors},
                        {narrow}, [&](OpBuilder &, ValueRange in) -> Rows {
                          return {mul(in[0], in[1])};
                        })[0];
  Value weight = mapRows(b, loc, known.outside, {known.outside.getType()},
                         [&](OpBuilder &, ValueRange in) -> Rows {
                           return {mul(exp(in[0]), number(outputScale))};
                         })[0];
  weight = inner(weight);
  // The factors are zero below the diagonal.
  Value asked = inner(matmul(known.key, transposeTile(b, loc, known.query)));
  Value scores = mapRows(b, loc, {asked, factors}, {narrow},
                         [&](OpBuilder &, ValueRange in) -> Rows {
                           return {mul(mul(in[0], in[1]), weight)};
                         })[0];
  IntraChunkTiles made = known;
  made.solve = solve;
  made.toOutput = {scores};
  return made;
}

ChunkResult RoundedChunkEmitter::emit(Value state, const Chunk &chunk) {
  auto [rawQuery, rawKey, value, logDecay, beta, valid, scale] =
      maskChunk(b, loc, chunk);
  IntraChunkTiles made = intraChunk(rawQuery, rawKey, logDecay, beta, scale,
                                    /*apart=*/false);
  Value query = made.query, key = made.key, sums = made.sums;
  double outputScale = scale / types.valueScale;
  int64_t last = cast<VectorType>(sums.getType()).getDimSize(0) - 1;

  // What the state does not know of the values.
  Value held = keySide(state);
  Value error = inner(mapRows(
      b, loc, {value, matmul(key, held), sums, made.outside, beta},
      {value.getType()}, [&](OpBuilder &, ValueRange in) -> Rows {
        Value own = mul(in[0], splat(number(types.valueScale), in[0]));
        Value known = mul(in[1], splat(exp(in[2]), in[1]));
        Value strength = mul(in[4], exp(arith::NegFOp::create(b, loc, in[3])));
        return {mul(arith::SubFOp::create(b, loc, own, known),
                    splat(strength, own))};
      })[0]);

  Value fromState = scaleRows(matmul(query, held), sums, [&](ValueRange sum) {
    return mul(exp(sum[0]), number(outputScale));
  });
  Value output = matmul(made.toOutput.high, error, lowerLhs, fromState);
  Value decayedState = scaleRows(
      state, {}, [&](ValueRange) { return exp(elementOf(sums, last)); });
  return {matmulTransposed(made.toState.high, error, decayedState), output};
}

IntraChunkTiles gdn::emitRoundedIntraChunk(OpBuilder &builder, Location loc,
                                           const Chunk &chunk,
                                           const ChunkTypes &types,
                                           bool apart) {
  return RoundedChunkEmitter(builder, loc, types)
      .intraChunk(chunk.query, chunk.key, chunk.logDecay, chunk.beta,
                  chunk.scale, apart);
}

ChunkResult gdn::emitRoundedChunk(OpBuilder &builder, Location loc, Value state,
                                  const Chunk &chunk, const ChunkTypes &types) {
  return RoundedChunkEmitter(builder, loc, types).emit(state, chunk);
}
