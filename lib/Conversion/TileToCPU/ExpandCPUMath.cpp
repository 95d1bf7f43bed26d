// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-expand-cpu-math: no calls of a math library. See Passes.td.
#include "gdn/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace gdn {
#define GEN_PASS_DEF_EXPANDCPUMATH
#include "gdn/Conversion/Passes.h.inc"
} // namespace gdn

using namespace mlir;

/// `type` with another element type.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

namespace {
/// f32 to bf16, ties to even. A NaN is made quiet first, as f32: a choice among
/// bf16 vectors, or what LLVM turns into one, is made element by element on
/// CPUs without bf16 registers.
struct RoundToBF16 final : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!getElementTypeOrSelf(x.getType()).isF32() ||
        !getElementTypeOrSelf(op.getType()).isBF16() || op.getRoundingmode())
      return failure();
    Location loc = op.getLoc();
    Type wide = withElement(x.getType(), rewriter.getI32Type());
    Type narrow = withElement(x.getType(), rewriter.getI16Type());
    auto constant = [&](int64_t value) -> Value {
      Attribute attr = rewriter.getI32IntegerAttr(value);
      if (auto vector = dyn_cast<VectorType>(wide))
        attr = DenseElementsAttr::get(vector, attr);
      return arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(attr));
    };
    auto nan =
        llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, 0x7fc00000));
    Attribute quiet = rewriter.getFloatAttr(rewriter.getF32Type(), nan);
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      quiet = DenseElementsAttr::get(vector, quiet);
    Value isNan =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, x, x);
    x = arith::SelectOp::create(
        rewriter, loc, isNan,
        arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(quiet)), x);
    Value bits = arith::BitcastOp::create(rewriter, loc, wide, x);
    Value half = constant(16);
    Value odd = arith::AndIOp::create(
        rewriter, loc, arith::ShRUIOp::create(rewriter, loc, bits, half),
        constant(1));
    Value bias = arith::AddIOp::create(rewriter, loc, odd, constant(0x7fff));
    Value rounded = arith::ShRUIOp::create(
        rewriter, loc, arith::AddIOp::create(rewriter, loc, bits, bias), half);
    rounded = arith::TruncIOp::create(rewriter, loc, narrow, rounded);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), rounded);
    return success();
  }
};

struct ExpandCPUMath final : gdn::impl::ExpandCPUMathBase<ExpandCPUMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(
        patterns, MathPolynomialApproximationOptions());
    arith::populateExpandBFloat16Patterns(patterns);
    patterns.add<RoundToBF16>(&getContext(), /*benefit=*/2);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
