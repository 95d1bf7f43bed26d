// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernel/RowParts.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

/// The largest element of a row in parts lies below 2 to this power plus one,
/// and the other part below f16's 1.
static constexpr int64_t largestPower = 14;

/// The row over a power of two, so that its largest element has that of
/// `largestPower`, and what f16 leaves of that.
std::array<Value, 3> gdn::emitRowParts(OpBuilder &b, Location loc, Value row) {
  auto type = cast<gpu::FragmentType>(row.getType());
  auto half = gpu::FragmentType::get(
      VectorType::get(type.getShape(), b.getF16Type()), type.getRows());
  auto number = gpu::FragmentType::get(
      VectorType::get({1}, b.getF32Type()),
      gpu::PerRowAttr::get(b.getContext(), type.getRows()));
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{half, half, number}, row);
  {
    OpBuilder::InsertionGuard guard(b);
    Value all = map.openBody(b)->getArgument(1);
    auto wide = cast<VectorType>(all.getType());
    Type i32 = b.getI32Type(), f32 = b.getF32Type();
    auto integer = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
    };
    Value most = vector::ReductionOp::create(
        b, loc, vector::CombiningKind::MAXIMUMF,
        math::AbsFOp::create(b, loc, all).getResult());
    // Powers of two are numbers without a fraction; of a row that is smaller
    // than all others elements may be lost.
    constexpr int64_t fractionBits = 23, exponentBias = 127, leastPower = -100;
    Value power = arith::ShRUIOp::create(
        b, loc, arith::BitcastOp::create(b, loc, i32, most),
        integer(fractionBits));
    power = arith::MaxSIOp::create(b, loc, power,
                                   integer(exponentBias + leastPower));
    auto toFloat = [&](Value exponent) -> Value {
      return arith::BitcastOp::create(
          b, loc, f32,
          arith::ShLIOp::create(b, loc, exponent, integer(fractionBits)));
    };
    Value factor = toFloat(arith::SubIOp::create(
        b, loc, integer(2 * exponentBias + largestPower), power));
    Value unit =
        toFloat(arith::SubIOp::create(b, loc, power, integer(largestPower)));
    Value scaled = arith::MulFOp::create(
        b, loc, all, vector::BroadcastOp::create(b, loc, wide, factor));
    Type narrow = wide.clone(b.getF16Type());
    Value large = arith::TruncFOp::create(b, loc, narrow, scaled);
    Value rest = arith::SubFOp::create(
        b, loc, scaled, arith::ExtFOp::create(b, loc, wide, large));
    Value small = arith::TruncFOp::create(b, loc, narrow, rest);
    gpu::YieldOp::create(b, loc, ValueRange{large, small, unit});
  }
  return {map.getResult(0), map.getResult(1), map.getResult(2)};
}
