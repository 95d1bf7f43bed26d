// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-expand-gpu-math: no calls of a math library. See Passes.td.
#include "PermuteBytes.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace gdn {
#define GEN_PASS_DEF_EXPANDGPUMATH
#include "gdn/Conversion/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

/// `type` with another element type.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

static bool isF32(Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return getElementTypeOrSelf(value.getType()).isF32() &&
         (!vector || vector.getRank() == 1);
}

static Value splat(OpBuilder &b, Location loc, Type type, float value) {
  Attribute attr = b.getF32FloatAttr(value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, attr);
  return arith::ConstantOp::create(b, loc, cast<TypedAttr>(attr));
}

/// The intrinsic of each element; vectors have none of their own.
static Value callIntrinsic(OpBuilder &b, Location loc, StringRef name,
                           ValueRange operands) {
  Type f32 = b.getF32Type();
  auto call = [&](ValueRange scalars) -> Value {
    return LLVM::CallIntrinsicOp::create(b, loc, f32, b.getStringAttr(name),
                                         scalars)
        .getResults();
  };
  auto type = dyn_cast<VectorType>(operands[0].getType());
  if (!type)
    return call(operands);
  SmallVector<Value> results;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    SmallVector<Value> scalars;
    for (Value operand : operands)
      scalars.push_back(vector::ExtractOp::create(b, loc, operand, i));
    results.push_back(call(scalars));
  }
  return vector::FromElementsOp::create(b, loc, type, results);
}

namespace {

/// exp(x) = 2^j * 2^(f / ln 2), x = j ln 2 + f with |f| at most half of ln 2.
/// The chip's power of two is relative to 1, so that f keeps it exact; j is an
/// integer, for which it is exact. An approximation is asked for with `afn`:
/// then x / ln 2 is rounded, which costs 2^-24 |x| of the result.
struct ExpandExp final : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &b) const override {
    if (!isF32(op.getOperand()))
      return failure();
    Location loc = op.getLoc();
    Type type = op.getType();
    auto constant = [&](float value) { return splat(b, loc, type, value); };
    auto power = [&](Value x) {
      return callIntrinsic(b, loc, "llvm.nvvm.ex2.approx.ftz.f32", x);
    };
    if (arith::bitEnumContainsAll(op.getFastmath(),
                                  arith::FastMathFlags::afn)) {
      Value scaled =
          arith::MulFOp::create(b, loc, op.getOperand(), constant(1.44269504f));
      b.replaceOp(op, power(scaled));
      return success();
    }
    // Past these the result is 0 or infinite, and the reduction no more exact.
    Value x = arith::MinimumFOp::create(b, loc, op.getOperand(), constant(89));
    x = arith::MaximumFOp::create(b, loc, x, constant(-105));
    Value log2e = constant(1.44269504f);
    // Adding and taking away 1.5 * 2^23 rounds to an integer.
    Value shift = constant(12582912.0f);
    Value j = math::FmaOp::create(b, loc, x, log2e, shift);
    j = arith::SubFOp::create(b, loc, j, shift);
    Value f = math::FmaOp::create(b, loc, j, constant(-0.693145751953125f), x);
    f = math::FmaOp::create(b, loc, j, constant(-1.42860677e-6f), f);
    f = arith::MulFOp::create(b, loc, f, log2e);
    b.replaceOpWithNewOp<arith::MulFOp>(op, power(f), power(j));
    return success();
  }
};

/// An approximation, as asked for with `afn`: relative to 1, the chip's own.
struct ExpandExp2 final : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &b) const override {
    if (!isF32(op.getOperand()) ||
        !arith::bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return failure();
    b.replaceOp(op,
                callIntrinsic(b, op.getLoc(), "llvm.nvvm.ex2.approx.ftz.f32",
                              op.getOperand()));
    return success();
  }
};

struct ExpandRsqrt final : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &b) const override {
    if (!isF32(op.getOperand()))
      return failure();
    b.replaceOp(op,
                callIntrinsic(b, op.getLoc(), "llvm.nvvm.rsqrt.approx.ftz.f",
                              op.getOperand()));
    return success();
  }
};

/// A product where the reciprocal is exact, a reciprocal where the numerator is
/// one, else the chip's division.
struct ExpandDivision final : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &b) const override {
    if (!isF32(op.getLhs()))
      return failure();
    Location loc = op.getLoc();
    APFloat constant(0.0f), inverse(0.0f);
    if (matchPattern(op.getRhs(), m_ConstantFloat(&constant)) &&
        constant.getExactInverse(&inverse)) {
      Value factor = splat(b, loc, op.getType(), inverse.convertToFloat());
      b.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), factor);
    } else if (matchPattern(op.getLhs(), m_OneFloat())) {
      b.replaceOp(
          op, callIntrinsic(b, loc, "llvm.nvvm.rcp.approx.ftz.f", op.getRhs()));
    } else {
      b.replaceOp(op, callIntrinsic(b, loc, "llvm.nvvm.div.full",
                                    {op.getLhs(), op.getRhs()}));
    }
    return success();
  }
};

/// bf16 is the upper half of an f32. Pairs come out of 32 bits by a shift and a
/// mask.
struct WidenBF16 final : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &b) const override {
    Value x = op.getIn();
    auto type = dyn_cast<VectorType>(x.getType());
    if (!getElementTypeOrSelf(x.getType()).isBF16() || !isF32(op.getOut()))
      return failure();
    Location loc = op.getLoc();
    Type i32 = b.getI32Type();
    auto constant = [&](Type like, int32_t value) -> Value {
      Attribute attr = b.getI32IntegerAttr(value);
      if (auto vector = dyn_cast<VectorType>(like))
        attr = DenseElementsAttr::get(vector, attr);
      return arith::ConstantOp::create(b, loc, cast<TypedAttr>(attr));
    };
    if (type && type.getNumElements() % 2 == 0) {
      int64_t pairs = type.getNumElements() / 2;
      auto words = VectorType::get({pairs}, i32);
      Value both = vector::BitCastOp::create(b, loc, words, x);
      Value low = arith::ShLIOp::create(b, loc, both, constant(words, 16));
      Value high =
          arith::AndIOp::create(b, loc, both, constant(words, 0xffff0000));
      SmallVector<int64_t> order;
      for (int64_t i = 0; i < pairs; ++i)
        order.append({i, pairs + i});
      Value bits = vector::ShuffleOp::create(b, loc, low, high, order);
      b.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), bits);
      return success();
    }
    Type narrow = withElement(x.getType(), b.getI16Type());
    Type wide = withElement(x.getType(), i32);
    Value bits = arith::BitcastOp::create(b, loc, narrow, x);
    bits = arith::ExtUIOp::create(b, loc, wide, bits);
    bits = arith::ShLIOp::create(b, loc, bits, constant(wide, 16));
    b.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), bits);
    return success();
  }
};

/// f32 to 16 bits, ties to even, two at a time: left to itself the compiler
/// puts selections of single elements behind the rounding.
struct RoundTo16Bits final : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &b) const override {
    Type element = getElementTypeOrSelf(op.getType());
    auto type = dyn_cast<VectorType>(op.getType());
    const bool isPairs = type && type.getNumElements() % 2 == 0;
    if (!isF32(op.getIn()) || op.getRoundingmode() ||
        !(element.isBF16() || (element.isF16() && isPairs)))
      return failure();
    Location loc = op.getLoc();
    auto round = [&](Value x) -> Value {
      return LLVM::CallIntrinsicOp::create(
                 b, loc, element, b.getStringAttr("llvm.nvvm.f2bf16.rn"), x)
          .getResults();
    };
    if (!type) {
      b.replaceOp(op, round(op.getIn()));
      return success();
    }
    auto elementAt = [&](int64_t i) -> Value {
      return vector::ExtractOp::create(b, loc, op.getIn(), i);
    };
    int64_t size = type.getNumElements();
    if (!isPairs) {
      SmallVector<Value> rounded;
      for (int64_t i = 0; i < size; ++i)
        rounded.push_back(round(elementAt(i)));
      b.replaceOpWithNewOp<vector::FromElementsOp>(op, type, rounded);
      return success();
    }
    StringAttr name = b.getStringAttr(
        element.isBF16() ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn");
    auto pair = VectorType::get({2}, element);
    auto word = VectorType::get({1}, b.getI32Type());
    SmallVector<Value> words;
    for (int64_t i = 0; i < size; i += 2) {
      Value high = elementAt(i + 1), low = elementAt(i);
      Value both = LLVM::CallIntrinsicOp::create(b, loc, pair, name,
                                                 ValueRange{high, low})
                       .getResults();
      words.push_back(vector::ExtractOp::create(
          b, loc, vector::BitCastOp::create(b, loc, word, both), 0));
    }
    Value all = vector::FromElementsOp::create(
        b, loc, VectorType::get({size / 2}, b.getI32Type()), words);
    b.replaceOpWithNewOp<vector::BitCastOp>(op, type, all);
    return success();
  }
};

struct ExpandGPUMath final : gdn::impl::ExpandGPUMathBase<ExpandGPUMath> {
  using ExpandGPUMathBase::ExpandGPUMathBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(
        patterns, MathPolynomialApproximationOptions());
    patterns.add<ExpandExp, ExpandExp2, ExpandRsqrt, ExpandDivision, WidenBF16,
                 RoundTo16Bits>(&getContext(), /*benefit=*/2);
    gdn::populatePermuteBytesPatterns(patterns, bytesRegisters,
                                      numbersRegisters);
    GreedyRewriteConfig config; // no pattern touches a block
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
