// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each step of a chunk form in f32 that several forms have.
#include "Chunks/ChunkProducts.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

Value ChunkProducts::matmul(Value lhs, Value rhs, Value acc,
                            bool transposeLhs) {
  int64_t rows = typeOf(lhs).getDimSize(transposeLhs ? 1 : 0);
  auto type =
      VectorType::get({rows, typeOf(rhs).getDimSize(1)}, b.getF32Type());
  return tile::MatmulOp::create(b, loc, type, lhs, rhs, acc, transposeLhs);
}

Value ChunkProducts::lowerLhs(Value product) {
  product.getDefiningOp<tile::MatmulOp>().setLowerLhs(true);
  return product;
}

Value ChunkProducts::lowerResult(Value product) {
  product.getDefiningOp<tile::MatmulOp>().setLowerResult(true);
  return product;
}

Value ChunkProducts::scaleRows(Value tile, Value factors) {
  return mapRows(b, loc, {tile, factors}, {tile.getType()},
                 [&](OpBuilder &b, ValueRange in) -> Rows {
                   Value row = vector::BroadcastOp::create(
                       b, loc, in[0].getType(), in[1]);
                   return {arith::MulFOp::create(b, loc, in[0], row)};
                 })[0];
}

Value ChunkProducts::times(OpBuilder &b, Value row, double factor) {
  if (factor == 1)
    return row;
  auto type = cast<VectorType>(row.getType());
  auto splat = DenseElementsAttr::get(type, b.getF32FloatAttr(factor));
  return arith::MulFOp::create(b, loc, row,
                               arith::ConstantOp::create(b, loc, splat));
}

Value ChunkProducts::scaleByExp(Value tile, Value exponents, double factor) {
  return mapRows(
      b, loc, {tile, exponents}, {tile.getType()},
      [&](OpBuilder &b, ValueRange in) -> Rows {
        Value decay = math::ExpOp::create(b, loc, in[1]);
        Value row = vector::BroadcastOp::create(b, loc, in[0].getType(), decay);
        return {arith::MulFOp::create(b, loc, in[0], times(b, row, factor))};
      })[0];
}

SmallVector<Value> ChunkProducts::fade(ValueRange tiles, Value exponents) {
  SmallVector<Value> inputs(tiles);
  inputs.push_back(exponents);
  return mapRows(
      b, loc, inputs, tiles.getTypes(), [&](OpBuilder &b, ValueRange in) {
        Value factor = math::ExpOp::create(b, loc, in.back());
        if (!isa<VectorType>(factor.getType()))
          factor = vector::BroadcastOp::create(b, loc, in[0].getType(), factor);
        Rows rows;
        for (Value row : in.drop_back())
          rows.push_back(arith::MulFOp::create(b, loc, row, factor));
        return rows;
      });
}

Value ChunkProducts::decayScores(Value products, Value decay, double scale) {
  return mapRows(b, loc, {products, decay}, {decay.getType()},
                 [&](OpBuilder &b, ValueRange in) -> Rows {
                   Value row = b.getInsertionBlock()->getArgument(0);
                   Value scaled = times(b, in[0], scale);
                   Value decayed = arith::MulFOp::create(b, loc, scaled, in[1]);
                   return {keepBelow(b, loc, row, decayed)};
                 })[0];
}

Value ChunkProducts::decayState(Value state, Value sums) {
  const int64_t last = typeOf(sums).getDimSize(0) - 1;
  return mapRows(b, loc, state, {state.getType()},
                 [&](OpBuilder &b, ValueRange in) -> Rows {
                   Value end = vector::ExtractOp::create(b, loc, sums, last);
                   Value factor = vector::BroadcastOp::create(
                       b, loc, in[0].getType(),
                       math::ExpOp::create(b, loc, end).getResult());
                   return {arith::MulFOp::create(b, loc, in[0], factor)};
                 })[0];
}

Value ChunkProducts::lastRow(Value sums) {
  auto row = VectorType::get({typeOf(sums).getDimSize(1)}, b.getF32Type());
  return tile::ExtractRowOp::create(b, loc, row, sums,
                                    typeOf(sums).getDimSize(0) - 1);
}
