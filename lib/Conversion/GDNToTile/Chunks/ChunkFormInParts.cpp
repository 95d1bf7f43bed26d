// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a chunk needs no state for, where products take each operand in two
// parts of f16: what is left behind the rounding of the first is the second.
// Three products of parts are one of f32 but for what both second parts give,
// 2^-22 of the result. The form is that of ChunkFormRounded.cpp, with decays
// and strengths in f32.
//
// The inverse of the triangle 1 + L is that of its first part, rounded, and two
// steps of Newton's. X is in the parts that it has so far, so what it leaves of
// the identity is a sum of products that nearly cancel, in f32, and small
// enough for one part:
//
//   X <- X + X (1 - X - L X)
//
// A key that repeats with a strength of 2 has elements of X of 2 throughout,
// and the first step leaves 1e-5 of it, which the state would add up.
#include "Chunks/ChunkForm.h"
#include "Chunks/ChunkProducts.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

Operand gdn::toParts(OpBuilder &b, Location loc, Value tile, Type part) {
  Operand operand;
  operand.high = castTile(b, loc, tile, part);
  Value rounded = castTile(b, loc, operand.high, b.getF32Type());
  Value rest = mapRows(b, loc, {tile, rounded}, {tile.getType()},
                       [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
                         return {arith::SubFOp::create(b, loc, in[0], in[1])};
                       })[0];
  operand.low = castTile(b, loc, rest, part);
  return operand;
}

Operand gdn::transposeParts(OpBuilder &b, Location loc,
                            const Operand &operand) {
  return {transposeTile(b, loc, operand.high),
          operand.low ? transposeTile(b, loc, operand.low) : Value()};
}

Value gdn::multiplyParts(OpBuilder &b, Location loc, const Operand &lhs,
                         const Operand &rhs, Value acc, bool transposeLhs) {
  auto multiply = [&](Value left, Value right, Value sum) -> Value {
    auto type = cast<VectorType>(left.getType());
    const int64_t columns = cast<VectorType>(right.getType()).getDimSize(1);
    auto result = VectorType::get(
        {type.getDimSize(transposeLhs ? 1 : 0), columns}, b.getF32Type());
    return tile::MatmulOp::create(b, loc, result, left, right, sum,
                                  transposeLhs);
  };
  if (lhs.low)
    acc = multiply(lhs.low, rhs.high, acc);
  acc = multiply(lhs.high, rhs.high, acc);
  return rhs.low ? multiply(lhs.high, rhs.low, acc) : acc;
}

namespace {
/// Such a part of the identity as the second step leaves is too small for f16
/// as it is.
constexpr double kRestScale = 1024;

class ChunkInParts : private ChunkProducts {
public:
  ChunkInParts(OpBuilder &b, Location loc, const ChunkTypes &types)
      : ChunkProducts(b, loc), types(types) {}

  IntraChunkTiles intraChunk(const Operand &query, const Operand &key,
                             const Chunk &chunk);

private:
  Operand split(Value tile) { return toParts(b, loc, tile, types.inner); }
  Value wide(Value tile) { return castTile(b, loc, tile, b.getF32Type()); }
  Value map(ValueRange inputs, llvm::function_ref<Value(ValueRange)> body) {
    return mapRows(
        b, loc, inputs, {inputs[0].getType()},
        [&](OpBuilder &, ValueRange in) -> Rows { return {body(in)}; })[0];
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value splat(Value scalar, Value like) {
    return vector::BroadcastOp::create(b, loc, like.getType(), scalar);
  }
  Value number(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value exp(Value x) {
    return math::ExpOp::create(b, loc, x, arith::FastMathFlags::afn);
  }
  /// The part of a tile of f32 below its diagonal.
  Value belowDiagonal(Value tile) {
    return map(tile, [&](ValueRange in) {
      return keepBelow(b, loc, b.getInsertionBlock()->getArgument(0), in[0],
                       /*diagonal=*/false);
    });
  }
  Value product(const Operand &lhs, const Operand &rhs,
                bool transposeLhs = false) {
    return multiplyParts(b, loc, lhs, rhs, {}, transposeLhs);
  }
  Value invert(const Operand &triangle);

  const ChunkTypes &types;
};
} // namespace

/// X of 1 + L, whose parts have zeros on and above the diagonal.
Value ChunkInParts::invert(const Operand &triangle) {
  Value first = tile::TriInverseOp::create(b, loc, triangle.high);
  // Ones on the diagonal cancel.
  Value rest =
      map({belowDiagonal(wide(first)), product(triangle, {first})},
          [&](ValueRange in) {
            return arith::NegFOp::create(b, loc, add(in[0], in[1])).getResult();
          });
  Value once = matmul(first, castTile(b, loc, rest, types.inner), wide(first));
  Operand parts = split(once);
  Value known = product(triangle, parts);
  rest = map({belowDiagonal(wide(parts.high)), wide(parts.low), known},
             [&](ValueRange in) {
               Value sum = add(add(in[0], in[2]), in[1]);
               return times(b, sum, -kRestScale);
             });
  Value more = matmul(parts.high, castTile(b, loc, rest, types.inner));
  return map({once, more}, [&](ValueRange in) {
    return add(in[0], times(b, in[1], 1 / kRestScale));
  });
}

IntraChunkTiles ChunkInParts::intraChunk(const Operand &query,
                                         const Operand &key,
                                         const Chunk &chunk) {
  Value sums = tile::PrefixSumOp::create(b, loc, chunk.logDecay);
  const int64_t size = typeOf(sums).getDimSize(0);
  Value outside, inside;
  std::tie(outside, inside) = splitDecays(b, loc, chunk.logDecay, sums);
  auto square = VectorType::get({size, size}, b.getF32Type());
  Value decay = tile::DecayMatrixOp::create(b, loc, square, inside);

  Operand keyT = transposeParts(b, loc, key);
  Value own = scaleRows(product(key, keyT), chunk.beta);
  Value inverse = invert(split(belowDiagonal(own)));
  Operand solve = split(
      map({inverse, decay}, [&](ValueRange in) { return mul(in[0], in[1]); }));

  Value asked = product(query, keyT);
  Operand scores = split(
      map({asked, decay}, [&](ValueRange in) { return mul(in[0], in[1]); }));
  const double outputScale = chunk.scale / types.valueScale;
  Value toOutput = map({product(scores, solve), outside}, [&](ValueRange in) {
    return mul(in[0], splat(mul(exp(in[1]), number(outputScale)), in[0]));
  });
  Value toEnd = tile::SuffixSumOp::create(b, loc, inside);
  Value faded = map({wide(key.high), wide(key.low), toEnd}, [&](ValueRange in) {
    Value last = vector::ExtractOp::create(b, loc, outside, size - 1);
    Value factor = exp(add(in[2], last));
    return mul(add(in[0], in[1]), splat(factor, in[0]));
  });
  Value toState = product(solve, split(faded), /*transposeLhs=*/true);
  return {query.high,      key.high, Value(), split(toState),
          split(toOutput), sums,     outside, toEnd};
}

IntraChunkTiles gdn::emitIntraChunkInParts(OpBuilder &builder, Location loc,
                                           const Operand &query,
                                           const Operand &key,
                                           const Chunk &chunk,
                                           const ChunkTypes &types) {
  return ChunkInParts(builder, loc, types).intraChunk(query, key, chunk);
}
