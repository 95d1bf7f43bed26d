// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form of the gated delta rule. With G the running sum of the log
// decay within the chunk, M the state before it (S = M^T is what is kept), and
// everything below per value head:
//
//   A = (1 + tril(beta K K^T, -1))^-1          gate-free inverse
//   E[i,j] = exp(g_(j+1) + .. + g_i), j <= i   decay from token j to token i
//   X = (E . A) (beta (V - e^G K S))           what each token really writes
//   O = e^G (Q S) + (E . Q K^T) X
//   S <- e^(G_last) S + K^T (e^(G_last - G) X)
//
// The inverse without gates is exact: decay is a diagonal similarity of the
// triangle, so it is applied to the inverse afterwards. No factor exceeds 1,
// there is no division by a decay, and no decay comes from a difference of
// running sums, which is inexact once one token has forgotten nearly all.
// Rows past the valid ones have k = 0, beta = 0 and g = 0: they write nothing
// and G_last is the G of the last valid token.
#include "ChunkWork.h"
#include "TokenWork.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

namespace {

class ChunkEmitter {
public:
  ChunkEmitter(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  ChunkResult emit(Value state, const Chunk &chunk);

private:
  using Rows = SmallVector<Value>;

  static VectorType typeOf(Value tile) {
    return cast<VectorType>(tile.getType());
  }
  Value zero(OpBuilder &b, Type type) {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  }
  Value matmul(Value lhs, Value rhs, Value acc = {},
               bool transposeLhs = false) {
    int64_t rows = typeOf(lhs).getDimSize(transposeLhs ? 1 : 0);
    auto type =
        VectorType::get({rows, typeOf(rhs).getDimSize(1)}, b.getF32Type());
    return tile::MatmulOp::create(b, loc, type, lhs, rhs, acc, transposeLhs);
  }
  /// A product of which only the lower triangle counts, of `lhs` or of the
  /// result.
  Value lowerLhs(Value product) {
    product.getDefiningOp<tile::MatmulOp>().setLowerLhs(true);
    return product;
  }
  Value lowerResult(Value product) {
    product.getDefiningOp<tile::MatmulOp>().setLowerResult(true);
    return product;
  }
  /// Row i times exp(x_i), x a tile of one value per row.
  Value scaleByExp(Value tile, Value exponents);
  Value multiply(Value x, Value y);
  /// The same on and below the diagonal, zeros above it, whatever stands there.
  Value multiplyBelow(Value x, Value y);
  Value isBelow(OpBuilder &b, Value row, int64_t size);

  OpBuilder &b;
  Location loc;
};

} // namespace

/// Zeros in the rows of `tile` from `valid` on.
static Value maskRows(OpBuilder &b, Location loc, Value tile, Value valid) {
  auto map = tile::MapRowsOp::create(b, loc, tile.getType(), tile);
  Type row = tile::getRowType(cast<VectorType>(tile.getType()));
  OpBuilder::InsertionGuard guard(b);
  Block *body =
      b.createBlock(&map.getBody(), {}, {b.getIndexType(), row}, {loc, loc});
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       body->getArgument(0), valid);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(row));
  Value kept =
      arith::SelectOp::create(b, loc, inside, body->getArgument(1), zero);
  tile::YieldOp::create(b, loc, kept);
  return map.getResult(0);
}

Chunk gdn::maskChunk(OpBuilder &b, Location loc, const Chunk &chunk) {
  auto mask = [&](Value tile) { return maskRows(b, loc, tile, chunk.valid); };
  return {mask(chunk.query),    mask(chunk.key),  mask(chunk.value),
          mask(chunk.logDecay), mask(chunk.beta), chunk.valid};
}

Value ChunkEmitter::scaleByExp(Value tile, Value exponents) {
  return mapRows(b, loc, {tile, exponents}, {tile.getType()},
                 [&](OpBuilder &b, ValueRange in) -> Rows {
                   Value factor = math::ExpOp::create(b, loc, in[1]);
                   Value row = vector::BroadcastOp::create(
                       b, loc, in[0].getType(), factor);
                   return {arith::MulFOp::create(b, loc, in[0], row)};
                 })[0];
}

/// For each element of a row, whether its column is at most `row`.
Value ChunkEmitter::isBelow(OpBuilder &b, Value row, int64_t size) {
  auto indices = VectorType::get({size}, b.getIndexType());
  Value column = vector::StepOp::create(b, loc, indices);
  Value own = vector::BroadcastOp::create(b, loc, indices, row);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, column, own);
}

Value ChunkEmitter::multiplyBelow(Value x, Value y) {
  auto map = tile::MapRowsOp::create(b, loc, x.getType(), ValueRange{x, y});
  Type row = tile::getRowType(typeOf(x));
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&map.getBody(), {}, {b.getIndexType(), row, row},
                              {loc, loc, loc});
  Value kept = isBelow(b, body->getArgument(0), typeOf(x).getDimSize(1));
  Value product =
      arith::MulFOp::create(b, loc, body->getArgument(1), body->getArgument(2));
  tile::YieldOp::create(
      b, loc,
      ValueRange{arith::SelectOp::create(b, loc, kept, product, zero(b, row))});
  return map.getResult(0);
}

Value ChunkEmitter::multiply(Value x, Value y) {
  return mapRows(b, loc, {x, y}, {x.getType()},
                 [&](OpBuilder &b, ValueRange in) -> Rows {
                   return {arith::MulFOp::create(b, loc, in[0], in[1])};
                 })[0];
}

ChunkResult ChunkEmitter::emit(Value state, const Chunk &chunk) {
  auto [query, key, value, logDecay, beta, valid] = maskChunk(b, loc, chunk);
  Value sums = tile::PrefixSumOp::create(b, loc, logDecay);
  int64_t last = typeOf(sums).getDimSize(0) - 1;

  // Scores among the tokens of the chunk.
  Value keyT = transposeTile(b, loc, key);
  auto square = VectorType::get({last + 1, last + 1}, b.getF32Type());
  Value decay = tile::DecayMatrixOp::create(b, loc, square, logDecay);
  Value keyScores = lowerResult(matmul(key, keyT));
  Value triangle = mapRows(b, loc, {keyScores, beta}, {keyScores.getType()},
                           [&](OpBuilder &b, ValueRange in) -> Rows {
                             Value row = vector::BroadcastOp::create(
                                 b, loc, in[0].getType(), in[1]);
                             return {arith::MulFOp::create(b, loc, in[0], row)};
                           })[0];
  Value inverse = multiply(tile::TriInverseOp::create(b, loc, triangle), decay);
  Value scores = multiplyBelow(lowerResult(matmul(query, keyT)), decay);

  // What the tokens write, given what the state already holds.
  Value known = matmul(key, state);
  Value error = mapRows(
      b, loc, {value, known, sums, beta}, {value.getType()},
      [&](OpBuilder &b, ValueRange in) -> Rows {
        Type row = in[0].getType();
        Value factor = vector::BroadcastOp::create(
            b, loc, row, math::ExpOp::create(b, loc, in[2]).getResult());
        Value decayed = arith::MulFOp::create(b, loc, in[1], factor);
        Value rest = arith::SubFOp::create(b, loc, in[0], decayed);
        Value strength = vector::BroadcastOp::create(b, loc, row, in[3]);
        return {arith::MulFOp::create(b, loc, rest, strength)};
      })[0];
  Value written = lowerLhs(matmul(inverse, error));

  Value output =
      lowerLhs(matmul(scores, written, scaleByExp(matmul(query, state), sums)));

  // The state after the chunk.
  Value toEnd = tile::SuffixSumOp::create(b, loc, logDecay);
  Value decayedState =
      mapRows(b, loc, state, {state.getType()},
              [&](OpBuilder &b, ValueRange in) -> Rows {
                Value end = vector::ExtractOp::create(b, loc, sums, last);
                Value factor = vector::BroadcastOp::create(
                    b, loc, in[0].getType(),
                    math::ExpOp::create(b, loc, end).getResult());
                return {arith::MulFOp::create(b, loc, in[0], factor)};
              })[0];
  Value next = matmul(key, scaleByExp(written, toEnd), decayedState,
                      /*transposeLhs=*/true);
  return {next, output};
}

ChunkResult gdn::emitChunk(OpBuilder &builder, Location loc, Value state,
                           const Chunk &chunk) {
  return ChunkEmitter(builder, loc).emit(state, chunk);
}
