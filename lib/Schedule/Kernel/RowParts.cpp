// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row is scaled by a power of two and rounded to integers, which are cut into
// bytes; or cut into parts of f16 or bf16.
#include "Kernel/RowParts.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace gdn;

/// The largest element of a row in parts lies from 2 to this power on: a sum
/// with 1.5 * 2^23 counts ones in its last bit.
static constexpr int64_t largestPower = 21;
/// The same of parts in f16: the last ones are normal numbers, or nearly.
static constexpr int64_t largestHalfPower = 14;

/// The lane's part of a row over a power of two, so that the largest element of
/// the row lies from 2 to `largest` on, and the power: NaN if an element is not
/// finite. Inside of a map of rows.
static std::pair<Value, Value> emitRowScale(OpBuilder &b, Location loc,
                                            Value all, int64_t largest) {
  auto wide = cast<VectorType>(all.getType());
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  };
  Value most = vector::ReductionOp::create(
      b, loc, vector::CombiningKind::MAXIMUMF,
      math::AbsFOp::create(b, loc, all).getResult());
  // Powers of two are numbers without a fraction; of a row that is smaller than
  // all others elements may be lost.
  constexpr int64_t fractionBits = 23, exponentBias = 127, leastPower = -100;
  Value power = arith::ShRUIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, i32, most),
      integer(fractionBits));
  power =
      arith::MaxSIOp::create(b, loc, power, integer(exponentBias + leastPower));
  auto toFloat = [&](Value exponent) -> Value {
    return arith::BitcastOp::create(
        b, loc, f32,
        arith::ShLIOp::create(b, loc, exponent, integer(fractionBits)));
  };
  Value factor = toFloat(arith::SubIOp::create(
      b, loc, integer(2 * exponentBias + largest), power));
  Value unit = toFloat(arith::SubIOp::create(b, loc, power, integer(largest)));
  constexpr int64_t notFinite = 255;
  unit = arith::SelectOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, power,
                            integer(notFinite)),
      arith::ConstantOp::create(
          b, loc, b.getF32FloatAttr(std::numeric_limits<float>::quiet_NaN())),
      unit);
  Value scaled = arith::MulFOp::create(
      b, loc, all, vector::BroadcastOp::create(b, loc, wide, factor));
  return {scaled, unit};
}

/// The row over a power of two, so that its largest element has that of
/// `largestPower`, rounded; and its bytes.
std::array<Value, 4> gdn::emitRowParts(OpBuilder &b, Location loc, Value row) {
  auto type = cast<gpu::FragmentType>(row.getType());
  auto part = gpu::FragmentType::get(
      VectorType::get(type.getShape(), b.getI8Type()), type.getRows());
  auto number = gpu::FragmentType::get(
      VectorType::get({1}, b.getF32Type()),
      gpu::PerRowAttr::get(b.getContext(), type.getRows()));
  auto map =
      gpu::MapRowsOp::create(b, loc, TypeRange{part, part, part, number}, row);
  {
    OpBuilder::InsertionGuard guard(b);
    Value all = map.openBody(b)->getArgument(1);
    auto wide = cast<VectorType>(all.getType());
    Type i32 = b.getI32Type();
    auto [scaled, unit] = emitRowScale(b, loc, all, largestPower);
    auto numbers = wide.clone(i32);
    auto integers = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(numbers, b.getI32IntegerAttr(value)));
    };
    // Of bytes that are 128 for zero.
    constexpr int64_t magicBits = 0x4B400000, zeros = 0x808080;
    Value magic = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(wide, b.getF32FloatAttr(1.5f * 8388608.0f)));
    Value bits = arith::BitcastOp::create(
        b, loc, numbers, arith::AddFOp::create(b, loc, scaled, magic));
    bits = arith::AddIOp::create(b, loc, bits, integers(zeros - magicBits));
    SmallVector<Value> made;
    for (int64_t i = 0; i < 3; ++i) {
      Value byte = bits;
      if (i > 0)
        byte = arith::ShRUIOp::create(b, loc, bits, integers(8 * i));
      made.push_back(
          arith::TruncIOp::create(b, loc, wide.clone(b.getI8Type()), byte));
    }
    made.push_back(unit);
    gpu::YieldOp::create(b, loc, made);
  }
  return {map.getResult(0), map.getResult(1), map.getResult(2),
          map.getResult(3)};
}

SmallVector<Value> gdn::emitNarrowParts(OpBuilder &b, Location loc, Value row,
                                        Type element) {
  auto type = cast<gpu::FragmentType>(row.getType());
  auto part = gpu::FragmentType::get(VectorType::get(type.getShape(), element),
                                     type.getRows());
  SmallVector<Type> types(3, part);
  // Numbers of bf16 have the range of f32.
  const bool isScaled = element.isF16();
  if (isScaled)
    types.push_back(gpu::FragmentType::get(
        VectorType::get({1}, b.getF32Type()),
        gpu::PerRowAttr::get(b.getContext(), type.getRows())));
  auto map = gpu::MapRowsOp::create(b, loc, types, row);
  {
    OpBuilder::InsertionGuard guard(b);
    Value rest = map.openBody(b)->getArgument(1), unit;
    if (isScaled)
      std::tie(rest, unit) = emitRowScale(b, loc, rest, largestHalfPower);
    auto wide = cast<VectorType>(rest.getType());
    SmallVector<Value> made;
    for (int64_t i = 0; i < 3; ++i) {
      made.push_back(
          arith::TruncFOp::create(b, loc, wide.clone(element), rest));
      if (i < 2)
        rest = arith::SubFOp::create(
            b, loc, rest, arith::ExtFOp::create(b, loc, wide, made.back()));
    }
    if (unit)
      made.push_back(unit);
    gpu::YieldOp::create(b, loc, made);
  }
  return SmallVector<Value>(map.getResults());
}
