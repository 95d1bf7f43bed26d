// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a row x with the largest element a:
//
//   s = a / 127,  v = round(256 x / s),  upper = (v + 128) >> 8,
//   low = v - 256 upper;  both bytes are stored plus 128
//
// so that the planes are two bytes of one integer, x = s (upper + low / 256).
// One plane has v = round(x / s) = upper. A row of zeros, or of numbers so
// small that 1 / s is none, has a scale of 0; one that is not finite a scale of
// NaN.
#include "Program/StatePlanes.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace gdn;

static constexpr double zeroByte = 128, largest = 127, lowParts = 256;
static constexpr float leastRow = 1e-30f;

namespace {
/// Elementwise work on rows of f32 and of integers.
struct RowMaths {
  OpBuilder &b;
  Location loc;

  Value constant(double value, Type type) {
    auto element = FloatAttr::get(b.getF32Type(), value);
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, loc,
                                       DenseElementsAttr::get(vector, element));
    return arith::ConstantOp::create(b, loc, element);
  }
  Value integer(int32_t value, VectorType like) {
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(like.clone(b.getI32Type()),
                               b.getI32IntegerAttr(value)));
  }
  Value splat(Value scalar, VectorType type) {
    return vector::BroadcastOp::create(b, loc, type.clone(scalar.getType()),
                                       scalar);
  }
  Value times(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  /// The integers that bytes stand for, exact: as low bits of a number whose
  /// last bit counts one, less what it is beside them. A conversion is four
  /// times as slow on GPUs.
  Value fromBytes(Value upper, Value low) {
    auto type = cast<VectorType>(upper.getType());
    auto widen = [&](Value bytes) -> Value {
      return arith::ExtUIOp::create(b, loc, type.clone(b.getI32Type()), bytes);
    };
    Value bits = widen(upper);
    double zero = zeroByte;
    if (low) {
      bits = arith::ShLIOp::create(b, loc, bits, integer(8, type));
      bits = arith::OrIOp::create(b, loc, bits, widen(low));
      zero = zeroByte * (lowParts + 1);
    }
    constexpr int32_t bitsOfOne = 0x4B000000; // 2^23
    bits = arith::OrIOp::create(b, loc, bits, integer(bitsOfOne, type));
    Type f32 = type.clone(b.getF32Type());
    Value number = arith::BitcastOp::create(b, loc, f32, bits);
    return arith::SubFOp::create(b, loc, number,
                                 constant(8388608.0 + zero, f32));
  }
  /// The bytes that numbers round to, the upper ones first if there are two:
  /// the low bits of a sum whose last bit counts one. Less than 2^22 is added
  /// to 1.5 * 2^23, and an even number, which moves no tie.
  SmallVector<Value> toBytes(Value numbers, bool hasLow) {
    auto type = cast<VectorType>(numbers.getType());
    Type i8 = type.clone(b.getI8Type());
    double zero = zeroByte * (hasLow ? lowParts + 1 : 1);
    Value sum = arith::AddFOp::create(b, loc, numbers,
                                      constant(1.5 * 8388608.0 + zero, type));
    Value bits =
        arith::BitcastOp::create(b, loc, type.clone(b.getI32Type()), sum);
    auto lowest = [&](Value of) -> Value {
      return arith::TruncIOp::create(b, loc, i8, of);
    };
    if (!hasLow)
      return {lowest(bits)};
    Value upper = arith::ShRUIOp::create(b, loc, bits, integer(8, type));
    return {lowest(upper), lowest(bits)};
  }
};
} // namespace

Value gdn::loadState(OpBuilder &b, Location loc, const StateMemory &memory,
                     VectorType stored, ValueRange at, Value rows) {
  auto load = [&](Value view, VectorType type, ValueRange indices,
                  ArrayRef<int64_t> dims, Value limit = {}) -> Value {
    return tile::LoadOp::create(b, loc, type, view, indices, dims, limit);
  };
  if (!memory.scales)
    return load(memory.states, stored, at, {2, 3}, rows);
  // A row with a scale of 0 is zero whatever its bytes are. Loads of bytes that
  // depend on a number of rows leave too few registers on GPUs.
  SmallVector<Value> tiles = {
      load(memory.states, stored, at, {2, 3}),
      load(memory.scales, VectorType::get(stored.getDimSize(0), b.getF32Type()),
           at.drop_back(), {2}, rows)};
  if (memory.low)
    tiles.push_back(load(memory.low, stored, at, {2, 3}));
  auto type = cast<VectorType>(stored.clone(b.getF32Type()));
  return mapRows(b, loc, tiles, {type},
                 [&](OpBuilder &inner, ValueRange in) -> SmallVector<Value> {
                   RowMaths row{inner, loc};
                   Value low = in.size() == 3 ? in[2] : Value();
                   Value value = row.fromBytes(in[0], low);
                   auto vector = cast<VectorType>(value.getType());
                   Value scale = in[1];
                   if (low)
                     scale = row.times(
                         scale, row.constant(1 / lowParts, scale.getType()));
                   return {row.times(value, row.splat(scale, vector))};
                 })[0];
}

StoredState gdn::roundState(OpBuilder &b, Location loc,
                            const StateMemory &memory, Value state,
                            Type element) {
  if (!memory.scales)
    return {castTile(b, loc, state, element), Value(), Value()};
  auto type = cast<VectorType>(state.getType());
  SmallVector<Type> types = {
      type.clone(element), VectorType::get(type.getDimSize(0), b.getF32Type())};
  if (memory.low)
    types.push_back(type.clone(element));
  SmallVector<Value> made = mapRows(
      b, loc, {state}, types,
      [&](OpBuilder &inner, ValueRange in) -> SmallVector<Value> {
        RowMaths row{inner, loc};
        Value x = in[0];
        auto vector = cast<VectorType>(x.getType());
        Value most = vector::ReductionOp::create(
            inner, loc, vector::CombiningKind::MAXIMUMF,
            math::AbsFOp::create(inner, loc, x).getResult());
        Type f32 = inner.getF32Type();
        auto compare = [&](arith::CmpFPredicate how, double value) -> Value {
          return arith::CmpFOp::create(inner, loc, how, most,
                                       row.constant(value, f32));
        };
        auto select = [&](Value condition, Value yes, Value no) -> Value {
          return arith::SelectOp::create(inner, loc, condition, yes, no);
        };
        // NaN is not below infinity.
        Value isFinite = compare(arith::CmpFPredicate::OLT,
                                 std::numeric_limits<double>::infinity());
        Value isSome = arith::AndIOp::create(
            inner, loc, isFinite, compare(arith::CmpFPredicate::OGE, leastRow));
        Value zero = row.constant(0, f32), one = row.constant(1, f32);
        const double parts = memory.low ? lowParts : 1;
        Value factor =
            select(isSome,
                   arith::DivFOp::create(inner, loc,
                                         row.constant(largest * parts, f32),
                                         select(isSome, most, one)),
                   zero);
        Value scale = select(
            isSome,
            arith::DivFOp::create(inner, loc, most, row.constant(largest, f32)),
            select(
                isFinite, zero,
                row.constant(std::numeric_limits<double>::quiet_NaN(), f32)));
        Value known =
            select(row.splat(isSome, vector), x, row.constant(0, vector));
        SmallVector<Value> bytes = row.toBytes(
            row.times(known, row.splat(factor, vector)), bool(memory.low));
        bytes.insert(bytes.begin() + 1, scale);
        return bytes;
      });
  return {made[0], made[1], memory.low ? made[2] : Value()};
}

void gdn::storeState(OpBuilder &b, Location loc, const StateMemory &memory,
                     const StoredState &state, ValueRange at) {
  auto store = [&](Value tile, Value view, ValueRange indices,
                   ArrayRef<int64_t> dims) {
    tile::StoreOp::create(b, loc, tile, view, indices, dims, Value());
  };
  store(state.states, memory.states, at, {2, 3});
  if (state.scales)
    store(state.scales, memory.scales, at.drop_back(), {2});
  if (state.low)
    store(state.low, memory.low, at, {2, 3});
}
