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

namespace {
struct ExpandCPUMath final : gdn::impl::ExpandCPUMathBase<ExpandCPUMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(
        patterns, MathPolynomialApproximationOptions());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
